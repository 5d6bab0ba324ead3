/* SPDX-License-Identifier: MIT */
/* panel.h - the right operand of a product, B [depth][cols], and its panels.
 *
 * Whatever its type and layout in memory, a tile reads it as panels of 16 columns,
 * [steps][16] reals each, columns past the last one zero. */
#ifndef PANEL_H
#define PANEL_H

#include "tile.h"

enum panel_order {
    PANEL_STEPS, /* B(p, j) = data[p * stride + j] */
    PANEL_COLS,  /* B(p, j) = data[j * stride + p] */
    PANEL_READY  /* packed by cpu_pack: panels of all steps, one after the other */
};

struct panel_from {
    const void *data;
    enum dtype type; /* bf16, f32 or real */
    enum panel_order order;
    int64_t stride, depth, cols;
};

/* panel_get returns `panels` panels of steps [p, p + n) from column j, a multiple of
 * PANEL; *apart is the distance from one to the next.  They are in `room`, [panels][n]
 * [PANEL] reals, or in place where B holds them as they are. */
const real *panel_get(const struct panel_from *b, int64_t p, int64_t n, int64_t j,
                      int panels, real *room, int64_t *apart);

#endif
