/* SPDX-License-Identifier: MIT */
/* norm.h - RMS normalisation of one row, forward and backward; used by norm.c for rows
 * of the residual stream and by normrope.c for heads.
 *
 * The mean square is an f64 sum, so that r is right to the last bit but one. */
#ifndef NORM_H
#define NORM_H

#include "vec.h"

/* norm_factor is r = 1 / sqrt(mean(x^2) + eps). */
static inline real norm_factor(const real *x, int64_t n, real eps)
{
    return (real)(1.0 / __builtin_sqrt(vec_dot64(x, x, n) / (double)n + (double)eps));
}

static inline void norm_row(real *y, const real *x, const real *w, int64_t n, real eps)
{
    real r = norm_factor(x, n, eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * r * w[i];
}

/* norm_row_bwd: with n = x r and g = dy w, dx = r (g - n mean(g n)); dw, an f64 partial
 * sum, grows by dy n.  dx may be dy.  Derivation: docs/math.md. */
static inline void norm_row_bwd(real *dx, double *dw, const real *dy, const real *x,
                                const real *w, int64_t n, real eps)
{
    real r = norm_factor(x, n, eps);
    vec_f64 sum = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        vec_f64 g = vec_f64_at(dy + i), unit = vec_f64_at(x + i) * (double)r;
        *(vec_f64 *)(dw + i) += g * unit;
        sum += g * vec_f64_at(w + i) * unit;
    }
    double dot = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (; i < n; i++) {
        double unit = (double)x[i] * (double)r;
        dw[i] += (double)dy[i] * unit;
        dot += (double)dy[i] * (double)w[i] * unit;
    }
    real mean = (real)(dot / (double)n);
    for (i = 0; i < n; i++)
        dx[i] = r * (dy[i] * w[i] - x[i] * r * mean);
}

#endif
