/* SPDX-License-Identifier: MIT */
/* unpack.c - the only file that knows libarchive.
 *
 * Only filters that are part of the library are switched on: for others it would start
 * programs. */
#include "unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "err.h"
#include "mem.h"

enum { END_MARK = 1024 }; // zero bytes at the end of a tar

struct unpack {
    struct archive *archive;
    unpack_source *source;
    void *ctx;
    const char *name;
    int64_t got; // bytes that the source gave
    int failed;  // its code
    bool tar;    // not a plain stream
    bool ended;
    bool first;    // nothing has been read of the stream
    int64_t zeros; // at the end of what the source gave
};

/* Files of plain numbers may begin with anything: a magic of two bytes, which compress
 * has, would be token 40223. */
bool unpack_knows(const void *bytes, size_t n)
{
    static const struct {
        const char *magic;
        size_t n;
    } known[] = {{"\x1f\x8b\x08", 3},  {"\x1f\x9d\x90", 3}, {"BZh", 3},
                 {"\xfd\x37zXZ\0", 6}, {"LZIP\1", 5},       {"\x04\x22\x4d\x18", 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= known[i].n && memcmp(bytes, known[i].magic, known[i].n) == 0)
            return true;
    return false;
}

/* ---- the library reads from us ---- */

static void count_zeros(struct unpack *u, const char *bytes, int64_t n)
{
    int64_t k = 0;
    while (k < n && k < END_MARK && bytes[n - 1 - k] == 0)
        k++;
    u->zeros = k == n ? u->zeros + k : k;
}

static la_ssize_t give(struct archive *a, void *ctx, const void **bytes)
{
    struct unpack *u = ctx;
    int64_t n = u->failed ? u->failed : u->source(u->ctx, bytes);
    if (n < 0) {
        u->failed = (int)n;
        archive_set_error(a, EIO, "the source failed");
        return -1;
    }
    u->got += n;
    if (u->tar && n > 0)
        count_zeros(u, *bytes, n);
    return (la_ssize_t)n;
}

/* The message of a failure: the source's own, or the library's. */
static int fail(struct unpack *u)
{
    if (u->failed)
        return u->failed;
    const char *why = archive_error_string(u->archive);
    int code = archive_errno(u->archive) == ENOMEM ? E_MEMORY : E_FORMAT;
    if (!u->tar)
        return err_set(code, "%s: cannot decompress before byte %lld: %s", u->name,
                       (long long)u->got, why ? why : "cut or damaged");
    return err_set(code, "%s: %s", u->name, why ? why : "damaged");
}

/* ---- opening ---- */

static bool support_filters(struct archive *a)
{
    return archive_read_support_filter_gzip(a) == ARCHIVE_OK &&
           archive_read_support_filter_bzip2(a) == ARCHIVE_OK &&
           archive_read_support_filter_xz(a) == ARCHIVE_OK &&
           archive_read_support_filter_lzip(a) == ARCHIVE_OK &&
           archive_read_support_filter_lz4(a) == ARCHIVE_OK &&
           archive_read_support_filter_compress(a) == ARCHIVE_OK &&
           archive_read_support_format_raw(a) == ARCHIVE_OK &&
           archive_read_support_format_empty(a) == ARCHIVE_OK;
}

static bool support_tar(struct archive *a)
{
    return archive_read_support_format_tar(a) == ARCHIVE_OK &&
           archive_read_set_option(a, "tar", "read_concatenated_archives", "1") ==
               ARCHIVE_OK;
}

static int begin(struct unpack **out, struct unpack with)
{
    struct unpack *u = mem_zero(1, sizeof *u);
    *out = NULL;
    if (!u)
        return E_MEMORY;
    *u = with;
    u->archive = archive_read_new();
    int rc = u->archive ? 0 : err_set(E_MEMORY, "no memory to unpack %s", u->name);
    if (rc == 0 && !(u->tar ? support_tar(u->archive) : support_filters(u->archive)))
        rc = err_set(E_CONFIG, "libarchive was built without what %s needs", u->name);
    if (rc == 0 && archive_read_open(u->archive, u, NULL, give, NULL) != ARCHIVE_OK)
        rc = fail(u);
    /* Too short or odd a beginning, and the library would give the bytes as they are.
     */
    if (rc == 0 && !u->tar && archive_filter_code(u->archive, 0) == ARCHIVE_FILTER_NONE)
        rc = err_set(E_FORMAT, "%s: cut or damaged at the beginning", u->name);
    if (rc == 0)
        *out = u;
    else
        unpack_close(u);
    return rc;
}

int unpack_stream(struct unpack **out, unpack_source *source, void *ctx,
                  const char *name)
{
    return begin(out, (struct unpack){
                          .source = source, .ctx = ctx, .name = name, .first = true});
}

int unpack_tar(struct unpack **out, unpack_source *source, void *ctx, const char *name)
{
    return begin(
        out, (struct unpack){.source = source, .ctx = ctx, .name = name, .tar = true});
}

void unpack_close(struct unpack *u)
{
    if (!u)
        return;
    archive_read_free(u->archive);
    mem_free(u);
}

/* ---- reading ---- */

/* 1: an entry, 0: the end.  A warning is of names in other alphabets and the like. */
static int next_entry(struct unpack *u, struct archive_entry **e)
{
    if (u->ended)
        return 0;
    int rc = archive_read_next_header(u->archive, e);
    u->ended = rc == ARCHIVE_EOF;
    if (u->ended)
        return 0;
    return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 1 : fail(u);
}

static const char *oddity(struct archive_entry *e)
{
    if (archive_entry_hardlink(e) || archive_entry_filetype(e) == AE_IFLNK)
        return "a link";
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        return NULL;
    case AE_IFDIR:
        return "a folder";
    default:
        return "a device or the like";
    }
}

int unpack_next(struct unpack *u, struct unpack_member *m)
{
    struct archive_entry *e;
    int got = next_entry(u, &e);
    TRY(got);
    if (got == 0 && u->zeros < END_MARK)
        return err_set(E_FORMAT, "%s: cut: the tar has no end mark", u->name);
    if (got == 0)
        return 0;
    const char *name = archive_entry_pathname_utf8(e);
    if (!name)
        name = archive_entry_pathname(e); // bytes that are no UTF-8
    *m = (struct unpack_member){.name = name ? name : "",
                                .size = archive_entry_size(e),
                                .oddity = oddity(e),
                                .folder = archive_entry_filetype(e) == AE_IFDIR};
    return 1;
}

/* Behind the end of a stream there may be nothing. */
static int64_t end_of_stream(struct unpack *u)
{
    const void *bytes;
    int64_t used = archive_filter_bytes(u->archive, -1);
    if (used == u->got && !u->failed)
        give(u->archive, u, &bytes);
    if (u->failed)
        return u->failed;
    if (used != u->got)
        return err_set(E_FORMAT, "%s: other bytes follow the compressed ones", u->name);
    return 0;
}

int64_t unpack_read(struct unpack *u, void *to, size_t n)
{
    struct archive_entry *e;
    if (u->first) {
        int got = next_entry(u, &e);
        TRY(got);
        if (got == 0)
            return end_of_stream(u);
        u->first = false;
    }
    la_ssize_t got = archive_read_data(u->archive, to, n);
    if (got < 0)
        return fail(u);
    return got == 0 && n > 0 && !u->tar ? end_of_stream(u) : (int64_t)got;
}
