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
