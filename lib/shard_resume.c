/* SPDX-License-Identifier: MIT */
/* shard_resume.c - finds the full shards that an interrupted run has left.
 *
 * A file has its final name only when it is whole and durable, so what is there can be
 * trusted as far as its checksums go.  A short shard is the last of a run; without the
 * end file behind it, it is made again like what was never written: how many rows the
 * run has in the end is for its writer to say. */
#include "shard_resume.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "hash.h"
#include "mem.h"

static int other(const char *path, const char *what, const char *there, const char *now)
{
    return err_set(E_CONFIG, "%s is of another run: %s is \"%s\", now \"%s\"", path,
                   what, there, now);
}

static int same_text(const char *path, const char *what, const char *there,
                     const char *now)
{
    return strcmp(there, now) == 0 ? 0 : other(path, what, there, now);
}

static int same_count(const char *path, const char *what, int64_t there, int64_t now)
{
    if (there == now)
        return 0;
    return err_set(E_CONFIG, "%s is of another run: %s is %" PRId64 ", now %" PRId64,
                   path, what, there, now);
}

/* The caller's pairs stand in the file in the same order; an end file may have more. */
static int same_meta(const char *path, const struct shard_head *h,
                     const struct shard_options *o)
{
    int64_t n = 0;
    for (int64_t i = 0; i < h->st.metas; i++) {
        const char *key = h->st.meta[2 * i], *value = h->st.meta[2 * i + 1];
        if (shard_head_reserved(key))
            continue;
        if (n < o->metas) {
            TRY(same_text(path, "a key", key, o->meta[2 * n]));
            TRY(same_text(path, key, value, o->meta[2 * n + 1]));
        } else if (!h->id.end) {
            return other(path, key, value, "");
        }
        n++;
    }
    return n >= o->metas ? 0 : other(path, o->meta[2 * n], "", o->meta[2 * n + 1]);
}

static int same_columns(const char *path, const struct shard_head *h,
                        const struct shard_options *o)
{
    TRY(same_count(path, "number of tensors", h->st.tensors, o->columns));
    for (int c = 0; c < o->columns; c++) {
        const struct shard_column *col = &o->column[c];
        const struct st_tensor *t = st_find(&h->st, col->name);
        if (!t)
            return other(path, "a tensor", "", col->name);
        TRY(same_text(path, col->name, st_type_name(t->type), st_type_name(col->type)));
        TRY(same_count(path, col->name, t->rank, col->rank + 1));
        for (int i = 0; i < col->rank; i++)
            TRY(same_count(path, col->name, t->dim[i + 1], col->dim[i]));
        TRY(same_count(path, col->name, shard_head_is_fixed(h->fixed, col->name),
                       col->fixed));
    }
    return 0;
}

static int same_run(const char *path, const struct shard_head *h,
                    const struct shard_options *o, const struct shard_id *id)
{
    TRY(same_text(path, "stage", h->id.stage, id->stage));
    TRY(same_text(path, "name", h->id.name, id->name));
    TRY(same_count(path, "part", h->id.part, id->part));
    TRY(same_count(path, "parts", h->id.parts, id->parts));
    TRY(same_meta(path, h, o));
    return h->id.end ? 0 : same_columns(path, h, o);
}

/* Parts are read together: what another one holds must be of the same run.  It may be
 * written, or its end file removed, at this moment. */
static int check_part(const char *dir, const char *name, const struct shard_options *o,
                      const struct shard_id *id, int64_t part)
{
    struct shard_head h;
    struct file_map m;
    const void *data;
    struct shard_id its = *id;
    its.part = part;
    char *path = file_path(dir, name);
    int rc = path ? shard_head_map(&h, &m, &data, path) : E_MEMORY;
    if (rc == 0) {
        const char *input = st_meta(&h.st, "input");
        rc = same_run(path, &h, o, &its);
        if (rc == 0 && input && o->input)
            rc = same_text(path, "input", input, o->input);
        shard_head_drop(&h);
        file_unmap(&m);
    } else if (path && !file_exists(path)) {
        rc = 0;
    }
    mem_free(path);
    return rc;
}

/* Another split of the same name in this folder would be read together with ours. */
static int check_folder(const char *dir, const struct shard_options *o,
                        const struct shard_id *id, bool *end)
{
    char **file;
    int64_t n;
    int rc = 0;
    *end = false;
    TRY(file_list(dir, &file, &n));
    for (int64_t i = 0; i < n && rc == 0; i++) {
        struct shard_id f;
        size_t len;
        if (!shard_name_parse(&f, &len, file[i]) || len != strlen(id->name) ||
            memcmp(file[i], id->name, len) != 0)
            continue;
        if (f.parts != id->parts)
            rc = err_set(E_CONFIG,
                         "%s holds %s, a run in %" PRId64 " parts; this is one of "
                         "%" PRId64,
                         dir, file[i], f.parts, id->parts);
        else if (f.part != id->part && (f.end || f.index == 0))
            rc = check_part(dir, file[i], o, id, f.part);
        *end = *end || (f.end && f.part == id->part);
    }
    file_list_free(file, n);
    return rc;
}

static char *path_of(const char *dir, const struct shard_id *id)
{
    struct buf name = {0};
    shard_name_add(&name, id);
    char *path = buf_check(&name) < 0 ? NULL : file_path(dir, buf_text(&name));
    buf_drop(&name);
    return path;
}

void shard_resume_drop_view(struct shard_resume *r)
{
    shard_head_drop(&r->last);
    file_unmap(&r->map);
    mem_free(r->path);
    r->path = NULL;
    r->view = (struct shard_view){0};
}

