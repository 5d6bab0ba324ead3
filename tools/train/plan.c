/* SPDX-License-Identifier: MIT */
/* plan.c - lines of the memory table, and their sum. */
#include "plan.h"

#include "err.h"
#include "num.h"
#include "optimizer.h"

static void add(struct plan *p, const char *name, size_t bytes, const char *what)
{
    p->line[p->lines++] = (struct plan_line){name, what, bytes};
    p->total += bytes;
}

/* weight_bytes counts as drafter_new carves: weights, and RoPE's frequencies. */
static size_t weight_bytes(const struct dev *d, const struct drafter *m)
{
    return arena_bytes(d->act, T1(m->table.count)) +
           arena_bytes(DT_F32, T1(m->config.head_dim / 2));
}

int plan_make(struct plan *p, struct dev *d, const struct batch_shape *s,
              bool accumulate, size_t held)
{
    struct drafter shape = {.config = *s->config, .dev = d};
    int64_t rows = s->anchors * s->config->block;
    size_t gradients, state;
    *p = (struct plan){0};
    TRY(param_table(&shape.table, s->config));
    p->trained = shape.table.trained;
    p->work = drafter_bytes(&shape, s->length, rows, rows - s->anchors, true);
    optimizer_bytes(d, shape.table.count, accumulate, &gradients, &state);
    add(p, "vocabulary", held, "the target's embedding and head, frozen");
    add(p, "weights", weight_bytes(d, &shape), "the drafter");
    add(p, "gradients", gradients, accumulate ? "summed in f32" : "of one row");
    add(p, "optimizer", state, "two moments; f32 masters where weights are not f32");
    add(p, "row", batch_bytes(s), "hidden states of one row");
    add(p, "activations", p->work, "forward and backward of one row");
    param_drop(&shape.table);
    return 0;
}

void plan_print(struct buf *out, const struct plan *p)
{
    char text[32];
    buf_addf(out, "%-12s %15s  %10s\n", "memory", "bytes", "");
    for (int i = 0; i < p->lines; i++)
        buf_addf(out, "%-12s %15zu  %10s  %s\n", p->line[i].name, p->line[i].bytes,
                 num_bytes(text, sizeof text, (double)p->line[i].bytes),
                 p->line[i].what);
    buf_addf(out, "%-12s %15zu  %10s  %lld parameters trained\n", "total", p->total,
             num_bytes(text, sizeof text, (double)p->total), (long long)p->trained);
}
