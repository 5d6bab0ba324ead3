/* SPDX-License-Identifier: MIT */
/* mathf.h - exp, log, sine and cosine of our own.
 *
 * The results are sums and products in a fixed order with explicit fused steps, so the
 * same bits come out of every compiler and C library, in a scalar loop and in a
 * vectorised one.  Each is reduction to a small interval, a polynomial there, and the
 * undoing of the reduction.  In the double build, whose bits nobody compares, libm
 * serves instead: its accuracy is what gradient tests need. */
#ifndef MATHF_H
#define MATHF_H

#include "tensor.h"

#include <math.h>

union mathf_f32 {
    float f;
    uint32_t u;
};

union mathf_f64 {
    double f;
    uint64_t u;
};

/* mathf_fma is a * b + c, rounded once. */
static inline real mathf_fma(real a, real b, real c)
{
    return sizeof(real) == 8 ? (real)__builtin_fma(a, b, c)
                             : (real)__builtin_fmaf((float)a, (float)b, (float)c);
}

static inline real mathf_sqrt(real x)
{
    return sizeof(real) == 8 ? (real)__builtin_sqrt(x)
                             : (real)__builtin_sqrtf((float)x);
}

/* mathf_pow2 is 2^n for n in [-126, 127]. */
static inline float mathf_pow2(int32_t n)
{
    return (union mathf_f32){.u = (uint32_t)(n + 127) << 23}.f;
}

/* mathf_exp32: error below 1.1 units in the last place; overflow gives infinity,
 * underflow denormals and 0, NaN stays.  exp(x) = 2^n exp(r), r = x - n ln 2 in two
 * exact steps, polynomial of the Cephes library.  2^n goes on in two factors, since n
 * leaves the range of one exponent. */
static inline float mathf_exp32(float x)
{
    static const float round = 12582912.0f; // 1.5 * 2^23: adding it rounds to integer
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    union mathf_f32 t = {__builtin_fmaf(x, 1.44269504f, round)};
    float n = t.f - round;
    float r = __builtin_fmaf(n, -0.693359375f, x);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    float p = __builtin_fmaf(1.9875691500e-4f, r, 1.3981999507e-3f);
    p = __builtin_fmaf(p, r, 8.3334519073e-3f);
    p = __builtin_fmaf(p, r, 4.1665795894e-2f);
    p = __builtin_fmaf(p, r, 1.6666665459e-1f);
    p = __builtin_fmaf(p, r, 5.0000001201e-1f);
    p = __builtin_fmaf(p * r, r, r) + 1.0f;
    int32_t k = (int32_t)(t.u - 0x4b400000u);
    int32_t half = k / 2;
    return p * mathf_pow2(half) * mathf_pow2(k - half);
}

static inline real mathf_exp(real x)
{
    return sizeof(real) == 8 ? (real)exp(x) : (real)mathf_exp32((float)x);
}

/* mathf_log is the natural logarithm of a positive normal x, error about 1e-15: x =
 * 2^n m with m in [0.70, 1.42], log m = 2 atanh(s), s = (m - 1) / (m + 1). */
static inline double mathf_log(double x)
{
    if (sizeof(real) == 8)
        return log(x);
    union mathf_f64 b = {x};
    int64_t n = (int64_t)(b.u >> 52) - 1023;
    b.u = (b.u & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    if (b.f > 1.41421356237309505) {
        b.f *= 0.5;
        n++;
    }
    double s = (b.f - 1) / (b.f + 1), z = s * s;
    double p = 0;
    for (int k = 21; k >= 3; k -= 2)
        p = (p + 1.0 / k) * z;
    return (double)n * 0.693147180559945309 + 2 * (s + s * p);
}

/* mathf_sincos: sine and cosine of an angle below 2^30, computed in double and rounded
 * once.  The angle minus n pi/2 takes two exact products; Taylor series to 1e-13 on
 * [-pi/4, pi/4]. */
static inline void mathf_sincos(real angle, real *sine, real *cosine)
{
    if (sizeof(real) == 8) {
        *sine = (real)sin(angle);
        *cosine = (real)cos(angle);
        return;
    }
    static const double round = 6755399441055744.0; // 1.5 * 2^52
    union mathf_f64 t = {__builtin_fma(angle, 0.636619772367581343, round)};
    double n = t.f - round;
    double r = __builtin_fma(n, -1.57079632679489656, angle);
    r = __builtin_fma(n, -6.12323399573676604e-17, r);
    double z = r * r;
    double s = 1.0 / 6227020800;
    s = __builtin_fma(s, z, -1.0 / 39916800);
    s = __builtin_fma(s, z, 1.0 / 362880);
    s = __builtin_fma(s, z, -1.0 / 5040);
    s = __builtin_fma(s, z, 1.0 / 120);
    s = __builtin_fma(s, z, -1.0 / 6);
    s = __builtin_fma(s * z, r, r);
    double c = -1.0 / 87178291200;
    c = __builtin_fma(c, z, 1.0 / 479001600);
    c = __builtin_fma(c, z, -1.0 / 3628800);
    c = __builtin_fma(c, z, 1.0 / 40320);
    c = __builtin_fma(c, z, -1.0 / 720);
    c = __builtin_fma(c, z, 1.0 / 24);
    c = __builtin_fma(c, z, -0.5);
    c = __builtin_fma(c, z, 1.0);
    double a = t.u & 1 ? c : s, b = t.u & 1 ? s : c;
    *sine = (real)(t.u & 2 ? -a : a);
    *cosine = (real)((t.u + 1) & 2 ? -b : b);
}

#endif
