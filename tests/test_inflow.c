/* SPDX-License-Identifier: MIT */
/* test_inflow.c - compressed input: the same bytes, or an error; never more memory than
 * is asked for. */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "../tools/pack/inflow.h"
#include "err.h"
#include "kit.h"
#include "rng.h"

enum { TEXT = 40000, ROOM = 1 << 17 };

static const struct {
    const char *name;
    int (*add)(struct archive *);
} filters[] = {{"gzip", archive_write_add_filter_gzip},
               {"bzip2", archive_write_add_filter_bzip2},
               {"xz", archive_write_add_filter_xz},
               {"lzip", archive_write_add_filter_lzip},
               {"lz4", archive_write_add_filter_lz4},
               {"compress", archive_write_add_filter_compress},
               {"zstd", archive_write_add_filter_zstd}};
enum { FILTERS = sizeof filters / sizeof *filters };

static size_t compress(char *out, int filter, const char *text, size_t n)
{
    size_t size = 0;
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_pathname(e, "x");
    bool ok = filters[filter].add(a) == ARCHIVE_OK &&
              archive_write_set_format_raw(a) == ARCHIVE_OK &&
              archive_write_set_bytes_in_last_block(a, 1) == ARCHIVE_OK &&
              archive_write_open_memory(a, out, ROOM, &size) == ARCHIVE_OK &&
              archive_write_header(a, e) == ARCHIVE_OK &&
              archive_write_data(a, text, n) == (la_ssize_t)n &&
              archive_write_close(a) == ARCHIVE_OK;
    if (!ok)
        ck_abort_msg("cannot compress: %s", archive_error_string(a));
    archive_entry_free(e);
    archive_write_free(a);
    return size;
}

