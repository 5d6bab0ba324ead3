/* SPDX-License-Identifier: MIT */
/* rope.c - inverse frequencies, computed on the host once per model. */
#include "rope.h"

#include "err.h"
#include "op.h"

#include <math.h>

static const double two_pi = 6.283185307179586477;

/* scaled is f slowed down: s is 0 where it turns `low` times within the original
 * positions and 1 where it turns `high` times. */
static double scaled(double f, const struct config_scaling *c)
{
    if (c->factor == 0)
        return f;
    double turns = c->original * f / two_pi;
    double s = (turns - c->low) / (c->high - c->low);
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    return f * ((1 - s) / c->factor + s);
}

int rope_open(struct tensor *freq, struct arena *a, struct dev *d, const struct rope *r)
{
    float host[OP_HEAD_MAX / 2]; // config*.c admit no wider head
    if (r->head > OP_HEAD_MAX)
        bug("a head of %lld channels", (long long)r->head);
    *freq = arena_tensor(a, DT_F32, T1(r->head / 2));
    if (!a->base)
        return 0;
    for (int64_t i = 0; i < r->head / 2; i++) {
        double f = pow(r->theta, -2.0 * (double)i / (double)r->turned);
        host[i] = i < r->turned / 2 ? (float)scaled(f, &r->scaling) : 0;
    }
    return dev_put(d, freq->data, host, tensor_bytes(freq));
}
