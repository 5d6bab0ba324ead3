/* SPDX-License-Identifier: MIT */
/* tile_avx2.c - tiles of 6 rows by one panel, or 3 by two: 12 of the 16 registers hold
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

#include "tile_loop.h"

#define CASE(n)                                                                        \
    case n:                                                                            \
        tile_loop(t, n, panels);                                                       \
        break

/* run_three has room for two panels, run_six for one. */
TILE_INLINE void run_three(const struct tile *t, const int panels)
{
    switch (t->rows) {
        CASE(1);
        CASE(2);
        CASE(3);
    }
}

TILE_INLINE void run_six(const struct tile *t, const int panels)
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

static void run(const struct tile *t)
{
    if (t->panels == 2 && t->rows <= 3) {
        run_three(t, 2);
        return;
    }
    run_six(t, 1);
    if (t->panels == 2) {
        struct tile second = *t;
        second.c += PANEL;
        second.b += t->b_panel;
        run_six(&second, 1);
    }
}

const struct tile_set tile_avx2 = {.name = "avx2", .rows = 6, .run = run};
