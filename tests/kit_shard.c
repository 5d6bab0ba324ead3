/* SPDX-License-Identifier: MIT */
/* kit_shard.c - rows whose content can be recomputed from their index. */
#include "kit_shard.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"

enum { IDS, MASK, DOC, X };

struct shard_options kit_run_options(void)
{
    static const char *const meta[] = {"input", "0123456789abcdef", "options", "a=1"};
    return (struct shard_options){
        .name = "tiny",
        .stage = "test",
        .parts = 1,
        .column =
            {{.name = "ids", .type = ST_I32, .rank = 1, .dim = {3}},
             {.name = "mask", .type = ST_U8, .rank = 1, .dim = {3}},
             {.name = "doc", .type = ST_I64, .rank = 1, .dim = {2}, .fixed = true},
             {.name = "x", .type = ST_BF16, .rank = 2, .dim = {3, 2}}},
        .columns = 4,
        .meta = meta,
        .metas = 2,
        .rows_per_shard = 2};
}

static void row_content(int64_t row, int32_t ids[3], uint8_t mask[3], uint16_t x[6])
{
    for (int i = 0; i < 3; i++) {
        ids[i] = (int32_t)(1000 * row + i);
        mask[i] = (uint8_t)((row + i) % 2);
    }
    for (int i = 0; i < 6; i++)
        x[i] = (uint16_t)(0x3f80 + 7 * row + i);
}

/* Row r has r % 3 documents: some shards have none at all. */
static int doc_count(int64_t row)
{
    return (int)(row % 3);
}

void kit_run_fill(struct shard_writer *w, int64_t from, int64_t to)
{
    for (int64_t row = from; row < to; row++) {
        void *at[SHARD_COLUMNS];
        kit_ok(shard_row(w, at));
        row_content(row, at[IDS], at[MASK], at[X]);
        ck_assert_ptr_null(at[DOC]);
        for (int i = 0; i < doc_count(row); i++) {
            int64_t entry[2] = {row, i};
            ck_assert_int_ge(shard_fixed(w, DOC, entry, 1), i);
        }
    }
}

void kit_run_write(const char *dir, const struct shard_options *o, int64_t rows)
{
    struct shard_writer *w;
    int64_t have;
    kit_ok(shard_create(&w, dir, o, &have));
    if (!w)
        return;
    kit_run_fill(w, o->first_row + have, o->first_row + rows);
    kit_ok(shard_end_meta(w, "late", "known at the end"));
    kit_ok(shard_finish(w));
}

void kit_run_stream(const char *path, const struct shard_options *o, int64_t rows)
{
    fflush(stdout);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), out = dup(STDOUT_FILENO);
    ck_assert_int_ge(fd, 0);
    dup2(fd, STDOUT_FILENO);
    kit_run_write("-", o, rows);
    dup2(out, STDOUT_FILENO);
    close(fd);
    close(out);
}

static void check_column(const struct shard_view *v, const char *name, int64_t i,
                         const void *want, size_t bytes)
{
    const char *data = shard_column(v, name, NULL);
    ck_assert_ptr_nonnull(data);
    kit_same(name, data + (size_t)i * bytes, want, bytes);
}

void kit_run_check(const struct shard_view *v, int64_t first)
{
    const struct st_tensor *doc;
    int64_t entries = 0;
    ck_assert_uint_eq((uintptr_t)v->data % 64, 0);
    shard_column(v, "doc", &doc);
    for (int64_t i = 0; i < v->rows; i++) {
        int32_t ids[3];
        uint8_t mask[3];
        uint16_t x[6];
        row_content(first + i, ids, mask, x);
        check_column(v, "ids", i, ids, sizeof ids);
        check_column(v, "mask", i, mask, sizeof mask);
        check_column(v, "x", i, x, sizeof x);
        for (int d = 0; d < doc_count(first + i); d++) {
            int64_t entry[2] = {first + i, d};
            check_column(v, "doc", entries++, entry, sizeof entry);
        }
    }
    ck_assert_int_eq(doc->dim[0], entries);
}

int kit_run_read(char *const *path, int paths, int64_t first, int64_t *rows)
{
    struct shard_reader *r;
    struct shard_view v;
    int64_t dummy;
    rows = rows ? rows : &dummy;
    *rows = 0;
    int rc = shard_open(&r, path, paths);
    if (rc < 0)
        return rc;
    while ((rc = shard_next(r, &v)) > 0) {
        ck_assert_int_eq(v.first_row, first + *rows);
        kit_run_check(&v, first + *rows);
        *rows += v.rows;
    }
    shard_close(r);
    return rc;
}

