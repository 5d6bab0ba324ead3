/* SPDX-License-Identifier: MIT */
/* look_model.c - safetensors files that are no shards: checkpoints, training states,
 * models of others.
 *
 * Their structure is always verified, and the checksum over the data where the metadata
 * has one (data_xxh3, which draft-train writes); `--stats` reads every number. */
#include "look_parts.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "mem.h"
#include "step.h"

#define MODEL "model.safetensors"
#define STATE "state.safetensors"

static bool has(const char *dir, const char *name)
{
    char *path = file_path(dir, name);
    bool there = path && file_exists(path);
    mem_free(path);
    return there;
}

bool look_is_checkpoint(const char *dir)
{
    return has(dir, MODEL) || has(dir, MODEL ".index.json") || has(dir, STATE);
}

/* ---- one file ---- */

static bool is_float(enum st_type t)
{
    return t == ST_F8_E4M3 || t == ST_BF16 || t == ST_F16 || t == ST_F32 || t == ST_F64;
}

static int add_tensor(struct facts *f, const struct st_file *file,
                      const struct st_tensor *t)
{
    struct look_numbers numbers = {0};
    if (is_float(t->type)) {
        int64_t bad =
            look_numbers_add(&numbers, st_data(file, t), t->type, st_count(t), 1);
        if (bad >= 0)
            return err_set(E_FORMAT, "%s: tensor %s: number %" PRId64 " is not finite",
                           file->path, t->name, bad);
    }
    facts_item(f);
    facts_part_text(f, "name", t->name, true);
    facts_part_text(f, "type", st_type_name(t->type), true);
    facts_part_shape(f, "shape", t->rank, t->dim);
    if (is_float(t->type))
        look_numbers_tell(f, &numbers);
    facts_item_end(f);
    return 0;
}

/* Sums over the tensors of one file or many. */
struct sums {
    int64_t tensors, elements;
    uint64_t bytes;
};

static void add_sums(struct sums *s, const struct st_tensor *t)
{
    s->tensors++;
    s->elements += st_count(t);
    s->bytes += t->end - t->begin;
}

static void tell_sums(struct facts *f, const struct sums *s)
{
    facts_count(f, "tensors", s->tensors);
    facts_count(f, "elements", s->elements);
    facts_bytes(f, "bytes", s->bytes);
}

static int tell_file(struct look *l, const struct st_file *file)
{
    struct facts *f = &l->facts;
    struct sums sums = {0};
    TRY(st_check_data(file));
    facts_begin(f, file->path, "safetensors", "safetensors file, whole");
    look_meta(f, &file->header);
    for (int64_t i = 0; i < file->header.tensors; i++)
        add_sums(&sums, &file->header.tensor[i]);
    tell_sums(f, &sums);
    if (!l->stats)
        return 0;
    facts_list(f, "numbers");
    for (int64_t i = 0; i < file->header.tensors; i++)
        TRY(add_tensor(f, file, &file->header.tensor[i]));
    facts_list_end(f);
    return 0;
}

int look_file(struct look *l, const char *path)
{
    struct st_file f;
    TRY(st_open(&f, path));
    int rc = tell_file(l, &f);
    st_close(&f);
    return rc;
}

/* ---- checkpoints ---- */

/* What config.json calls the model; nothing of it is required here. */
static int tell_config(struct facts *f, const char *dir)
{
    struct json *root;
    const char *text = NULL;
    char *path = file_path(dir, "config.json");
    int rc = path ? json_load(&root, path) : E_MEMORY;
    mem_free(path);
    TRY(rc);
    const struct json *names = json_get(root, "architectures");
    if (json_is_array(names) && json_size(names) > 0 &&
        json_to_text(json_at(names, 0), &text) == 0)
        facts_text(f, "architecture", text);
    if (json_have_text(root, "model_type", &text) == 1)
        facts_text(f, "model_type", text);
    json_free(root);
    return 0;
}

static int tell_model(struct look *l, const struct st_model *m)
{
    struct facts *f = &l->facts;
    struct sums sums = {0};
    uint64_t digest;
    for (int64_t i = 0; i < m->files; i++)
        TRY(st_check_data(&m->file[i]));
    TRY(tell_config(f, m->dir));
    for (int64_t i = 0; i < m->entries; i++)
        add_sums(&sums, m->entry[i].tensor);
    facts_count(f, "files", m->files);
    tell_sums(f, &sums);
    TRY(st_model_digest(m, &digest));
    facts_hash(f, "digest", digest);
    if (m->files > 0)
        look_meta(f, &m->file[0].header);
    if (!l->stats)
        return 0;
    facts_list(f, "numbers");
    for (int64_t i = 0; i < m->entries; i++)
        TRY(add_tensor(f, m->entry[i].file, m->entry[i].tensor));
    facts_list_end(f);
    return 0;
}

