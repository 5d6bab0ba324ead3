/* SPDX-License-Identifier: MIT */
/* tile_avx512.c - tiles of 12 rows by two panels: 24 of the 32 registers hold sums.
 *
 * The program as a whole is built for AVX2; only this file uses wider vectors, and a
 * device opened on a processor without them never calls it. */
#include "tile.h"

#include <immintrin.h>

#define WIDE        __attribute__((target("avx512f")))
#define TILE_INLINE static inline __attribute__((always_inline)) WIDE

typedef real vec __attribute__((vector_size(64)));
typedef real loose __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));
enum { LANES = sizeof(vec) / sizeof(real) };

TILE_INLINE vec vec_load(const real *p)
{
    return *(const loose *)p;
}

TILE_INLINE void vec_store(real *p, vec v)
{
    *(loose *)p = v;
}

TILE_INLINE vec vec_set(real a)
{
    return _Generic((real)0, float : _mm512_set1_ps, double : _mm512_set1_pd)(a);
}

TILE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _Generic((real)0, float
                    : _mm512_fmadd_ps, double
                    : _mm512_fmadd_pd)(a, b, c);
}

TILE_INLINE vec vec_bf16(const uint16_t *p)
{
    if (sizeof(real) == sizeof(float)) {
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)p));
        return (vec)_mm512_slli_epi32(wide, 16);
    }
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)p));
    return (vec)_mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
}

#include "tile_loop.h"

#define CASE(n)                                                                        \
    case n:                                                                            \
        tile_loop(t, n, panels, bf16);                                                 \
        break

TILE_INLINE void run_rows(const struct tile *t, const int panels, const bool bf16)
{
    switch (t->rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
    }
}

static WIDE void run(const struct tile *t)
{
    if (t->panels == 2 && t->b_bf16)
        run_rows(t, 2, true);
    else if (t->panels == 2)
        run_rows(t, 2, false);
    else if (t->b_bf16)
        run_rows(t, 1, true);
    else
        run_rows(t, 1, false);
}

const struct tile_set tile_avx512 = {.name = "avx512", .rows = 12, .run = run};
