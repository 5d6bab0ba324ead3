/* SPDX-License-Identifier: MIT */
/* target_delta.c - Gated DeltaNet in place of attention.
 *
 *   u = norm(x);  mix, z, a, b = Wm u, Wz u, Wa u, Wb u
 *   q, k, v, decay, beta = convolution and gates of mix, a, b     (op_delta_mix)
 *   o = the recurrence over them                                  (op_delta)
 *   x += Wo (norm(o) silu(z))
 *
 * A state cannot be taken back, so a cache keeps it as it was before its last rows,
 * together with what came in for those: mix, a and b.  A pass first replays the rows
 * that were kept, then runs its own, and leaves the state before the last `window` of
 * them.  Cutting is thus a number here too. */
#include "target_parts.h"

#include "err.h"
#include "op.h"

int target_delta_rows(struct target *t, struct acts *a, const struct target_pass *p)
{
    const struct cache *c = p->cache;
    if (!t->config.hybrid)
        return 0;
    a->first = c ? c->base : 0;
    a->replayed = c ? c->len - c->base : 0;
    int64_t tried = c ? c->window : 0;
    a->keep = a->replayed + (p->rows > tried ? p->rows - tried : 0);
    int32_t *from = a->from.data;
    if (a->replayed)
        TRY(dev_put(t->dev, from, c->from, (size_t)a->replayed * sizeof *from));
    return dev_put(t->dev, from + a->replayed, p->lo, (size_t)p->rows * sizeof *from);
}

/* recall brings the inputs of the rows to replay, and of the three before them. */
static void recall(struct dev *d, const struct acts *a, const struct cache_delta *c)
{
    int64_t n = a->replayed, lead = OP_TAPS - 1 + n;
    op_convert(d, tensor_rows(a->mix, 0, lead), tensor_rows(c->mix, 0, lead));
    op_convert(d, tensor_rows(a->a, 0, n), tensor_rows(c->a, 0, n));
    op_convert(d, tensor_rows(a->b, 0, n), tensor_rows(c->b, 0, n));
}

/* retain keeps the inputs of the rows behind the state. */
static void retain(struct dev *d, const struct acts *a, const struct cache_delta *c,
                   int64_t rows)
{
    int64_t n = a->replayed + rows - a->keep, lead = OP_TAPS - 1 + n;
    op_convert(d, tensor_rows(c->mix, 0, lead), tensor_rows(a->mix, a->keep, lead));
    op_convert(d, tensor_rows(c->a, 0, n), tensor_rows(a->a, a->keep, n));
    op_convert(d, tensor_rows(c->b, 0, n), tensor_rows(a->b, a->keep, n));
}

void target_delta(struct target *t, int64_t l, const struct acts *a,
                  const struct target_pass *p)
{
    struct dev *d = t->dev;
    const struct layer *y = &t->layer[l];
    const struct cache_delta *c = p->cache ? &p->cache->delta[l] : NULL;
    int64_t r = a->replayed, n = p->rows, all = r + n;
    struct tensor lo = tensor_rows(a->from, 0, all);
    struct tensor da = tensor_rows(a->a, 0, all), db = tensor_rows(a->b, 0, all);
    struct tensor out = tensor_rows(a->out, 0, all), own = tensor_rows(a->out, r, n);
    struct delta_in x = {tensor_rows(a->dq, 0, all), tensor_rows(a->dk, 0, all),
                         tensor_rows(a->dv, 0, all), tensor_rows(a->decay, 0, all),
                         tensor_rows(a->beta, 0, all)};
    float eps = (float)t->config.eps;
    op_rmsnorm(d, a->u, a->x, y->input_norm, eps);
    if (c)
        recall(d, a, c);
    op_matmul(d, tensor_rows(a->mix, OP_TAPS - 1 + r, n), a->u, y->mix, false);
    op_matmul(d, tensor_rows(da, r, n), a->u, y->a, false);
    op_matmul(d, tensor_rows(db, r, n), a->u, y->b, false);
    op_matmul(d, tensor_wide(a->z), a->u, y->z, false);
    op_delta_mix(d, x, tensor_rows(a->mix, 0, OP_TAPS - 1 + all), da, db, y->conv,
                 y->a_log, y->dt_bias, lo, a->first);
    op_delta(d, out, c ? c->state : a->state, x, lo, a->first, a->keep);
    op_norm_gate(d, own, own, y->out_norm, a->z, eps);
    op_matmul(d, a->x, tensor_wide(own), y->out, true);
    if (c)
        retain(d, a, c, n);
}

void target_delta_done(const struct acts *a, const struct target_pass *p)
{
    struct cache *c = p->cache;
    if (!c->delta)
        return;
    for (int64_t i = a->keep - a->replayed, n = 0; i < p->rows; i++)
        c->from[n++] = p->lo[i];
    c->base = a->first + a->keep;
}
