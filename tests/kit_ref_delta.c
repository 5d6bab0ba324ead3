/* SPDX-License-Identifier: MIT */
/* kit_ref_delta.c - Gated DeltaNet once more, from the paper's formulas, in f64.
 *
 * The recurrence here is S_t = S_{t-1} (exp(g) (I - beta k k^T)) + beta v k^T with S
 * [E,D] (arXiv 2412.06464, equation 10): other in form and order than kernels/. */
#include "kit_ref.h"

#include <math.h>
#include <string.h>

#include "mem.h"

static const double eps = 1e-3F;

static const double *in(struct call *k, const char *name)
{
    return call_find(k, name)->host;
}

static double *want(struct call *k, const char *name)
{
    return call_find(k, name)->want;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

void ref_gate(struct call *k)
{
    for (int64_t i = 0; i < call_find(k, "y")->count; i++)
        want(k, "y")[i] = in(k, "x")[i] * sigmoid(in(k, "g")[i]);
}

void ref_norm_gate(struct call *k)
{
    int64_t n = k->dim['D'], heads = call_find(k, "x")->count / n;
    for (int64_t h = 0; h < heads; h++) {
        const double *x = in(k, "x") + h * n, *z = in(k, "z") + h * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i] * x[i];
        for (int64_t i = 0; i < n; i++)
            want(k, "y")[h * n + i] = x[i] / sqrt(sum / (double)n + eps) *
                                      in(k, "w")[i] * z[i] * sigmoid(z[i]);
    }
}

/* activated is channel c of row t behind the convolution. */
static double activated(struct call *k, int64_t t, int64_t c)
{
    int64_t first = k->dim['S'] - k->dim['T'], width = k->dim['C'];
    double sum = 0;
    for (int64_t j = 0; j < 4; j++)
        if (first + t - 3 + j >= (int64_t)in(k, "lo")[t])
            sum += in(k, "conv")[c * 4 + j] * in(k, "u")[(t + j) * width + c];
    return sum * sigmoid(sum);
}

static void ref_unit(struct call *k, const char *name, int64_t c, double length)
{
    int64_t heads = k->dim['m'], n = k->dim['D'];
    for (int64_t i = 0; i < k->dim['T'] * heads; i++) {
        double sum = 1e-6, *out = want(k, name) + i * n;
        for (int64_t j = 0; j < n; j++)
            out[j] = activated(k, i / heads, c + i % heads * n + j);
        for (int64_t j = 0; j < n; j++)
            sum += out[j] * out[j];
        for (int64_t j = 0; j < n; j++)
            out[j] *= length / sqrt(sum);
    }
}

void ref_delta_mix(struct call *k)
{
    int64_t keys = k->dim['m'] * k->dim['D'], values = k->dim['n'] * k->dim['E'];
    ref_unit(k, "q", 0, pow((double)k->dim['D'], -0.5));
    ref_unit(k, "k", keys, 1);
    for (int64_t i = 0; i < k->dim['T'] * values; i++)
        want(k, "v")[i] = activated(k, i / values, 2 * keys + i % values);
    for (int64_t i = 0; i < k->dim['T'] * k->dim['n']; i++) {
        int64_t h = i % k->dim['n'];
        double x = in(k, "a")[i] + in(k, "dt_bias")[h];
        want(k, "g")[i] = -exp(in(k, "a_log")[h]) * log1p(exp(x));
        want(k, "beta")[i] = sigmoid(in(k, "b")[i]);
    }
}

/* ref_step: s [E,D] = s exp(g) (I - beta k k^T) + beta v k^T. */
static void ref_step(double *s, const double *key, const double *v, double decay,
                     double beta, int64_t d, int64_t e)
{
    for (int64_t i = 0; i < e; i++) {
        double along = 0;
        for (int64_t j = 0; j < d; j++)
            along += s[i * d + j] * key[j];
        for (int64_t j = 0; j < d; j++)
            s[i * d + j] =
                decay * (s[i * d + j] - along * beta * key[j]) + beta * v[i] * key[j];
    }
}

/* move copies a head's state [D,E] to s [E,D], or back. */
static void move(double *s, double *state, int64_t d, int64_t e, int back)
{
    for (int64_t i = 0; i < d * e; i++) {
        double *here = s + i % e * d + i / e;
        if (back)
            state[i] = *here;
        else
            *here = state[i];
    }
}

void ref_delta(struct call *k)
{
    int64_t rows = k->dim['T'], m = k->dim['m'], n = k->dim['n'], d = k->dim['D'];
    int64_t e = k->dim['E'], first = k->dim['S'] - rows, keep = rows - k->dim['j'];
    double *s = mem_zero((size_t)(d * e), sizeof *s);
    for (int64_t h = 0; h < n; h++) {
        double *state = want(k, "state") + h * d * e;
        move(s, state, d, e, 0);
        for (int64_t t = 0; t < rows; t++) {
            const double *q = in(k, "q") + (t * m + h * m / n) * d;
            const double *key = in(k, "k") + (t * m + h * m / n) * d;
            double *o = want(k, "o") + (t * n + h) * e;
            if ((int64_t)in(k, "lo")[t] == first + t)
                memset(s, 0, (size_t)(d * e) * sizeof *s);
            ref_step(s, key, in(k, "v") + (t * n + h) * e, exp(in(k, "g")[t * n + h]),
                     in(k, "beta")[t * n + h], d, e);
            for (int64_t i = 0; i < e; i++) {
                o[i] = 0;
                for (int64_t j = 0; j < d; j++)
                    o[i] += s[i * d + j] * q[j];
            }
            if (t + 1 == keep)
                move(s, state, d, e, 1);
        }
    }
    mem_free(s);
}
