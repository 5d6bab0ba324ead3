/* SPDX-License-Identifier: MIT */
/* delta.c - Gated DeltaNet, token by token.
 *
 * The inputs (op_delta_mix) are rows of their own but for the three before them in the
 * same document.  The recurrence (op_delta) runs along the rows; columns of a head's
 * state never meet, so a task is one value head and a slice of its columns, whose state
 * stays in the first-level cache.  Sums over k ascend in one FMA chain per column:
 * threads, slices and neighbours do not show in the bits. */
#include "loop.h"
#include "vec.h"

#include <math.h>
#include <string.h>

enum { SLICE = 32 };

static const double tiny = 1e-6; // under the root of the lengths of q and k

/* ---- inputs ---- */

struct mix {
    struct delta_in x;
    struct tensor u, a, b, conv, a_log, dt_bias, lo;
    int64_t first;
};

/* convolve makes channels [c, c + n) of row t. */
static void convolve(const struct mix *m, real *out, int64_t t, int64_t c, int64_t n)
{
    int64_t width = m->u.dim[1], back = m->first + t - ((const int32_t *)m->lo.data)[t];
    int64_t from = back < OP_TAPS - 1 ? OP_TAPS - 1 - (back < 0 ? 0 : back) : 0;
    const float *w = (const float *)m->conv.data + c * OP_TAPS;
    const real *u = (const real *)m->u.data + t * width + c;
    for (int64_t i = 0; i < n; i++) {
        real sum = 0;
        for (int64_t j = from; j < OP_TAPS; j++)
            sum = mathf_fma(w[i * OP_TAPS + j], u[j * width + i], sum);
        out[i] = sum;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] /= 1 + mathf_exp(-out[i]);
}

/* unit makes heads of row t from channel c on, each scaled to length `length`. */
static void unit(const struct mix *m, const struct tensor *to, int64_t t, int64_t c,
                 double length)
{
    int64_t heads = to->dim[1], n = to->dim[2];
    for (int64_t h = 0; h < heads; h++) {
        real *out = (real *)to->data + (t * heads + h) * n;
        convolve(m, out, t, c + h * n, n);
        real r = (real)(length / sqrt(vec_dot64(out, out, n) + tiny));
        for (int64_t i = 0; i < n; i++)
            out[i] *= r;
    }
}

/* softplus is log(1 + exp(x)). */
static real softplus(real x)
{
    return x > 20 ? x : (real)mathf_log(1 + (double)mathf_exp(x));
}

static void gates(const struct mix *m, int64_t t)
{
    int64_t heads = m->x.v.dim[1], at = t * heads;
    const float *a_log = m->a_log.data, *dt = m->dt_bias.data;
    for (int64_t h = 0; h < heads; h++) {
        real a = ((const real *)m->a.data)[at + h],
             b = ((const real *)m->b.data)[at + h];
        ((float *)m->x.g.data)[at + h] =
            (float)(-mathf_exp(a_log[h]) * softplus(a + dt[h]));
        ((float *)m->x.beta.data)[at + h] = (float)(1 / (1 + mathf_exp(-b)));
    }
}

static int mix_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct mix *m = ctx;
    int64_t keys = m->x.k.dim[1] * m->x.k.dim[2];
    int64_t values = m->x.v.dim[1] * m->x.v.dim[2];
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        unit(m, &m->x.q, t, 0, 1 / sqrt((double)m->x.q.dim[2]));
        unit(m, &m->x.k, t, keys, 1);
        convolve(m, (real *)m->x.v.data + t * values, t, 2 * keys, values);
        gates(m, t);
    }
    return 0;
}

void cpu_delta_mix(struct dev *d, struct delta_in x, struct tensor u, struct tensor a,
                   struct tensor b, struct tensor conv, struct tensor a_log,
                   struct tensor dt_bias, struct tensor lo, int64_t first)
{
    struct mix m = {x, u, a, b, conv, a_log, dt_bias, lo, first};
    loop_rows(d, x.q.dim[0], 12 * u.dim[1], mix_rows, &m);
}

/* ---- the recurrence ---- */