/* Decimal text of the metadata. */
static int need_count(const struct st_file *f, const char *key, int64_t *out)
{
    const char *text = st_meta(&f->header, key);
    char *end = NULL;
    errno = 0;
    *out = text ? strtoll(text, &end, 10) : -1;
    if (text && *text && !*end && !errno && *out >= 0)
        return 0;
    return err_set(E_FORMAT, "%s: no count \"%s\" in the metadata", f->path, key);
}

static int tell_state(struct look *l, const char *dir)
{
    static const char *const keys[] = {"step", "epoch", "next_row"};
    struct st_file f;
    char *path = file_path(dir, STATE);
    int rc = path ? st_open(&f, path) : E_MEMORY;
    mem_free(path);
    TRY(rc);
    rc = st_check_data(&f);
    for (int i = 0; i < 3 && rc == 0; i++) {
        int64_t value;
        rc = need_count(&f, keys[i], &value);
        if (rc == 0)
            facts_count(&l->facts, keys[i], value);
    }
    st_close(&f);
    return rc;
}

/* The facts of a checkpoint into those that were begun. */
static int tell_checkpoint(struct look *l, const char *dir)
{
    struct st_model m;
    TRY(st_model_open(&m, dir));
    int rc = tell_model(l, &m);
    st_model_close(&m);
    if (rc == 0 && has(dir, STATE))
        rc = tell_state(l, dir);
    return rc;
}

int look_checkpoint(struct look *l, const char *dir)
{
    if (has(dir, STATE))
        facts_begin(&l->facts, dir, "checkpoint", "checkpoint of a training, whole");
    else
        facts_begin(&l->facts, dir, "model", "model, whole");
    return tell_checkpoint(l, dir);
}

/* ---- folders of checkpoints ---- */

static int by_step(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Appends the steps that have a checkpoint to `steps` (int64_t each), ascending. */
static int list_steps(const char *run, struct buf *steps)
{
    struct dirent *e;
    DIR *d = opendir(run);
    if (!d)
        return err_errno(errno, "cannot list %s", run);
    while (errno = 0, (e = readdir(d))) {
        int64_t step = step_number(e->d_name);
        if (step >= 0)
            buf_add(steps, &step, sizeof step);
    }
    int rc = errno ? err_errno(errno, "cannot list %s", run) : 0;
    closedir(d);
    TRY(rc);
    TRY(buf_check(steps));
    if (steps->len > 0)
        qsort(steps->p, steps->len / sizeof(int64_t), sizeof(int64_t), by_step);
    return 0;
}

static char *step_path(const char *run, int64_t step)
{
    char name[STEP_NAME];
    return file_path(run, step_name(name, step));
}

bool look_is_training(const char *dir)
{
    struct buf steps = {0};
    bool is = list_steps(dir, &steps) == 0 && steps.len > 0;
    buf_drop(&steps);
    return is;
}

/* Each checkpoint in turn fills the facts anew, so that the newest's stay. */
int look_training(struct look *l, const char *dir)
{
    struct buf steps = {0};
    int rc = list_steps(dir, &steps);
    int64_t n = (int64_t)(steps.len / sizeof(int64_t));
    for (int64_t i = 0; i < n && rc == 0; i++) {
        char *path = step_path(dir, ((const int64_t *)(const void *)steps.p)[i]);
        facts_begin(&l->facts, dir, "training", "training, all checkpoints whole");
        facts_count(&l->facts, "checkpoints", n);
        facts_text(&l->facts, "newest", path ? path : "");
        rc = path ? tell_checkpoint(l, path) : E_MEMORY;
        mem_free(path);
    }
    buf_drop(&steps);
    return rc;
}

/* ---- where to go on ---- */

static int read_next_row(const char *path, int64_t *row)
{
    struct st_file f;
    TRY(st_open(&f, path));
    int rc = st_check_data(&f);
    if (rc == 0)
        rc = need_count(&f, "next_row", row);
    st_close(&f);
    return rc;
}

int look_next_row(const char *run, int64_t *row)
{
    struct buf steps = {0};
    char *dir, *path = NULL;
    int rc = list_steps(run, &steps);
    *row = 0;
    if (rc < 0 || (steps.len == 0 && !has(run, STATE))) {
        buf_drop(&steps);
        return rc;
    }
    const int64_t *step = (const int64_t *)(const void *)steps.p;
    dir = steps.len == 0 ? mem_text(run)
                         : step_path(run, step[steps.len / sizeof *step - 1]);
    path = dir ? file_path(dir, STATE) : NULL;
    rc = path ? read_next_row(path, row) : E_MEMORY;
    mem_free(path);
    mem_free(dir);
    buf_drop(&steps);
    return rc;
}
