/* SPDX-License-Identifier: MIT */
/* shard_write.c - fills one shard in memory and writes it whole.
 *
 * Each column has a buffer of its own, so a short last shard needs no moving together;
 * a shard goes out as its header and then its columns, in few large writes.  In the
 * file wide types come first: every tensor is then aligned to its type. */
#include "shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "hash.h"
#include "lock.h"
#include "mem.h"
#include "shard_head.h"
#include "shard_resume.h"

struct column {
    struct shard_column spec;
    size_t bytes; /* of one row or entry */
    char *data;
    size_t cap;
    int64_t entries; /* of a fixed column */
};

struct shard_writer {
    struct column column[SHARD_COLUMNS];
    int order[SHARD_COLUMNS]; /* of the columns in the file */
    int columns;
    char *dir;          /* NULL: stdout */
    struct shard_id id; /* of the shard being filled; texts are owned */
    int64_t first_row, rows_per_shard;
    struct buf fixed, head;
    struct buf meta, end_meta; /* arrays of owned texts */
    struct shard_resume had;
    struct lock lock; /* of the folder */
    int64_t written;  /* bytes */
    bool broken;      /* a shard was not written: nothing may follow */
};

/* ---- setting up ---- */

static bool has_key(const struct buf *pairs, const char *key)
{
    char *const *text = (char *const *)(const void *)pairs->p;
    for (size_t i = 0; i < pairs->len / sizeof *text; i += 2)
        if (strcmp(text[i], key) == 0)
            return true;
    return false;
}

static void check_key(const struct shard_writer *w, const char *key)
{
    if (shard_head_reserved(key) || has_key(&w->meta, key) ||
        has_key(&w->end_meta, key))
        bug("metadata key %s is taken", key);
}

/* Copies pairs of texts behind those in `to`, an array of char *. */
static int copy_pairs(const struct shard_writer *w, struct buf *to,
                      const char *const *meta, int64_t metas)
{
    for (int64_t i = 0; i < 2 * metas; i++) {
        if (i % 2 == 0)
            check_key(w, meta[i]);
        char *text = mem_text(meta[i]);
        if (!text)
            return E_MEMORY;
        buf_add(to, &text, sizeof text);
        if (to->failed) {
            mem_free(text);
            return E_MEMORY;
        }
    }
    return 0;
}

static void free_pairs(struct buf *b)
{
    char **text = (char **)(void *)b->p;
    for (size_t i = 0; i < b->len / sizeof *text; i++)
        mem_free(text[i]);
    buf_drop(b);
}

static void check_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > SHARD_NAME_MAX || strcspn(name, " /") != n)
        bug("\"%s\" cannot be a name in a shard", name);
}

static int set_column(struct column *c, const struct shard_column *spec)
{
    c->spec = *spec;
    c->bytes = st_type_size(spec->type);
    for (int i = 0; i < spec->rank; i++) {
        if (spec->dim[i] < 1 || c->bytes > (SIZE_MAX >> 8) / (size_t)spec->dim[i])
            return err_set(E_CONFIG, "column %s: dimension %" PRId64 " is out of range",
                           spec->name, spec->dim[i]);
        c->bytes *= (size_t)spec->dim[i];
    }
    return 0;
}

static int set_columns(struct shard_writer *w, const struct shard_options *o)
{
    size_t row = 0;
    for (int c = 0; c < o->columns; c++) {
        check_name(o->column[c].name);
        TRY(set_column(&w->column[c], &o->column[c]));
        row += o->column[c].fixed ? 0 : w->column[c].bytes;
        if (o->column[c].fixed)
            buf_addf(&w->fixed, w->fixed.len ? " %s" : "%s", o->column[c].name);
        /* Insertion sort, widest type first, else in the caller's order. */
        int at = w->columns++;
        size_t size = st_type_size(o->column[c].type);
        for (; at > 0 && st_type_size(w->column[w->order[at - 1]].spec.type) < size;
             at--)
            w->order[at] = w->order[at - 1];
        w->order[at] = c;
    }
    if (row == 0)
        bug("a shard needs a column with a row");
    w->rows_per_shard = o->rows_per_shard   ? o->rows_per_shard
                        : row < SHARD_BYTES ? (int64_t)(SHARD_BYTES / row)
                                            : 1;
    return buf_check(&w->fixed);
}

