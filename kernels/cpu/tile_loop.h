/* SPDX-License-Identifier: MIT */
/* tile_loop.h - the body of a tile, included once per vector width.
 *
 * The includer defines TILE_INLINE (how helpers are declared), the type vec of LANES
 * reals and vec_load, vec_bf16, vec_store, vec_set, vec_fma.  `rows`, `panels` and
 * `bf16` are constants where tile_loop is inlined, so that all loops over them unroll
 * and the accumulators stay in registers: per step one load a vector of b, one
 * broadcast a row.  Four rows share a pointer: with one for all, GCC runs out of
 * registers for the offsets and loses 6 % of the AVX-512 tile. */

enum { VECS = PANEL / LANES }; // vectors to a panel

TILE_INLINE vec vec_weight(const void *b, int64_t i, const bool bf16)
{
    return bf16 ? vec_bf16((const uint16_t *)b + i) : vec_load((const real *)b + i);
}

TILE_INLINE void tile_loop(const struct tile *t, const int rows, const int panels,
                           const bool bf16)
{
    const int width = panels * VECS;
    vec acc[TILE_ROWS][TILE_PANELS * VECS];
    real *c = t->c;
    const int64_t ldc = t->ldc;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < width; v++)
            acc[r][v] = t->add ? vec_load(c + r * ldc + v * LANES) : (vec){0};

    const real *a[TILE_ROWS / 4];
    for (int k = 0; k < (rows + 3) / 4; k++)
        a[k] = t->a + k * 4 * t->a_row;
    const void *b = t->b;
    const int64_t row = t->a_row, step = t->a_step, apart = t->b_apart;
    int64_t at = 0;
    for (int64_t n = t->depth; n > 0; n--) {
        vec w[TILE_PANELS * VECS];
        for (int v = 0; v < width; v++)
            w[v] = vec_weight(b, at + v / VECS * apart + v % VECS * LANES, bf16);
        for (int r = 0; r < rows; r++) {
            vec x = vec_set(a[r / 4][r % 4 * row]);
            for (int v = 0; v < width; v++)
                acc[r][v] = vec_fma(x, w[v], acc[r][v]);
        }
        for (int k = 0; k < (rows + 3) / 4; k++)
            a[k] += step;
        at += PANEL;
    }

    for (int r = 0; r < rows; r++)
        for (int v = 0; v < width; v++)
            vec_store(c + r * ldc + v * LANES, acc[r][v]);
}
