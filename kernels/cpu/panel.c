/* SPDX-License-Identifier: MIT */
/* panel.c - packing: a copy with conversion, and a transposition where the columns of
 * B are rows in memory.  Bf16 and f32 become real exactly. */
#include "panel.h"

#include "cpu.h"
#include "num.h"

#include <string.h>

/* element reads one number; `type` is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) real element(const void *data, int64_t i,
                                                          const enum dtype type)
{
    switch (type) {
    case DT_BF16:
        return num_bf16_f32(((const uint16_t *)data)[i]);
    case DT_F64:
        return (real)((const double *)data)[i];
    default:
        return ((const float *)data)[i];
    }
}

/* fill makes one panel of `cols` columns, 1 .. PANEL, in any order of B. */
static inline __attribute__((always_inline)) void fill(real *out,
                                                       const struct panel_from *b,
                                                       int64_t p, int64_t n, int64_t j,
                                                       int cols, const enum dtype type)
{
    if (cols < PANEL)
        memset(out, 0, (size_t)(n * PANEL) * sizeof *out);
    if (b->order == PANEL_READY) {
        int64_t at = (j / PANEL * b->depth + p) * PANEL;
        for (int64_t i = 0; i < n * PANEL; i++)
            out[i] = element(b->data, at + i, type);
    } else if (b->order == PANEL_COLS) {
        for (int v = 0; v < cols; v++)
            for (int64_t i = 0; i < n; i++)
                out[i * PANEL + v] =
                    element(b->data, (j + v) * b->stride + p + i, type);
    } else if (cols < PANEL) {
        for (int64_t i = 0; i < n; i++)
            for (int v = 0; v < cols; v++)
                out[i * PANEL + v] =
                    element(b->data, (p + i) * b->stride + j + v, type);
    } else {
        for (int64_t i = 0; i < n; i++)
            for (int v = 0; v < PANEL; v++)
                out[i * PANEL + v] =
                    element(b->data, (p + i) * b->stride + j + v, type);
    }
}

static void fill_any(real *out, const struct panel_from *b, int64_t p, int64_t n,
                     int64_t j, int cols)
{
    switch (b->type) {
    case DT_BF16:
        fill(out, b, p, n, j, cols, DT_BF16);
        break;
    case DT_F64:
        fill(out, b, p, n, j, cols, DT_F64);
        break;
    default:
        fill(out, b, p, n, j, cols, DT_F32);
    }
}

const real *panel_get(const struct panel_from *b, int64_t p, int64_t n, int64_t j,
                      int panels, real *room, int64_t *apart)
{
    if (b->order == PANEL_READY && b->type == DT_REAL) {
        *apart = b->depth * PANEL;
        return (const real *)b->data + (j / PANEL * b->depth + p) * PANEL;
    }
    *apart = n * PANEL;
    for (int k = 0; k < panels; k++, j += PANEL) {
        int64_t cols = b->cols - j < PANEL ? b->cols - j : PANEL;
        fill_any(room + k * *apart, b, p, n, j, (int)cols);
    }
    return room;
}
