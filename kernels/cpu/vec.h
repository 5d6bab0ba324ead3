/* SPDX-License-Identifier: MIT */
/* vec.h - a few loops over short rows, in a fixed order of operations.
 *
 * Element i of a row goes to lane i % LANES, lanes are summed pairwise at the end: the
 * result depends on the row alone, and the compiler needs no leave to reorder.  The
 * vectors are GCC's and clang's: 32 bytes, unaligned loads allowed. */
#ifndef VEC_H
#define VEC_H

#include "mathf.h"

#include <string.h>

enum { LANES = (int)(32 / sizeof(real)) };

typedef real vec __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));
typedef double vec_f64 __attribute__((vector_size(32), aligned(8), may_alias));

static inline vec vec_at(const real *p)
{
    return *(const vec *)p;
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    vec r;
    for (int l = 0; l < LANES; l++)
        r[l] = mathf_fma(a[l], b[l], c[l]);
    return r;
}

static inline vec_f64 vec_f64_at(const real *p)
{
    vec_f64 r;
    for (int l = 0; l < 4; l++)
        r[l] = p[l];
    return r;
}

/* vec_total sums the lanes pairwise. */
static inline real vec_total(vec a)
{
    real t[LANES];
    for (int l = 0; l < LANES; l++)
        t[l] = a[l];
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            t[l] += t[l + n];
    return t[0];
}

/* vec_dot64 is sum x y in f64, four lanes twice. */
static inline double vec_dot64(const real *x, const real *y, int64_t n)
{
    vec_f64 a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        a += vec_f64_at(x + i) * vec_f64_at(y + i);
        b += vec_f64_at(x + i + 4) * vec_f64_at(y + i + 4);
    }
    a += b;
    double sum = (a[0] + a[2]) + (a[1] + a[3]);
    for (; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* vec_dot is sum x y in FMA chains, one per lane. */
static inline real vec_dot(const real *x, const real *y, int64_t n)
{
    vec a = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        a = vec_fma(vec_at(x + i), vec_at(y + i), a);
    real sum = vec_total(a);
    for (; i < n; i++)
        sum = mathf_fma(x[i], y[i], sum);
    return sum;
}

/* vec_dot8 is vec_dot of x with eight rows `stride` apart, bit for bit: x is read once,
 * and eight chains hide the latency of a fused step.  Sums have names since gcc keeps
 * an array of them in memory. */
static inline void vec_dot8(real *out, const real *x, const real *y, int64_t stride,
                            int64_t n)
{
    vec a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const real *low = y + i, *high = low + 4 * stride;
        vec v = vec_at(x + i);
        a = vec_fma(v, vec_at(low), a);
        b = vec_fma(v, vec_at(low + stride), b);
        c = vec_fma(v, vec_at(low + 2 * stride), c);
        d = vec_fma(v, vec_at(low + 3 * stride), d);
        e = vec_fma(v, vec_at(high), e);
        f = vec_fma(v, vec_at(high + stride), f);
        g = vec_fma(v, vec_at(high + 2 * stride), g);
        h = vec_fma(v, vec_at(high + 3 * stride), h);
    }
    const vec sum[8] = {a, b, c, d, e, f, g, h};
    for (int j = 0; j < 8; j++)
        out[j] = vec_total(sum[j]);
    for (; i < n; i++)
        for (int j = 0; j < 8; j++)
            out[j] = mathf_fma(x[i], y[j * stride + i], out[j]);
}

/* vec_max is the largest of x and `least`; NaN is passed over. */
static inline real vec_max(const real *x, int64_t n, real least)
{
    real m[LANES];
    for (int l = 0; l < LANES; l++)
        m[l] = least;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            m[l] = x[i + l] > m[l] ? x[i + l] : m[l];
    for (; i < n; i++)
        m[0] = x[i] > m[0] ? x[i] : m[0];
    for (int l = 1; l < LANES; l++)
        m[0] = m[l] > m[0] ? m[l] : m[0];
    return m[0];
}

/* vec_sum is sum x, one chain per lane. */
static inline real vec_sum(const real *x, int64_t n)
{
    vec a = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        a += vec_at(x + i);
    real sum = vec_total(a);
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* vec_dots: out[j] = vec_dot(x, row j of y), rows of n elements, `stride` apart. */
static inline void vec_dots(real *out, const real *x, const real *y, int64_t rows,
                            int64_t stride, int64_t n)
{
    int64_t j = 0;
    for (; j + 8 <= rows; j += 8)
        vec_dot8(out + j, x, y + j * stride, stride, n);
    for (; j < rows; j++)
        out[j] = vec_dot(x, y + j * stride, n);
}

/* vec_copy copies rows of n elements from `from_stride` apart to `to_stride` apart and
 * returns the copy. */
static inline real *vec_copy(real *to, int64_t to_stride, const real *from,
                             int64_t from_stride, int64_t rows, int64_t n)
{
    for (int64_t j = 0; j < rows; j++)
        memcpy(to + j * to_stride, from + j * from_stride, (size_t)n * sizeof(real));
    return to;
}

/* vec_rows: y[0..n) += sum_j a[j] (row j of m), j ascending in one FMA chain per
 * element: however the rows are cut into calls, the bits are the same.  Four rows at a
 * time, so y is loaded and stored a quarter as often.  a[j] is at a + j * step. */
static inline void vec_rows(real *restrict y, const real *a, int64_t step,
                            const real *restrict m, int64_t rows, int64_t stride,
                            int64_t n)
{
    int64_t j = 0;
    for (; j + 4 <= rows; j += 4) {
        const real *r = m + j * stride;
        real a0 = a[j * step], a1 = a[(j + 1) * step];
        real a2 = a[(j + 2) * step], a3 = a[(j + 3) * step];
        for (int64_t i = 0; i < n; i++) {
            real s = mathf_fma(a0, r[i], y[i]);
            s = mathf_fma(a1, r[i + stride], s);
            s = mathf_fma(a2, r[i + 2 * stride], s);
            y[i] = mathf_fma(a3, r[i + 3 * stride], s);
        }
    }
    for (; j < rows; j++)
        for (int64_t i = 0; i < n; i++)
            y[i] = mathf_fma(a[j * step], m[j * stride + i], y[i]);
}

#endif