/* Two writers of one run would each rename over what the other has. */
static int take_lock(struct shard_writer *w)
{
    char name[SHARD_NAME_MAX + 8];
    snprintf(name, sizeof name, ".%s.lock", w->id.name);
    return lock_take(&w->lock, w->dir, name, (int)w->id.part, (int)w->id.parts);
}

static int set_up(struct shard_writer *w, const char *dir,
                  const struct shard_options *o)
{
    check_name(o->name);
    if (o->part < 0 || o->part >= o->parts || o->columns > SHARD_COLUMNS)
        bug("part %d of %d, %d columns", o->part, o->parts, o->columns);
    w->id = (struct shard_id){.stage = mem_text(o->stage),
                              .name = mem_text(o->name),
                              .part = o->part,
                              .parts = o->parts,
                              .first_row = o->first_row};
    w->first_row = o->first_row;
    if (!w->id.stage || !w->id.name)
        return E_MEMORY;
    TRY(set_columns(w, o));
    TRY(copy_pairs(w, &w->meta, o->meta, o->metas));
    if (strcmp(dir, "-") == 0)
        return 0;
    if (!(w->dir = mem_text(dir)))
        return E_MEMORY;
    TRY(file_make_dirs(dir));
    TRY(take_lock(w));
    TRY(shard_resume_scan(&w->had, dir, o, &w->id, w->rows_per_shard));
    w->id.index = w->had.shards;
    w->id.first_row += w->had.rows;
    return 0;
}

void shard_abandon(struct shard_writer *w)
{
    if (!w)
        return;
    for (int c = 0; c < w->columns; c++)
        mem_free(w->column[c].data);
    free_pairs(&w->meta);
    free_pairs(&w->end_meta);
    shard_resume_drop(&w->had);
    lock_give(&w->lock);
    buf_drop(&w->fixed);
    buf_drop(&w->head);
    mem_free((char *)(uintptr_t)w->id.stage);
    mem_free((char *)(uintptr_t)w->id.name);
    mem_free(w->dir);
    mem_free(w);
}

int shard_create(struct shard_writer **out, const char *dir,
                 const struct shard_options *o, int64_t *have_rows)
{
    struct shard_writer *w = mem_zero(1, sizeof *w);
    *out = NULL;
    *have_rows = 0;
    if (!w)
        return E_MEMORY;
    int rc = set_up(w, dir, o);
    *have_rows = w->had.rows;
    if (rc < 0 || w->had.whole) {
        shard_abandon(w);
        return rc < 0 ? rc : 1;
    }
    *out = w;
    return 0;
}

const struct shard_view *shard_resumed(const struct shard_writer *w)
{
    return w->had.path ? &w->had.view : NULL;
}

/* ---- filling ---- */

static int allocate(struct shard_writer *w)
{
    for (int c = 0; c < w->columns; c++) {
        struct column *col = &w->column[c];
        if (col->data || col->spec.fixed)
            continue;
        if ((size_t)w->rows_per_shard > SIZE_MAX / col->bytes)
            return err_set(E_CONFIG, "%" PRId64 " rows do not fit a shard",
                           w->rows_per_shard);
        col->cap = (size_t)w->rows_per_shard * col->bytes;
        if (!(col->data = mem_alloc(col->cap)))
            return E_MEMORY;
    }
    return 0;
}

int shard_row(struct shard_writer *w, void *column[SHARD_COLUMNS])
{
    if (w->id.rows == w->rows_per_shard)
        TRY(shard_flush(w));
    shard_resume_drop_view(&w->had);
    TRY(allocate(w));
    for (int c = 0; c < w->columns; c++) {
        const struct column *col = &w->column[c];
        column[c] =
            col->spec.fixed ? NULL : col->data + (size_t)w->id.rows * col->bytes;
    }
    w->id.rows++;
    return 0;
}

int64_t shard_fixed(struct shard_writer *w, int c, const void *entries, int64_t n)
{
    struct column *col = &w->column[c];
    if (!col->spec.fixed)
        bug("column %s has its entries in rows", col->spec.name);
    size_t used = (size_t)col->entries * col->bytes, more = (size_t)n * col->bytes;
    if (used + more > col->cap) {
        size_t cap = 2 * (used + more);
        char *data = mem_grow(col->data, used, cap);
        if (!data)
            return E_MEMORY;
        col->data = data;
        col->cap = cap;
    }
    if (more > 0)
        memcpy(col->data + used, entries, more);
    col->entries += n;
    return col->entries - n;
}

