/* SPDX-License-Identifier: MIT */
/* partial.c - the journal is text: a line of JSON, then "index crc" a line. */
#include "partial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "buf.h"
#include "crc.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "json.h"
#include "mem.h"
#include "piece.h"

enum { READ = 1 << 20 };

static const char journal_end[] = ".have" PLACE_KEPT;

static void name_files(const char *key, char temp[PLACE_NAME], char journal[PLACE_NAME])
{
    char hash[HASH_TEXT];
    hash_text(hash, hash_bytes(key, strlen(key)));
    snprintf(temp, PLACE_NAME, "%s" PLACE_KEPT, hash);
    snprintf(journal, PLACE_NAME, "%s%s", hash, journal_end);
}

static int make_arrays(struct partial *p, const struct object *o, int64_t piece)
{
    p->piece = piece;
    p->pieces = (o->size + piece - 1) / piece;
    p->there = mem_zero((size_t)p->pieces, sizeof *p->there);
    p->sum = mem_zero((size_t)p->pieces, sizeof *p->sum);
    return p->there && p->sum ? 0 : E_MEMORY;
}

static int64_t piece_size(const struct partial *p, const struct object *o, int64_t i)
{
    int64_t rest = o->size - i * p->piece;
    return rest < p->piece ? rest : p->piece;
}

/* ---- going on ---- */

