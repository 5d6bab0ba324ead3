/* SPDX-License-Identifier: MIT */
/* tile_avx2.c - tiles of 6 rows by one panel, or 2 by two: 12 of the 16 registers hold
 * sums, enough to hide the latency of the multiply-add (4 cycles, two a cycle). */
#include "tile.h"

#include <immintrin.h>

#define TILE_INLINE static inline __attribute__((always_inline))

typedef real vec __attribute__((vector_size(32)));
typedef real loose __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));
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
    return _Generic((real)0, float : _mm256_set1_ps, double : _mm256_set1_pd)(a);
}

TILE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _Generic((real)0, float
                    : _mm256_fmadd_ps, double
                    : _mm256_fmadd_pd)(a, b, c);
}

TILE_INLINE vec vec_bf16(const uint16_t *p)
{
    if (sizeof(real) == sizeof(float)) {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)p));
        return (vec)_mm256_slli_epi32(wide, 16);
    }
    __m128i wide = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i_u *)p));
    return (vec)_mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(wide, 16)));
}

#include "tile_loop.h"

#define CASE(n)                                                                        \
    case n:                                                                            \
        tile_loop(t, n, panels, bf16);                                                 \
        break

/* run_two has room for two panels, run_six for one. */
TILE_INLINE void run_two(const struct tile *t, const int panels, const bool bf16)
{
    switch (t->rows) {
        CASE(1);
        CASE(2);
    }
}

TILE_INLINE void run_six(const struct tile *t, const int panels, const bool bf16)
{
    switch (t->rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
    }
}

static void run_panel(const struct tile *t)
{
    if (t->b_bf16)
        run_six(t, 1, true);
    else
        run_six(t, 1, false);
}

static void run(const struct tile *t)
{
    if (t->panels == 1) {
        run_panel(t);
    } else if (t->rows > 2) {
        struct tile second = *t;
        second.c += PANEL;
        second.b = (const char *)t->b +
                   (size_t)t->b_apart * (t->b_bf16 ? sizeof(uint16_t) : sizeof(real));
        run_panel(t);
        run_panel(&second);
    } else if (t->b_bf16) {
        run_two(t, 2, true);
    } else {
        run_two(t, 2, false);
    }
}

const struct tile_set tile_avx2 = {.name = "avx2", .rows = 6, .run = run};
