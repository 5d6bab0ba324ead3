/* SPDX-License-Identifier: MIT */
/* plan.c - lines of the memory table, their sum, and what would make it smaller. */
#include "plan.h"

#include "err.h"
#include "num.h"
#include "optimizer.h"

#include <stdio.h>

/* weight_bytes counts as drafter_new carves: weights, and RoPE's frequencies. */
static size_t weight_bytes(const struct dev *d, const struct drafter *m)
{
    return arena_bytes(d->act, T1(m->table.count)) +
           arena_bytes(DT_F32, T1(m->config.head_dim / 2));
}

int plan_make(struct plan *p, const struct plan_for *f)
{
    const struct batch_shape *s = &f->shape;
    struct drafter shape = {.config = *s->config, .dev = f->dev};
    int64_t rows = s->anchors * s->config->block;
    struct bill *b = &p->bill;
    size_t gradients, state;
    *p = (struct plan){0};
    TRY(param_table(&shape.table, s->config));
    p->trained = shape.table.trained;
    p->work = drafter_bytes(&shape, s->length, rows, rows - s->anchors, true);
    optimizer_bytes(f->dev, shape.table.count, f->accumulate, &gradients, &state);
    for (const struct dev_part *own = dev_parts(f->dev); own->name; own++)
        bill_add(b, own->name, own->bytes, "%s", own->what);
    p->own = b->total;
    bill_add(b, "vocabulary", f->vocabulary, "the target's embedding and head, frozen");
    bill_add(b, "weights", weight_bytes(f->dev, &shape), "the drafter");
    bill_add(b, "gradients", gradients, "%s",
             f->accumulate ? "summed in f32" : "of one row");
    bill_add(b, "optimizer", state,
             "two moments; f32 masters where weights are not f32");
    bill_add(b, "row", batch_bytes(s), "hidden states of one row");
    bill_add(b, "activations", p->work, "forward and backward of one row");
    param_drop(&shape.table);
    return 0;
}

/* ---- too large ---- */

/* total_with is the plan's total with another number of anchors and layers; SIZE_MAX
 * when it cannot be told. */
static size_t total_with(const struct plan_for *f, int64_t anchors, int64_t layers)
{
    struct drafter_config c = *f->shape.config;
    struct plan_for less = *f;
    struct plan p;
    c.layers = layers;
    less.shape.config = &c;
    less.shape.anchors = anchors;
    return plan_make(&p, &less) < 0 ? SIZE_MAX : p.bill.total;
}

/* most_anchors is the largest number that fits, a multiple of 8 from there on; 0: not
 * even one does. */
static int64_t most_anchors(const struct plan_for *f, size_t available)
{
    const int64_t layers = f->shape.config->layers;
    int64_t low = 0, high = f->shape.anchors; // low fits, or is 0; high does not
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (total_with(f, middle, layers) <= available)
            low = middle;
        else
            high = middle;
    }
    return low < 8 ? low : low / 8 * 8;
}

static int64_t most_layers(const struct plan_for *f, size_t available)
{
    int64_t n = f->shape.config->layers - 1;
    while (n > 0 && total_with(f, f->shape.anchors, n) > available)
        n--;
    return n;
}

int plan_fits(const struct plan *p, const struct plan_for *f, size_t available)
{
    char need[32], have[32], way[96] = "no number of --anchors or --layers would";
    if (p->bill.total <= available)
        return 0;
    int64_t anchors = most_anchors(f, available);
    int64_t layers = anchors ? 0 : most_layers(f, available);
    if (anchors)
        snprintf(way, sizeof way, "--anchors %lld would", (long long)anchors);
    else if (layers)
        snprintf(way, sizeof way, "--layers %lld would", (long long)layers);
    return err_set(E_CONFIG, "memory: the run takes %s, the device has %s: %s fit",
                   num_bytes(need, sizeof need, (double)p->bill.total),
                   num_bytes(have, sizeof have, (double)available), way);
}

void plan_print(struct buf *out, const struct plan *p)
{
    char note[64];
    snprintf(note, sizeof note, "%lld parameters trained", (long long)p->trained);
    bill_print(out, &p->bill, "memory", note);
}
