/* SPDX-License-Identifier: MIT */
/* panel.h - the right operand of a product, B [depth][cols], and its panels.
 *
 * Whatever its type and layout in memory, a tile reads it as panels of 16 columns,
 * [steps][16], columns past the last one zero. */
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

/* panel_get sets t->b, b_apart and b_bf16 to t->panels panels of steps [p, p +
 * t->depth) from column j, a multiple of PANEL: in place where B holds what a tile can
 * read, else as reals in `room`, [panels][steps][PANEL].  Packed bf16 stays in place
 * only for `once`: to a few rows it is widened as it is read, which costs a tile with
 * many rows a sixth of its speed. */
void panel_get(struct tile *t, const struct panel_from *b, int64_t p, int64_t j,
               real *room, bool once);

#endif