static bool same_etag(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The size of the pieces when the journal's first line is about this object, else 0. */
static int64_t read_first(const char *line, size_t n, const struct object *o)
{
    struct json *root = NULL;
    const char *key = "", *etag = NULL;
    int64_t size = -1, mtime = -1, piece = 0;
    bool read = json_parse(&root, line, n) == 0 &&
                json_need_text(root, "key", &key) == 0 &&
                json_need_int(root, "size", &size) == 0 &&
                json_need_int(root, "mtime_ns", &mtime) == 0 &&
                json_need_int(root, "piece", &piece) == 0 &&
                json_have_text(root, "etag", &etag) >= 0;
    bool same = read && strcmp(key, o->key) == 0 && size == o->size &&
                same_etag(etag, o->etag) && (o->etag || mtime == o->mtime_ns);
    json_free(root);
    return same && piece > 0 && (o->size + piece - 1) / piece <= INT32_MAX ? piece : 0;
}

/* "index crc" */
static void read_line(struct partial *p, const char *line)
{
    char *rest;
    uint64_t sum;
    long long index = strtoll(line, &rest, 10);
    if (*rest != ' ' || index < 0 || index >= p->pieces ||
        hash_parse(rest + 1, &sum) < 0)
        return;
    p->there[index] = 1;
    p->sum[index] = sum;
}

static int read_journal(struct partial *p, const struct object *o, char *text)
{
    char *line = text, *end = strchr(line, '\n');
    int64_t piece = end ? read_first(line, (size_t)(end - line), o) : 0;
    if (piece == 0)
        return 0;
    TRY(make_arrays(p, o, piece));
    for (line = end + 1; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        read_line(p, line);
    }
    return 1;
}

static bool reads_well(struct partial *p, const struct object *o, int64_t i,
                       void *buffer)
{
    int64_t n = piece_size(p, o, i), done = 0;
    uint64_t sum = 0;
    while (done < n) {
        size_t now = (size_t)(n - done < READ ? n - done : READ);
        if (file_pread(p->fd, buffer, now, i * p->piece + done, o->key) < 0)
            return false;
        sum = crc_add(CRC64NVME, sum, buffer, now);
        done += (int64_t)now;
    }
    return sum == p->sum[i];
}

static int check_pieces(struct partial *p, const struct object *o)
{
    void *buffer = mem_alloc(READ);
    if (!buffer)
        return E_MEMORY;
    for (int64_t i = 0; i < p->pieces; i++) {
        p->there[i] = p->there[i] && reads_well(p, o, i, buffer);
        p->have += p->there[i];
        p->bytes += p->there[i] ? piece_size(p, o, i) : 0;
    }
    mem_free(buffer);
    return 0;
}

/* 1: there is something to go on with. */
static int go_on(struct partial *p, const struct place *place, const struct object *o,
                 const char *journal)
{
    char *text = NULL, *path = file_path(place->tmp, journal);
    size_t n;
    int rc = path ? 0 : E_MEMORY;
    if (rc == 0 && file_exists(path) && file_read(path, &text, &n) == 0)
        rc = read_journal(p, o, text);
    mem_free(text);
    mem_free(path);
    if (rc <= 0)
        return rc;
    p->fd = openat(place->tmp_fd, p->temp, O_RDWR | O_CLOEXEC);
    p->journal = openat(place->tmp_fd, journal, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (p->fd < 0 || p->journal < 0)
        return 0;
    TRY(check_pieces(p, o));
    return p->have > 0;
}

/* ---- beginning ---- */

/* Reserves the room, so that a full disk shows before the bytes are fetched.  In tmpfs,
 * where that takes page after page and makes writing no cheaper, a look must do. */
static int reserve(int fd, const struct object *o)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC) {
        bool fits = fs.f_blocks == 0 || // without a limit
                    (uint64_t)o->size / (uint64_t)fs.f_bsize < fs.f_bavail;
        return fits ? 0 : err_errno(ENOSPC, "cannot write %s", o->key);
    }
    if (fallocate(fd, 0, 0, o->size) == 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
        return 0; // then it shows later
    return err_errno(errno, "cannot write %s", o->key);
}

static int write_first(int fd, const struct object *o, int64_t piece)
{
    struct buf line = {0};
    struct json_out j = {.to = &line};
    json_open_object(&j, NULL);
    json_add_text(&j, "key", o->key);
    json_add_int(&j, "size", o->size);
    json_add_int(&j, "mtime_ns", o->mtime_ns);
    if (o->etag)
        json_add_text(&j, "etag", o->etag);
    json_add_int(&j, "piece", piece);
    json_close_object(&j);
    buf_addc(&line, '\n');
    int rc = buf_check(&line);
    if (rc == 0)
        rc = file_put(fd, line.p, line.len, "a journal");
    buf_drop(&line);
    return rc;
}

static int begin(struct partial *p, const struct place *place, const struct object *o,
                 int64_t piece, const char *journal)
{
    TRY(make_arrays(p, o, piece));
    p->fd = place_create(place, p->temp);
    p->journal = place_create(place, journal);
    if (p->fd < 0 || p->journal < 0)
        return p->fd < 0 ? p->fd : p->journal;
    TRY(reserve(p->fd, o));
    return write_first(p->journal, o, piece);
}

int partial_open(struct partial *p, const struct place *place, const struct object *o,
                 int64_t piece)
{
    char journal[PLACE_NAME];
    *p = (struct partial){.fd = -1, .journal = -1};
    name_files(o->key, p->temp, journal);
    int rc = o->etag || !o->undated ? go_on(p, place, o, journal) : 0;
    if (rc == 0) {
        partial_close(p);
        rc = begin(p, place, o, piece, journal);
    }
    if (rc < 0)
        partial_close(p);
    return rc < 0 ? rc : 0;
}

int partial_note(struct partial *p, int64_t index, uint64_t sum)
{
    char line[64], hash[HASH_TEXT];
    int n =
        snprintf(line, sizeof line, "%" PRId64 " %s\n", index, hash_text(hash, sum));
    p->sum[index] = sum;
    if (!p->reread)
        file_let_go(p->fd);
    return file_put(p->journal, line, (size_t)n, "a journal");
}

void partial_close(struct partial *p)
{
    if (p->fd >= 0)
        close(p->fd);
    if (p->journal >= 0)
        close(p->journal);
    mem_free(p->there);
    mem_free(p->sum);
    p->fd = p->journal = -1;
    p->there = NULL;
    p->sum = NULL;
    p->have = p->bytes = 0;
}

void partial_forget(const struct place *place, const char *key)
{
    char temp[PLACE_NAME], journal[PLACE_NAME];
    name_files(key, temp, journal);
    unlinkat(place->tmp_fd, temp, 0);
    unlinkat(place->tmp_fd, journal, 0);
}

/* ---- what nobody wants ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_wanted(const char *name, const uint64_t *hash, int64_t n)
{
    char text[HASH_TEXT];
    uint64_t value;
    if (!strstr(name, PLACE_KEPT))
        return true; // none of ours
    snprintf(text, sizeof text, "%.16s", name);
    return hash_parse(text, &value) == 0 && n > 0 &&
           bsearch(&value, hash, (size_t)n, sizeof *hash, by_value);
}

static int sweep(const struct place *place, char **names, int64_t n,
                 const struct objects *list, const bool *wanted, int64_t piece)
{
    int64_t hashes = 0;
    uint64_t *hash = mem_alloc((size_t)list->n * sizeof *hash);
    if (!hash)
        return E_MEMORY;
    for (int64_t i = 0; i < list->n; i++)
        if (wanted[i] && piece_count(&list->at[i], piece) > 1)
            hash[hashes++] = hash_bytes(list->at[i].key, strlen(list->at[i].key));
    if (hashes > 0)
        qsort(hash, (size_t)hashes, sizeof *hash, by_value);
    for (int64_t i = 0; i < n; i++)
        if (!is_wanted(names[i], hash, hashes))
            unlinkat(place->tmp_fd, names[i], 0);
    mem_free(hash);
    return 0;
}

int partial_sweep(const struct place *place, const struct objects *list,
                  const bool *wanted, int64_t piece)
{
    char **names;
    int64_t n;
    TRY(file_list(place->tmp, &names, &n));
    int rc = n > 0 ? sweep(place, names, n, list, wanted, piece) : 0;
    file_list_free(names, n);
    return rc;
}
