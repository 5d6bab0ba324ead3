/* SPDX-License-Identifier: MIT */
/* rng.c - Philox4x32-10 and what is drawn from it.
 *
 * The normal deviate needs a logarithm and a cosine.  Both are written out here in
 * plain double arithmetic, because libm's last bit changes with its version and a seed
 * must give the same weights everywhere. */
#include "rng.h"

#include <math.h>

__extension__ typedef unsigned __int128 u128;

static uint32_t low(uint64_t v)
{
    return (uint32_t)v;
}

static uint32_t high(uint64_t v)
{
    return (uint32_t)(v >> 32);
}

void rng_philox(uint32_t out[4], uint64_t key, uint64_t counter_lo, uint64_t counter_hi)
{
    uint32_t c0 = low(counter_lo), c1 = high(counter_lo);
    uint32_t c2 = low(counter_hi), c3 = high(counter_hi);
    uint32_t k0 = low(key), k1 = high(key);
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * c0, q = (uint64_t)0xCD9E8D57u * c2;
        c0 = high(q) ^ c1 ^ k0;
        c1 = low(q);
        c2 = high(p) ^ c3 ^ k1;
        c3 = low(p);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t rng_key(const uint64_t *word, int n)
{
    uint32_t x[4];
    uint64_t key = (uint64_t)n;
    for (int i = 0; i < n; i++) {
        rng_philox(x, key, word[i], (uint64_t)i);
        key = (uint64_t)x[1] << 32 | x[0];
    }
    return key;
}

struct rng rng_new(uint64_t key)
{
    return (struct rng){key, 0};
}

uint32_t rng_u32(struct rng *r)
{
    uint32_t x[4];
    rng_philox(x, r->key, r->next >> 2, 0);
    return x[r->next++ & 3];
}

static uint64_t draw_u64(struct rng *r)
{
    uint64_t lo = rng_u32(r);
    return (uint64_t)rng_u32(r) << 32 | lo;
}

/* Lemire 2019, "Fast random integer generation in an interval", algorithm 5. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
    u128 m = (u128)draw_u64(r) * n;
    if ((uint64_t)m < n) {
        uint64_t reject = -n % n;
        while ((uint64_t)m < reject)
            m = (u128)draw_u64(r) * n;
    }
    return (uint64_t)(m >> 64);
}

static double real_of(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double rng_real(struct rng *r)
{
    return real_of(draw_u64(r));
}

/* ln u for u in (0, 1]: u = m 2^e with m near 1, ln m = 2 artanh((m-1)/(m+1)). */
static double ln(double u)
{
    int e;
    double m = frexp(u, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * s2 + 1.0 / k;
    return 2 * s * sum + e * 0.69314718055994531;
}

/* sum of (-1)^k x^(2k+odd) / (2k+odd)!: the cosine (odd 0) or sine (odd 1) for
 * |x| <= pi/4, by Horner's rule. */
static double series(double x, int odd)
{
    double x2 = x * x, sum = 1;
    for (int k = 8; k >= 1; k--)
        sum = 1 - x2 / ((2 * k + odd) * (2 * k + odd - 1)) * sum;
    return odd ? x * sum : sum;
}

/* cos(2 pi u) for u in [0, 1): the nearest quarter turn is taken off exactly. */
static double cos_turn(double u)
{
    int quarter = (int)(u * 4 + 0.5);
    double x = (u - quarter * 0.25) * 6.28318530717958648;
    double v = series(x, quarter & 1);
    return quarter == 1 || quarter == 2 ? -v : v;
}

/* The two reals of a normal are the four words of one Philox block when the draws so
 * far are whole blocks, as they are for a run of normals. */
double rng_normal(struct rng *r)
{
    double u[2];
    if ((r->next & 3) == 0) {
        uint32_t x[4];
        rng_philox(x, r->key, r->next >> 2, 0);
        r->next += 4;
        for (int i = 0; i < 2; i++)
            u[i] = real_of((uint64_t)x[2 * i + 1] << 32 | x[2 * i]);
    } else {
        u[0] = rng_real(r);
        u[1] = rng_real(r);
    }
    return sqrt(-2 * ln(1 - u[0])) * cos_turn(u[1]);
}

void rng_shuffle(struct rng *r, int64_t *index, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)rng_below(r, (uint64_t)i + 1);
        int64_t t = index[i];
        index[i] = index[j];
        index[j] = t;
    }
}
