/* SPDX-License-Identifier: MIT */
/* tile.h - the inner loop of every matrix product: a few rows by one or two panels.
 *
 * A panel is 16 columns of the right operand, stored step by step: panel[p][16].  A
 * tile adds `depth` steps to its outputs, each of which is one chain
 *
 *     c = fma(a(p), b(p), c),  p ascending,
 *
 * so its bits depend neither on the shape of the tile nor on the width of the vectors:
 * the sets below differ in speed only.  A chain may be cut anywhere, since storing and
 * reloading c is exact. */
#ifndef TILE_H
#define TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor.h"

enum { PANEL = 16, TILE_ROWS = 12, TILE_PANELS = 2 };

struct tile {
    real *c; /* [rows][ldc], panels * PANEL columns of it */
    int64_t ldc;
    const real *a; /* element (row r, step p) is a[r * a_row + p * a_step] */
    int64_t a_row, a_step;
    const void *b; /* [depth][PANEL]; the second panel is b_apart elements further */
    int64_t b_apart;
    bool b_bf16; /* b holds bf16, else reals */
    int64_t depth;
    int rows, panels; /* 1 .. the set's rows, 1 .. TILE_PANELS */
    bool add;         /* chains start from c, else from 0 */
};

struct tile_set {
    const char *name;
    int rows; /* how many a tile may have: TILE_ROWS or a divisor of it */
    void (*run)(const struct tile *t);
};

extern const struct tile_set tile_avx2;
extern const struct tile_set tile_avx512; /* only where the processor has AVX-512F */

#endif