int shard_end_meta(struct shard_writer *w, const char *key, const char *value)
{
    return copy_pairs(w, &w->end_meta, (const char *const[]){key, value}, 1);
}

/* ---- writing ---- */

/* Puts header and data under the file's name, or on stdout. */
static int put(struct shard_writer *w, const struct shard_head_new *n)
{
    struct buf name = {0};
    struct file_new f = {.fd = STDOUT_FILENO};
    char *path = NULL;
    shard_name_add(&name, &n->id);
    int rc = buf_check(&name);
    if (rc == 0 && w->dir) {
        path = file_path(w->dir, buf_text(&name));
        rc = path ? file_new_create(&f, path) : E_MEMORY;
    }
    TRY_GOTO(rc, rc, out);
    const char *to = path ? path : "standard output";
    rc = file_put(f.fd, w->head.p, w->head.len, to);
    w->written += (int64_t)w->head.len;
    for (int64_t i = 0; i < n->tensors && rc == 0; i++) {
        size_t bytes = n->tensor[i].end - n->tensor[i].begin;
        rc = file_put(f.fd, n->data[i], bytes, to);
        w->written += (int64_t)bytes;
    }
    if (path && rc < 0)
        file_new_abandon(&f);
    else if (path)
        rc = file_new_commit(&f);
out:
    buf_drop(&name);
    mem_free(path);
    return rc;
}

static int write_one(struct shard_writer *w, struct shard_head_new *n)
{
    uint64_t xxh3;
    n->meta = (const char *const *)(void *)w->meta.p;
    n->metas = (int64_t)(w->meta.len / (2 * sizeof(char *)));
    w->broken = true;
    TRY(shard_head_write(&w->head, n, &xxh3));
    TRY(put(w, n));
    if (!n->id.end)
        shard_head_sum(&w->had.sums, xxh3);
    TRY(buf_check(&w->had.sums));
    w->broken = false;
    return 0;
}

static struct st_tensor tensor_of(const struct column *c, int64_t rows)
{
    struct st_tensor t = {.name = (char *)(uintptr_t)c->spec.name,
                          .type = c->spec.type,
                          .rank = c->spec.rank + 1};
    t.dim[0] = c->spec.fixed ? c->entries : rows;
    memcpy(t.dim + 1, c->spec.dim, (size_t)c->spec.rank * sizeof *t.dim);
    return t;
}

int shard_flush(struct shard_writer *w)
{
    struct st_tensor tensor[SHARD_COLUMNS];
    const void *data[SHARD_COLUMNS];
    if (w->broken)
        bug("a run goes on after a shard was lost");
    if (w->id.rows == 0)
        return 0;
    if (w->dir && w->id.index > SHARD_SHARDS_MAX)
        return err_set(E_CONFIG,
                       "%s: a run in a folder has at most %d shards: split it "
                       "into parts",
                       w->dir, SHARD_SHARDS_MAX + 1);
    for (int i = 0; i < w->columns; i++) {
        const struct column *c = &w->column[w->order[i]];
        tensor[i] = tensor_of(c, w->id.rows);
        data[i] = c->data;
    }
    struct shard_head_new n = {.id = w->id,
                               .tensor = tensor,
                               .data = data,
                               .tensors = w->columns,
                               .fixed = buf_text(&w->fixed)};
    TRY(write_one(w, &n));
    w->id.index++;
    w->id.first_row += w->id.rows;
    w->id.rows = 0;
    for (int c = 0; c < w->columns; c++)
        w->column[c].entries = 0;
    return 0;
}

int64_t shard_written(const struct shard_writer *w)
{
    return w->written;
}

static int write_end(struct shard_writer *w)
{
    struct shard_head_new n = {.id = w->id};
    n.id.end = true;
    n.id.first_row = w->first_row;
    n.id.rows = w->id.first_row - w->first_row;
    n.digest = hash_bytes(buf_text(&w->had.sums), w->had.sums.len);
    n.end_meta = (const char *const *)(void *)w->end_meta.p;
    n.end_metas = (int64_t)(w->end_meta.len / (2 * sizeof(char *)));
    return write_one(w, &n);
}

int shard_finish(struct shard_writer *w)
{
    int rc = shard_flush(w);
    if (rc == 0)
        rc = write_end(w);
    shard_abandon(w);
    return rc;
}
