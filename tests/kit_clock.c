/* SPDX-License-Identifier: MIT */
/* kit_clock.c - a table of operations that times those of another. */
#include "kit_clock.h"

#include "kernels/backend.h"
#include "kit_time.h"

static const struct backend *under;
static struct backend timed;
static struct kit_clock *clock_of;

static void add(struct dev *d, enum clock_kind kind, double begun)
{
    dev_sync(d);
    clock_of->seconds[kind] += kit_now() - begun;
}

/* TIMED makes the timed twin of an operation without a result. */
#define TIMED(kind, op, params, ...)                                                   \
    static void timed_##op params                                                      \
    {                                                                                  \
        double begun = kit_now();                                                      \
        under->op(d, __VA_ARGS__);                                                     \
        add(d, kind, begun);                                                           \
    }

TIMED(CLOCK_PRODUCT, matmul,
      (struct dev * d, struct tensor y, struct tensor x, struct tensor w, bool sum), y,
      x, w, sum)
TIMED(CLOCK_COPY, gather,
      (struct dev * d, struct tensor y, struct tensor x, struct tensor ids), y, x, ids)
TIMED(CLOCK_COPY, convert, (struct dev * d, struct tensor y, struct tensor x), y, x)
TIMED(CLOCK_COPY, tap, (struct dev * d, struct tensor y, struct tensor x, int k), y, x,
      k)
TIMED(CLOCK_COPY, quant,
      (struct dev * d, struct tensor q, struct tensor s, struct tensor x), q, s, x)
TIMED(CLOCK_ELEMENT, fill, (struct dev * d, struct tensor x, float v), x, v)
TIMED(CLOCK_ELEMENT, rmsnorm,
      (struct dev * d, struct tensor y, struct tensor x, struct tensor w, float eps), y,
      x, w, eps)
TIMED(CLOCK_ELEMENT, norm_rope,
      (struct dev * d, struct tensor y, struct tensor x, struct tensor w,
       struct tensor pos, struct tensor freq, float eps),
      y, x, w, pos, freq, eps)
TIMED(CLOCK_ELEMENT, swiglu,
      (struct dev * d, struct tensor y, struct tensor g, struct tensor u), y, g, u)
TIMED(CLOCK_ELEMENT, gate,
      (struct dev * d, struct tensor y, struct tensor x, struct tensor g), y, x, g)
TIMED(CLOCK_ATTENTION, attn_span,
      (struct dev * d, struct tensor o, struct tensor q, struct tensor k,
       struct tensor v, struct tensor lo, struct tensor hi, float scale),
      o, q, k, v, lo, hi, scale)
TIMED(CLOCK_DELTA, delta_mix,
      (struct dev * d, struct delta_in x, struct tensor u, struct tensor a,
       struct tensor b, struct tensor conv, struct tensor a_log, struct tensor dt_bias,
       struct tensor lo, int64_t first),
      x, u, a, b, conv, a_log, dt_bias, lo, first)
TIMED(CLOCK_DELTA, delta,
      (struct dev * d, struct tensor o, struct tensor state, struct delta_in x,
       struct tensor lo, int64_t first, int64_t keep),
      o, state, x, lo, first, keep)
TIMED(CLOCK_DELTA, norm_gate,
      (struct dev * d, struct tensor y, struct tensor x, struct tensor w,
       struct tensor z, float eps),
      y, x, w, z, eps)

static int timed_put(struct dev *d, void *to, const void *host, size_t bytes)
{
    double begun = kit_now();
    int rc = under->put(d, to, host, bytes);
    add(d, CLOCK_COPY, begun);
    return rc;
}

void kit_clock_on(struct dev *d, struct kit_clock *c)
{
    *c = (struct kit_clock){0};
    clock_of = c;
    under = d->ops;
    timed = *under;
    timed.put = timed_put;
    timed.matmul = timed_matmul;
    timed.gather = timed_gather;
    timed.convert = timed_convert;
    timed.tap = timed_tap;
    timed.quant = timed_quant;
    timed.fill = timed_fill;
    timed.rmsnorm = timed_rmsnorm;
    timed.norm_rope = timed_norm_rope;
    timed.swiglu = timed_swiglu;
    timed.attn_span = timed_attn_span;
    timed.gate = timed_gate;
    timed.delta_mix = timed_delta_mix;
    timed.delta = timed_delta;
    timed.norm_gate = timed_norm_gate;
    d->ops = &timed;
}

void kit_clock_off(struct dev *d)
{
    d->ops = under;
}

double kit_clock_sum(const struct kit_clock *c)
{
    double sum = 0;
    for (int k = 0; k < CLOCK_KINDS; k++)
        sum += c->seconds[k];
    return sum;
}