static void hold(struct shard_resume *r, char *path, const struct shard_head *h,
                 const struct file_map *m, const void *data)
{
    shard_resume_drop_view(r);
    r->last = *h;
    r->map = *m;
    r->path = path;
    r->view = (struct shard_view){path, h->st, h->id.first_row, h->id.rows, data};
}

static int check_place(const struct shard_resume *r, const char *path,
                       const struct shard_head *h, const struct shard_options *o)
{
    TRY(same_count(path, "its number", h->id.end ? -1 : h->id.index, r->shards));
    TRY(same_count(path, "its first row", h->id.first_row, o->first_row + r->rows));
    if (h->id.rows <= r->rows_per_shard)
        return 0;
    return same_count(path, "its number of rows", h->id.rows, r->rows_per_shard);
}

/* Adds the shard in a file, which becomes the last known; path is taken on success. */
static int take(struct shard_resume *r, char *path, const struct shard_options *o,
                const struct shard_id *id)
{
    struct shard_head h;
    struct file_map m;
    const void *data;
    TRY(shard_head_map(&h, &m, &data, path));
    int rc = same_run(path, &h, o, id);
    if (rc == 0)
        rc = check_place(r, path, &h, o);
    if (rc < 0) {
        shard_head_drop(&h);
        file_unmap(&m);
        return rc;
    }
    hold(r, path, &h, &m, data);
    shard_head_sum(&r->sums, h.xxh3);
    r->shards++;
    r->rows += h.id.rows;
    return buf_check(&r->sums);
}

/* A short shard is the last of its run: what follows it shows that it was cut
 * otherwise. */
static int check_full(const struct shard_resume *r)
{
    if (r->shards == 0)
        return 0;
    return same_count(r->path, "its number of rows", r->view.rows, r->rows_per_shard);
}

static int take_all(struct shard_resume *r, const char *dir,
                    const struct shard_options *o, struct shard_id at)
{
    for (; at.index <= SHARD_SHARDS_MAX; at.index++) {
        char *path = path_of(dir, &at);
        if (!path)
            return E_MEMORY;
        bool there = file_exists(path);
        int rc = there ? check_full(r) : 0;
        if (there && rc == 0)
            rc = take(r, path, o, &at);
        if (r->path != path)
            mem_free(path);
        TRY(rc);
        if (!there)
            break;
    }
    return 0;
}

/* Compares the end file with the shards that were found. */
static int compare_end(struct shard_resume *r, const char *path,
                       const struct shard_head *h, const struct shard_options *o,
                       const struct shard_id *id)
{
    TRY(same_run(path, h, o, id));
    const char *input = st_meta(&h->st, "input");
    if (o->input)
        TRY(same_text(path, "input", input ? input : "", o->input));
    if (h->id.end && h->id.index > r->shards)
        return check_full(r);
    r->whole = h->id.end && h->id.first_row == o->first_row &&
               h->id.index == r->shards && h->id.rows == r->rows &&
               h->digest == hash_bytes(buf_text(&r->sums), r->sums.len);
    return r->whole ? 0 : err_set(E_FORMAT, "%s does not fit its shards", path);
}

/* Without its shards the end file must go before they come back, since until then the
 * folder would pass for whole. */
static int remove_end(const char *dir, const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return err_errno(errno, "cannot remove %s", path);
    return file_sync_dir(dir);
}

static int look_at_end(struct shard_resume *r, const char *dir,
                       const struct shard_options *o, struct shard_id id)
{
    struct shard_head h;
    struct file_map m;
    const void *data;
    id.end = true;
    char *path = path_of(dir, &id);
    int rc = path ? shard_head_map(&h, &m, &data, path) : E_MEMORY;
    if (rc == 0) {
        rc = compare_end(r, path, &h, o, &id);
        shard_head_drop(&h);
        file_unmap(&m);
    }
    if (rc == 0 && !r->whole)
        rc = remove_end(dir, path);
    mem_free(path);
    return rc;
}

/* Forgets a short shard at the end; the one before it is the last again. */
static int forget_short(struct shard_resume *r, const char *dir, struct shard_id id)
{
    struct shard_head h;
    struct file_map m;
    const void *data;
    r->shards--;
    r->rows -= r->view.rows;
    r->sums.len -= 8;
    shard_resume_drop_view(r);
    id.index = r->shards - 1;
    if (r->shards == 0)
        return 0;
    char *path = path_of(dir, &id);
    int rc = path ? shard_head_map(&h, &m, &data, path) : E_MEMORY;
    if (rc < 0)
        mem_free(path);
    else
        hold(r, path, &h, &m, data);
    return rc;
}

static int scan(struct shard_resume *r, const char *dir, const struct shard_options *o,
                const struct shard_id *id)
{
    bool end;
    TRY(check_folder(dir, o, id, &end));
    TRY(take_all(r, dir, o, *id));
    if (end)
        TRY(look_at_end(r, dir, o, *id));
    if (r->whole || r->shards == 0)
        return 0;
    if (r->view.rows < r->rows_per_shard)
        TRY(forget_short(r, dir, *id));
    if (r->shards == 0)
        return 0;
    int rc = shard_head_check(&r->last, r->view.data);
    return rc < 0 ? err_wrap(rc, "%s", r->path) : 0;
}

int shard_resume_scan(struct shard_resume *r, const char *dir,
                      const struct shard_options *o, const struct shard_id *id,
                      int64_t rows_per_shard)
{
    *r = (struct shard_resume){.rows_per_shard = rows_per_shard};
    int rc = scan(r, dir, o, id);
    if (rc < 0)
        shard_resume_drop(r);
    return rc;
}

void shard_resume_drop(struct shard_resume *r)
{
    shard_resume_drop_view(r);
    buf_drop(&r->sums);
}