void kit_cat(const char *to, const char *from)
{
    size_t n;
    char *p = kit_read(from, &n);
    int fd = open(to, O_WRONLY | O_CREAT | O_APPEND, 0666);
    ck_assert_int_ge(fd, 0);
    kit_ok(file_put(fd, p, n, to));
    close(fd);
    mem_free(p);
}

/* ---- runs as of pack and extract ---- */

enum { S = 8, DOCS = 5, TAPS = 2, WIDTH = 2 };

static const struct {
    int32_t ids[S];
    uint8_t mask[S];
    int32_t doc[S]; // index into `source` below
} texts[3] = {
    {{0, 1, 2, 3, 4, 5, 7, 0}, {0, 0, 1, 1, 0, 1, 1, 0}, {0, 0, 0, 0, 1, 1, 1, -1}},
    {{6, 6, 6, 6, 6, 6, 6, 6}, {0, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}},
    {{0, 2, 0, 2, 0, 0, 0, 0}, {0, 1, 0, 1, 0, 0, 0, 0}, {3, 3, 4, 4, -1, -1, -1, -1}},
};
static const int64_t source[DOCS][3] = {
    {0, 5, 0}, {1, 0, 3}, {1, 7, 0}, {0, 6, 0}, {0, 6, 2}};

#define FILES                                                                          \
    ("[{\"name\":\"a.jsonl\",\"size\":100,\"xxh3\":\"0000000000000001\"},"             \
     "{\"name\":\"b.jsonl\",\"size\":200,\"xxh3\":\"0000000000000002\"}]")

static struct shard_options packed_options(void)
{
    static const char *const meta[] = {"options", "length=8 seed=1", "files", FILES};
    return (struct shard_options){
        .name = "packed",
        .stage = "pack",
        .parts = 1,
        .column =
            {{.name = "input_ids", .type = ST_I32, .rank = 1, .dim = {S}},
             {.name = "loss_mask", .type = ST_U8, .rank = 1, .dim = {S}},
             {.name = "doc_ids", .type = ST_I32, .rank = 1, .dim = {S}},
             {.name = "source", .type = ST_I64, .rank = 1, .dim = {3}, .fixed = true}},
        .columns = 4,
        .meta = meta,
        .metas = 2,
        .rows_per_shard = 2};
}

/* Fills a row's text; its documents are numbered within the shard. */
static void put_text(struct shard_writer *w, void *at[], int row)
{
    int32_t *doc = at[2];
    int last = -1;
    int64_t entry = -1;
    memcpy(at[0], texts[row].ids, sizeof texts[row].ids);
    memcpy(at[1], texts[row].mask, S);
    for (int i = 0; i < S; i++) {
        int d = texts[row].doc[i];
        if (d >= 0 && d != last)
            entry = shard_fixed(w, 3, source[d], 1);
        doc[i] = d < 0 ? -1 : (int32_t)entry;
        last = d;
    }
}

void kit_packed_write(const char *dir)
{
    struct shard_options o = packed_options();
    struct shard_writer *w;
    void *at[SHARD_COLUMNS];
    int64_t have;
    kit_ok(shard_create(&w, dir, &o, &have));
    for (int row = 0; row < 3; row++) {
        kit_ok(shard_row(w, at));
        put_text(w, at, row);
    }
    kit_ok(shard_finish(w));
}

void kit_hidden_write(const char *dir, int spoil, uint16_t value)
{
    static const char *const meta[] = {
        "target", "00000000000000aa", "taps", "1,3", "aux", "bf16"};
    struct shard_options o = packed_options();
    struct shard_writer *w;
    void *at[SHARD_COLUMNS];
    int64_t have;
    o.name = "hidden";
    o.stage = "extract";
    o.column[o.columns++] = (struct shard_column){
        .name = "aux", .type = ST_BF16, .rank = 2, .dim = {S, TAPS * WIDTH}};
    o.meta = meta;
    o.metas = 3;
    o.rows_per_shard = 1;
    kit_ok(shard_create(&w, dir, &o, &have));
    for (int row = 0; row < 2; row++) {
        kit_ok(shard_row(w, at));
        put_text(w, at, row);
        uint16_t *aux = at[4];
        for (int i = 0; i < S * TAPS * WIDTH; i++)
            aux[i] = i % 4 < 2 ? 0x4000 : 0x4040; // 2 in the first tap, 3 in the second
        if (row == 1 && spoil >= 0)
            aux[spoil] = value;
    }
    kit_ok(shard_end_meta(w, "input", "00000000000000bb"));
    kit_ok(shard_finish(w));
}