struct delta {
    struct tensor o, state;
    struct delta_in x;
    const int32_t *lo;
    int64_t first, keep;
    int64_t slices; // of a head
};

/* A slice of a head's columns; those beyond the head's last are zeros. */
struct slice {
    real s[OP_DELTA_MAX][SLICE];
    int64_t head, column, n;
};

static void step(struct slice *y, real *restrict o, const real *restrict q,
                 const real *restrict k, const real *restrict v, int64_t depth,
                 real decay, real beta)
{
    real read[SLICE] = {0}, d[SLICE];
    for (int64_t i = 0; i < depth; i++)
        for (int j = 0; j < SLICE; j++) {
            y->s[i][j] *= decay;
            read[j] = mathf_fma(k[i], y->s[i][j], read[j]);
        }
    for (int j = 0; j < SLICE; j++)
        d[j] = beta * (v[j] - read[j]);
    for (int j = 0; j < SLICE; j++)
        o[j] = 0;
    for (int64_t i = 0; i < depth; i++)
        for (int j = 0; j < SLICE; j++) {
            y->s[i][j] = mathf_fma(k[i], d[j], y->s[i][j]);
            o[j] = mathf_fma(q[i], y->s[i][j], o[j]);
        }
}

/* row runs row t through a slice. */
static void row(const struct delta *a, struct slice *y, int64_t t)
{
    int64_t keys = a->x.k.dim[1], values = a->x.v.dim[1], depth = a->x.k.dim[2];
    int64_t key = (t * keys + y->head / (values / keys)) * depth;
    int64_t at = t * values + y->head, value = at * a->x.v.dim[2] + y->column;
    real v[SLICE] = {0}, o[SLICE];
    size_t bytes = (size_t)y->n * sizeof(real);
    if (a->lo[t] >= a->first + t)
        memset(y->s, 0, (size_t)depth * sizeof y->s[0]);
    memcpy(v, (const real *)a->x.v.data + value, bytes);
    step(y, o, (const real *)a->x.q.data + key, (const real *)a->x.k.data + key, v,
         depth, mathf_exp(((const float *)a->x.g.data)[at]),
         ((const float *)a->x.beta.data)[at]);
    memcpy((real *)a->o.data + value, o, bytes);
}

static float *state_at(const struct delta *a, const struct slice *y, int64_t i)
{
    int64_t depth = a->state.dim[1], width = a->state.dim[2];
    return (float *)a->state.data + (y->head * depth + i) * width + y->column;
}

static void load(const struct delta *a, struct slice *y)
{
    memset(y->s, 0, sizeof y->s);
    for (int64_t i = 0; i < a->state.dim[1]; i++)
        for (int64_t j = 0; j < y->n; j++)
            y->s[i][j] = state_at(a, y, i)[j];
}

static void store(const struct delta *a, const struct slice *y)
{
    for (int64_t i = 0; i < a->state.dim[1]; i++)
        for (int64_t j = 0; j < y->n; j++)
            state_at(a, y, i)[j] = (float)y->s[i][j];
}

static int delta_slices(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct delta *a = ctx;
    int64_t width = a->state.dim[2], rows = a->x.q.dim[0];
    struct slice y;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        y.head = i / a->slices;
        y.column = i % a->slices * SLICE;
        y.n = width - y.column < SLICE ? width - y.column : SLICE;
        load(a, &y);
        for (int64_t t = 0; t < rows; t++) {
            if (t == a->keep)
                store(a, &y);
            row(a, &y, t);
        }
        if (a->keep == rows)
            store(a, &y);
    }
    return 0;
}

void cpu_delta(struct dev *d, struct tensor o, struct tensor state, struct delta_in x,
               struct tensor lo, int64_t first, int64_t keep)
{
    struct delta a = {
        .o = o, .state = state, .x = x, .lo = lo.data, .first = first, .keep = keep};
    a.slices = (state.dim[2] + SLICE - 1) / SLICE;
    loop_rows(d, state.dim[0] * a.slices, x.q.dim[0] * state.dim[1] * SLICE,
              delta_slices, &a);
}