/* Without the fsync of kit_write: some tests write thousands of files. */
static void overwrite(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void make_text(char *text, size_t n)
{
    struct rng r = rng_new(1);
    for (size_t i = 0; i < n; i++)
        text[i] =
            i % 100 < 30 ? "0123456789,[]\n"[rng_below(&r, 14)] : "12, 345, "[i % 9];
}

/* All bytes of a file, read in small steps; `raw` are how many it has. */
static int read_all(struct buf *got, const char *path, int64_t raw)
{
    struct inflow in;
    kit_ok(inflow_open(&in, path, "file"));
    buf_clear(got);
    int rc;
    while ((rc = inflow_more(&in, 1000)) > 0) {
        buf_add(got, in.have.p, in.have.len);
        inflow_take(&in, in.have.len);
    }
    if (rc == 0)
        ck_assert_int_eq(in.raw, raw);
    inflow_close(&in);
    return rc;
}

START_TEST(every_compression)
{
    static char text[TEXT], packed[2 * ROOM];
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct buf got = {0};
    make_text(text, TEXT);
    for (int f = 0; f < FILTERS; f++) {
        printf("%s\n", filters[f].name);
        size_t n = compress(packed, f, text, TEXT);
        ck_assert_uint_lt(n, TEXT * 3 / 4);
        overwrite(path, packed, n);
        kit_ok(read_all(&got, path, (int64_t)n));
        ck_assert_uint_eq(got.len, TEXT);
        kit_same("text", got.p, text, TEXT);
        if (strcmp(filters[f].name, "compress") == 0)
            continue; // it knows no end: what follows is more of it
        size_t m = compress(packed + n, f, text, 1000);
        overwrite(path, packed, n + m);
        kit_ok(read_all(&got, path, (int64_t)(n + m)));
        ck_assert_uint_eq(got.len, TEXT + 1000);
        kit_same("first", got.p, text, TEXT);
        kit_same("second", got.p + TEXT, text, 1000);
        memcpy(packed + n, "other bytes", 11);
        overwrite(path, packed, n + 11);
        kit_fails(read_all(&got, path, 0), E_FORMAT, "file: ");
    }
    buf_drop(&got);
}
END_TEST

/* Sixteen-bit tokens 40223 and 1, which begin like the two bytes of compress. */
START_TEST(numbers_are_not_taken_for_compressed)
{
    static const char numbers[] = {0x1f, (char)0x9d, 1, 0};
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct buf got = {0};
    overwrite(path, numbers, sizeof numbers);
    kit_ok(read_all(&got, path, sizeof numbers));
    ck_assert_uint_eq(got.len, sizeof numbers);
    buf_drop(&got);
}
END_TEST

/* Cut at any byte: an error, or, before it can be known for compressed, those bytes. */
START_TEST(cut_anywhere)
{
    static char text[1000], packed[ROOM];
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct buf got = {0};
    make_text(text, sizeof text);
    for (int f = 0; f < FILTERS; f++) {
        if (strcmp(filters[f].name, "compress") == 0)
            continue; // it has neither an end nor a checksum
        size_t n = compress(packed, f, text, sizeof text);
        for (size_t cut = 1; cut < n; cut += cut < 40 ? 1 : 7) {
            overwrite(path, packed, cut);
            int rc = read_all(&got, path, (int64_t)cut);
            bool plain =
                rc == 0 && cut < 6 && got.len == cut && memcmp(got.p, packed, cut) == 0;
            if (rc != E_FORMAT && !plain)
                ck_abort_msg("%s, %zu of %zu bytes: code %d, %zu bytes out",
                             filters[f].name, cut, n, rc, got.len);
        }
    }
    buf_drop(&got);
}
END_TEST

START_TEST(damaged_anywhere)
{
    static char text[1000], packed[ROOM];
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct buf got = {0};
    struct rng r = rng_new(2);
    int errors = 0, rounds = 0;
    make_text(text, sizeof text);
    for (int f = 0; f < FILTERS; f++) {
        size_t n = compress(packed, f, text, sizeof text);
        for (size_t i = 0; i < n; i += 3, rounds++) {
            char before = packed[i];
            packed[i] = (char)(before ^ (1 << rng_below(&r, 8)));
            overwrite(path, packed, n);
            int rc = read_all(&got, path, (int64_t)n);
            ck_assert(rc == 0 || rc == E_FORMAT || rc == E_MEMORY);
            errors += rc == E_FORMAT;
            packed[i] = before;
        }
    }
    printf("%d of %d damages are errors\n", errors, rounds);
    ck_assert_int_gt(errors, rounds / 2); // not of compress, nor of some headers
    buf_drop(&got);
}
END_TEST

/* Ten thousand times smaller than what comes out; none of it is kept. */
START_TEST(a_bomb_is_a_stream)
{
    enum { MIB = 1 << 20, TIMES = 512 };
    static char zeros[MIB], packed[MIB];
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct inflow in;
    int64_t total = 0;
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_outBuffer out = {packed, MIB, 0};
    for (int i = 0; i < TIMES; i++) {
        ZSTD_inBuffer from = {zeros, MIB, 0};
        size_t left = ZSTD_compressStream2(
            c, &out, &from, i + 1 < TIMES ? ZSTD_e_continue : ZSTD_e_end);
        ck_assert(!ZSTD_isError(left));
    }
    ZSTD_freeCCtx(c);
    ck_assert_uint_lt(out.pos * 10000, (size_t)TIMES * MIB);
    overwrite(path, packed, out.pos);
    kit_ok(inflow_open(&in, path, "bomb"));
    while (inflow_more(&in, 4096) > 0) {
        ck_assert_uint_le(in.have.cap, MIB);
        total += (int64_t)in.have.len;
        inflow_take(&in, in.have.len);
    }
    ck_assert_int_eq(total, (int64_t)TIMES * MIB);
    inflow_close(&in);
}
END_TEST

KIT_MAIN("inflow", every_compression, numbers_are_not_taken_for_compressed,
         cut_anywhere, damaged_anywhere, a_bomb_is_a_stream)
