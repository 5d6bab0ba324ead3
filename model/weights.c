/* SPDX-License-Identifier: MIT */
/* weights.c - matching by name, and loading through one staging buffer.
 *
 * What is converted or packed goes through device memory of the size of the largest
 * such tensor, which is given back at the end. */
#include "weights.h"

#include "err.h"
#include "mem.h"
#include "op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE = 128 }; /* four dimensions in print */

struct weights_entry {
    char name[96];
    enum weights_form form;
    int rank;
    int64_t dim[2];
    struct tensor *to;
    const struct st_entry *found;
};

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
    *e = (struct weights_entry){
        .form = form, .rank = cols ? 2 : 1, .dim = {rows, cols}, .to = to};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->name, sizeof e->name, fmt, ap);
    va_end(ap);
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

static int check_entry(const struct weights_entry *e, const char *dir)
{
    const struct st_tensor *t = e->found->tensor;
    char found[SHAPE], wanted[SHAPE];
    bool same = t->rank == e->rank;
    for (int i = 0; same && i < e->rank; i++)
        same = t->dim[i] == e->dim[i];
    if (!same)
        return err_set(E_FORMAT, "%s: tensor %s is %s, config.json makes it %s", dir,
                       e->name, shape(found, t->rank, t->dim),
                       shape(wanted, e->rank, e->dim));
    if (t->type != ST_BF16 && t->type != ST_F32)
        return err_set(E_CONFIG, "%s: tensor %s is %s, supported are BF16 and F32", dir,
                       e->name, st_type_name(t->type));
    return 0;
}

static bool is_wanted(const struct weights *w, const char *name)
{
    for (int64_t i = 0; i < w->count; i++)
        if (strcmp(w->entry[i].name, name) == 0)
            return true;
    return false;
}

int weights_match(struct weights *w, const struct st_model *m)
{
    if (w->failed)
        return E_MEMORY;
    for (int64_t i = 0; i < w->count; i++) {
        struct weights_entry *e = &w->entry[i];
        e->found = st_model_find(m, e->name);
        if (!e->found)
            return err_set(E_FORMAT, "%s: tensor %s is missing", m->dir, e->name);
        TRY(check_entry(e, m->dir));
    }
    for (int64_t i = 0; i < m->entries; i++)
        if (!is_wanted(w, m->entry[i].name))
            return err_set(E_FORMAT, "%s: tensor %s is not part of this architecture",
                           m->dir, m->entry[i].name);
    return 0;
}

/* ---- loading ---- */

/* stored is the tensor as the file has it, at `data`. */
static struct tensor stored(const struct weights_entry *e, void *data)
{
    enum dtype type = e->found->tensor->type == ST_BF16 ? DT_BF16 : DT_F32;
    return tensor_of(data, type, e->rank, e->dim);
}

static size_t staging_bytes(const struct weights *w)
{
    size_t most = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const struct weights_entry *e = &w->entry[i];
        struct tensor t = stored(e, NULL);
        bool staged = e->form == WEIGHTS_PANELS || e->form == WEIGHTS_ACT;
        if (staged && tensor_bytes(&t) > most)
            most = tensor_bytes(&t);
    }
    return most;
}

static struct tensor carve_panels(const struct weights_entry *e, struct dev *d,
                                  struct arena *a)
{
    struct tensor p = stored(e, NULL);
    int64_t bytes = (int64_t)op_pack_bytes(d, p);
    p.data = arena_tensor(a, DT_U8, T1(bytes)).data;
    p.layout = T_PANELS;
    return p;
}

static int load_entry(const struct weights_entry *e, struct dev *d, struct arena *a,
                      void *staging)
{
    const void *from = st_data(e->found->file, e->found->tensor);
    struct tensor raw = stored(e, staging);
    if (e->form == WEIGHTS_PANELS)
        *e->to = carve_panels(e, d, a);
    else if (e->form == WEIGHTS_ACT)
        *e->to = arena_tensor(a, d->act, e->rank, e->dim);
    else
        raw = *e->to = arena_tensor(a, raw.type, e->rank, e->dim);
    if (!a->base)
        return 0;
    TRY(dev_put(d, raw.data, from, tensor_bytes(&raw)));
    if (e->form == WEIGHTS_PANELS)
        op_pack(d, *e->to, raw);
    else if (e->form == WEIGHTS_ACT)
        op_convert(d, *e->to, raw);
    return 0;
}

int weights_load(struct weights *w, struct dev *d, struct arena *a)
{
    void *staging = NULL;
    size_t bytes = staging_bytes(w);
    int rc = 0;
    if (a->base && bytes)
        TRY(dev_alloc(d, &staging, bytes));
    for (int64_t i = 0; i < w->count; i++)
        if (w->entry[i].form != WEIGHTS_SKIP)
            TRY_GOTO(rc, load_entry(&w->entry[i], d, a, staging), out);
    if (a->base)
        rc = dev_sync(d);
out:
    dev_free(d, staging, bytes);
    return rc;
}

void weights_drop(struct weights *w)
{
    mem_free(w->entry);
    *w = (struct weights){0};
}
