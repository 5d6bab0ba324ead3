/* SPDX-License-Identifier: MIT */
/* weights_draw.c - weights that nobody trained: for benches, which need no checkpoint.
 *
 * A matrix gets normal deviates of variance 1 / columns, so that products keep the size
 * of what they are given; vectors are ones. */
#include "weights_parts.h"

#include "err.h"
#include "op.h"

#include <math.h>

static size_t largest(const struct weights *w)
{
    size_t most = 0;
    for (int64_t i = 0; i < w->count; i++) {
        const struct weights_entry *e = &w->entry[i];
        struct tensor t = tensor_of(NULL, DT_BF16, e->rank, e->dim);
        if (e->to && e->form == WEIGHTS_PANELS && tensor_bytes(&t) > most)
            most = tensor_bytes(&t);
    }
    return most;
}

static void draw(struct dev *d, struct tensor t, uint64_t key)
{
    if (t.rank == 1)
        op_fill(d, t, 1);
    else
        op_normal(d, t, key, 1 / sqrtf((float)t.dim[1]));
}

static void draw_entry(const struct weights_entry *e, struct dev *d, struct arena *a,
                       void *staging, uint64_t key)
{
    struct tensor t = tensor_of(staging, DT_BF16, e->rank, e->dim);
    if (e->form == WEIGHTS_PANELS) {
        *e->to = weights_carve_panels(t, d, a);
        if (!a->base)
            return;
        draw(d, t, key);
        op_pack(d, *e->to, t);
        return;
    }
    bool act = e->form == WEIGHTS_ACT, rows = e->form == WEIGHTS_ROWS;
    enum dtype type = act ? d->act : rows ? DT_BF16 : DT_F32;
    *e->to = arena_tensor(a, type, e->rank, e->dim);
    if (a->base)
        draw(d, *e->to, key);
}

int weights_draw(struct weights *w, struct dev *d, struct arena *a, uint64_t seed)
{
    void *staging = NULL;
    size_t bytes = a->base ? largest(w) : 0;
    if (w->failed)
        return E_MEMORY;
    if (bytes)
        TRY(dev_alloc(d, &staging, bytes));
    for (int64_t i = 0; i < w->count; i++)
        if (w->entry[i].to)
            draw_entry(&w->entry[i], d, a, staging, seed + (uint64_t)i);
    int rc = a->base ? dev_sync(d) : 0;
    dev_free(d, staging, bytes);
    return rc;
}
