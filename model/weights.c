/* SPDX-License-Identifier: MIT */
/* weights.c - the list of wants, and its match with what a checkpoint holds. */
#include "weights_parts.h"

#include "err.h"
#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE = 192 }; /* eight dimensions in print */

#define SCALE "_scale_inv"

void weights_want(struct weights *w, struct tensor *to, enum weights_form form,
                  int64_t rows, int64_t cols, const char *fmt, ...)
{
    struct weights_entry *at = mem_room(w->entry, w->count, &w->capacity, sizeof *at);
    if (!at) {
        w->failed = true;
        return;
    }
    w->entry = at;
    struct weights_entry *e = &w->entry[w->count++];
    *e = (struct weights_entry){.form = form,
                                .part = w->part,
                                .rank = cols ? 2 : 1,
                                .dim = {rows, cols},
                                .to = to};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->name, sizeof e->name, fmt, ap);
    va_end(ap);
}

void weights_pick(struct weights *w, struct weights_pick p)
{
    if (w->failed)
        return;
    struct weights_entry *e = &w->entry[w->count - 1];
    if (e->dim[0] % p.width || e->dim[0] / p.width * p.step > p.rows)
        bug("%s: %lld rows by heads of %lld out of %lld", e->name, (long long)e->dim[0],
            (long long)p.width, (long long)p.rows);
    e->picked = true;
    e->pick = p;
}

void weights_drop(struct weights *w)
{
    mem_free(w->entry);
    *w = (struct weights){0};
}

/* ---- matching ---- */

/* shape prints "[512, 64]". */
static const char *shape(char out[SHAPE], int rank, const int64_t *dim)
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        n += snprintf(out + n, SHAPE - (size_t)n, "%s%lld", i ? ", " : "[",
                      (long long)dim[i]);
    snprintf(out + n, SHAPE - (size_t)n, "%s", rank ? "]" : "[]");
    return out;
}

static int check_shape(const struct st_entry *found, int rank, const int64_t *dim,
                       const char *dir)
{
    const struct st_tensor *t = found->tensor;
    char is[SHAPE], wanted[SHAPE];
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = t->dim[i] == dim[i];
    if (same)
        return 0;
    return err_set(E_FORMAT, "%s: tensor %s is %s, config.json makes it %s", dir,
                   found->name, shape(is, t->rank, t->dim), shape(wanted, rank, dim));
}

/* check_stored compares with the shape that the file should have. */
static int check_stored(const struct weights_entry *e, const char *dir)
{
    int64_t dim[3] = {e->picked ? e->pick.rows : e->dim[0], e->dim[1], 0};
    int rank = e->rank;
    if (e->form == WEIGHTS_TAPS) {
        dim[2] = dim[1];
        dim[1] = 1;
        rank = 3;
    }
    return check_shape(e->found, rank, dim, dir);
}

static bool is_small(const struct weights_entry *e)
{
    return e->form == WEIGHTS_F32 || e->form == WEIGHTS_ONE || e->form == WEIGHTS_TAPS;
}

static int check_type(const struct weights_entry *e, const char *dir)
{
    enum st_type t = e->found->tensor->type;
    if (t == ST_BF16 || t == ST_F32 || e->scale || (t == ST_F16 && is_small(e)))
        return 0;
    return err_set(E_CONFIG, "%s: tensor %s is %s, supported are BF16 and F32", dir,
                   e->name, st_type_name(t));
}

/* find_scale finds the scales that belong to a matrix of F8_E4M3. */
static int find_scale(struct weights_entry *e, const struct st_model *m)
{
    char name[sizeof e->name + sizeof SCALE];
    const struct st_tensor *t = e->found->tensor;
    snprintf(name, sizeof name, "%s" SCALE, e->name);
    e->scale = st_model_find(m, name);
    if (!e->scale)
        return err_set(E_FORMAT, "%s: tensor %s is missing", m->dir, name);
    int64_t dim[2] = {weights_blocks(t->dim[0]), weights_blocks(t->dim[1])};
    TRY(check_shape(e->scale, 2, dim, m->dir));
    enum st_type type = e->scale->tensor->type;
    if (type != ST_F32 && type != ST_BF16)
        return err_set(E_CONFIG, "%s: tensor %s is %s, supported are BF16 and F32",
                       m->dir, name, st_type_name(type));
    return 0;
}

static bool is_matrix(const struct weights_entry *e)
{
    return e->form == WEIGHTS_PANELS || (e->form == WEIGHTS_ROWS && e->rank == 2);
}

static int match_entry(const struct weights *w, struct weights_entry *e,
                       const struct st_model *m)
{
    e->found = st_model_find(m, e->name);
    if (!e->found)
        return err_set(E_FORMAT, "%s: tensor %s is missing", m->dir, e->name);
    TRY(check_stored(e, m->dir));
    if (w->fp8 && is_matrix(e) && e->found->tensor->type == ST_F8_E4M3)
        TRY(find_scale(e, m));
    return check_type(e, m->dir);
}

static bool is_wanted(const struct weights *w, const char *name)
{
    for (int64_t i = 0; i < w->count; i++) {
        const struct weights_entry *e = &w->entry[i];
        if (strcmp(e->name, name) == 0 ||
            (e->scale && strcmp(e->scale->name, name) == 0))
            return true;
    }
    for (const char *const *p = w->ignore; p && *p; p++)
        if (strncmp(name, *p, strlen(*p)) == 0)
            return true;
    return false;
}

int weights_match(struct weights *w, const struct st_model *m)
{
    if (w->failed)
        return E_MEMORY;
    for (int64_t i = 0; i < w->count; i++)
        TRY(match_entry(w, &w->entry[i], m));
    for (int64_t i = 0; i < m->entries; i++)
        if (!is_wanted(w, m->entry[i].name))
            return err_set(E_FORMAT, "%s: tensor %s is not part of this architecture",
                           m->dir, m->entry[i].name);
    return 0;
}
