/* SPDX-License-Identifier: MIT */
/* optimizer.c - norm, clip, update: three ops over flat memory.
 *
 * The norm is summed in f64 in a fixed order, so that a step is a function of its
 * inputs to the bit.  Alignment gaps of the flat memory are zero and stay so: their
 * gradients are. */
#include "optimizer.h"

#include "err.h"

#include <math.h>

/* carve lays out both arenas; on plans it only counts. */
static void carve(struct optimizer *o, int64_t count, enum dtype act, bool accumulate)
{
    o->shared = act == DT_F32;
    o->grads = arena_tensor(&o->gradients, accumulate ? DT_F32 : act, T1(count));
    o->m = arena_tensor(&o->state, DT_F32, T1(count));
    o->v = arena_tensor(&o->state, DT_F32, T1(count));
    o->master = o->shared ? o->weights : arena_tensor(&o->state, DT_F32, T1(count));
    o->sum = arena_tensor(&o->state, DT_F64, T1(1));
}

void optimizer_bytes(const struct dev *d, int64_t count, bool accumulate,
                     size_t *gradients, size_t *state)
{
    struct optimizer o = {.gradients = arena_plan(), .state = arena_plan()};
    carve(&o, count, d->act, accumulate);
    *gradients = o.gradients.used;
    *state = o.state.used;
}

int optimizer_open(struct optimizer *o, struct dev *d, struct tensor weights,
                   bool accumulate)
{
    size_t gradients, state;
    int64_t count = tensor_count(&weights);
    *o = (struct optimizer){.weights = weights};
    optimizer_bytes(d, count, accumulate, &gradients, &state);
    int rc = arena_open(&o->gradients, d, "gradients", gradients);
    if (rc == 0)
        rc = arena_open(&o->state, d, "optimizer", state);
    if (rc < 0) {
        optimizer_close(o);
        return rc;
    }
    carve(o, count, d->act, accumulate);
    op_fill(d, o->grads, 0);
    op_fill(d, o->m, 0);
    op_fill(d, o->v, 0);
    return 0;
}

void optimizer_close(struct optimizer *o)
{
    arena_close(&o->gradients);
    arena_close(&o->state);
    *o = (struct optimizer){0};
}

void optimizer_round(struct optimizer *o)
{
    if (!o->shared)
        op_convert(o->state.dev, o->weights, o->master);
}

int optimizer_start(struct optimizer *o, const float *master)
{
    TRY(dev_put(o->state.dev, o->master.data, master, tensor_bytes(&o->master)));
    optimizer_round(o);
    return 0;
}

int optimizer_step(struct optimizer *o, double weight, double lr, int64_t t,
                   double *norm)
{
    struct dev *d = o->state.dev;
    double sum;
    op_fill(d, o->sum, 0);
    op_sumsq(d, o->sum, o->grads);
    TRY(dev_get(d, &sum, o->sum.data, sizeof sum));
    *norm = sqrt(sum) / weight;
    if (!isfinite(*norm))
        return err_set(E_FORMAT, "the gradient is not finite");
    double cut = o->clip > 0 && *norm > o->clip ? o->clip / *norm : 1;
    struct adamw p = o->base;
    p.lr = (float)lr;
    p.scale = (float)(cut / weight);
    p.step = t;
    op_adamw(d, o->weights, o->master, o->m, o->v, o->grads, p);
    op_fill(d, o->grads, 0);
    return 0;
}
