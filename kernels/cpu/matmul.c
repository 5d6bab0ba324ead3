/* SPDX-License-Identifier: MIT */
/* matmul.c - the three matrix products, C [rows, cols] (+)= A [rows, depth] B.
 *
 *     y  = x w^T       depth k, B(k, n) = w[n][k]
 *     dx = dy w        depth n, B(n, k) = w[n][k]
 *     dw = dy^T x      depth m, B(m, k) = x[m][k],  A(n, m) = dy[m][n]
 *
 * Every output is one chain of multiply-adds over ascending depth (tile.h), so how the
 * work is cut changes no bit.  It is cut twice: C into blocks, the tasks of the thread
 * pool, and within a block the depth into runs of DEPTH steps.  For each run the
 * block's rows of A are copied close together (level 2 cache; where they lie they are
 * often a multiple of 4096 bytes apart and would evict each other), and each pair of
 * panels of B is packed (level 1) and meets all of them.  A block of few rows, as in
 * decoding, reads each number of A and B about once and so reads them in place. */
#include "matmul.h"

#include "panel.h"

#include <string.h>

enum {
    DEPTH = 256,
    PITCH = DEPTH + 16,    // between rows of packed A: no two in one set of level 1
    ROWS = 24 * TILE_ROWS, // of a block, at most
    WIDTH = TILE_PANELS * PANEL,
    PIECE = 1 << 18 // multiply-adds worth handing to a thread
};

/* One worker's packed operands. */
struct room {
    _Alignas(64) real b[DEPTH * WIDTH];
    real a[ROWS * PITCH];
};

struct product {
    const struct matmul *m;
    real *c; // [rows][cols]
    const real *a;
    int64_t a_row, a_step; // A(i, p) = a[i * a_row + p * a_step]; one of them is 1
    struct panel_from b;
    int64_t rows, cols, depth;
    bool add;
    int64_t block_rows, block_cols, across; // blocks beside each other
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* ---- one block ---- */

/* pack_rows copies n steps of `rows` rows.  Rows stay rows, PITCH apart; where steps
 * are rows in memory, each group of TILE_ROWS rows becomes [step][TILE_ROWS]. */
static void pack_rows(const struct product *g, real *out, int64_t i, int64_t rows,
                      int64_t p, int64_t n)
{
    const real *a = g->a + i * g->a_row + p * g->a_step;
    if (g->a_step == 1) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(out + r * PITCH, a + r * g->a_row, (size_t)n * sizeof *a);
        return;
    }
    for (int64_t k = 0; k < n; k++, a += g->a_step) {
        real *to = out + k * TILE_ROWS;
        int64_t r = 0;
        for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
            memcpy(to + r * PITCH, a + r, TILE_ROWS * sizeof *a);
        if (r < rows)
            memcpy(to + r * PITCH, a + r, (size_t)(rows - r) * sizeof *a);
    }
}

/* run_edge runs a tile whose last columns are not there, through a copy of c. */
static void run_edge(const struct tile_set *tiles, const struct tile *t, int64_t cols)
{
    real copy[TILE_ROWS * WIDTH] = {0};
    struct tile u = *t;
    u.c = copy;
    u.ldc = WIDTH;
    for (int r = 0; r < t->rows; r++)
        memcpy(copy + r * WIDTH, t->c + r * t->ldc, (size_t)cols * sizeof *copy);
    tiles->run(&u);
    for (int r = 0; r < t->rows; r++)
        memcpy(t->c + r * t->ldc, copy + r * WIDTH, (size_t)cols * sizeof *copy);
}

/* run_rows gives the panels in t to `rows` rows of C from (i, j); t->a is the first
 * row, `group` the distance from one group of TILE_ROWS rows of A to the next. */
static void run_rows(const struct product *g, struct tile t, int64_t i, int64_t j,
                     int64_t rows, int64_t group)
{
    const struct tile_set *tiles = g->m->tiles;
    const real *a = t.a;
    int64_t cols = least(g->cols - j, t.panels * PANEL);
    for (int64_t r = 0; r < rows; r += t.rows) {
        t.rows = (int)least(rows - r, tiles->rows);
        t.c = g->c + (i + r) * g->cols + j;
        t.a = a + r / TILE_ROWS * group + r % TILE_ROWS * t.a_row;
        if (cols == t.panels * PANEL)
            tiles->run(&t);
        else
            run_edge(tiles, &t, cols);
    }
}

/* run_steps adds steps [p, p + n) to the block of C at (i, j). */
static void run_steps(const struct product *g, struct room *room, int64_t i, int64_t j,
                      int64_t p, int64_t n)
{
    int64_t rows = least(g->block_rows, g->rows - i), group;
    int64_t end = least(j + g->block_cols, g->cols);
    bool few = rows <= 2 * g->m->tiles->rows;
    struct tile t = {.ldc = g->cols, .depth = n, .add = g->add || p > 0};
    if (few) {
        t.a = g->a + i * g->a_row + p * g->a_step;
        t.a_row = g->a_row;
        t.a_step = g->a_step;
        group = TILE_ROWS * g->a_row;
    } else {
        pack_rows(g, room->a, i, rows, p, n);
        t.a = room->a;
        t.a_row = g->a_step == 1 ? PITCH : 1;
        t.a_step = g->a_step == 1 ? 1 : TILE_ROWS;
        group = TILE_ROWS * PITCH;
    }
    for (; j < end; j += WIDTH) {
        t.panels = end - j > PANEL ? 2 : 1;
        panel_get(&t, &g->b, p, j, room->b, few);
        run_rows(g, t, i, j, rows, group);
    }
}

static int run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct product *g = ctx;
    struct room *room = (struct room *)g->m->room + worker;
    for (int64_t t = begin; t < end; t++) {
        int64_t i = t / g->across * g->block_rows, j = t % g->across * g->block_cols;
        int64_t p = 0;
        do // at least once: a product over nothing is 0
            run_steps(g, room, i, j, p, least(DEPTH, g->depth - p));
        while ((p += DEPTH) < g->depth);
    }
    return 0;
}

/* ---- the whole ---- */

/* cut chooses the blocks: rows evenly, so that the last block is no crumb; then the
 * longer side in halves until each thread has several, but not below what packing
 * costs little of.  Few rows take two panels at a time, each read from end to end. */
static int64_t cut(struct product *g, int threads)
{
    int64_t tasks;
    int64_t rows = pieces(g->rows, pieces(g->rows, ROWS));
    int64_t cols = g->rows <= 2 * TILE_ROWS ? WIDTH : g->cols;
    for (;;) {
        g->block_rows = pieces(rows, TILE_ROWS) * TILE_ROWS;
        g->block_cols = pieces(cols, WIDTH) * WIDTH;
        g->across = pieces(g->cols, g->block_cols);
        tasks = g->across * pieces(g->rows, g->block_rows);
        int64_t floor = tasks < threads ? 32 : 128;
        if (threads == 1 || tasks >= 8 * threads || (rows <= floor && cols <= floor))
            return tasks;
        if (rows > cols)
            rows /= 2;
        else
            cols /= 2;
    }
}

static void run_product(struct dev *d, struct product *g)
{
    g->m = d->state;
    if (!g->rows || !g->cols)
        return;
    int64_t tasks = cut(g, par_threads(d->par));
    int64_t work = g->rows * g->cols * g->depth / tasks;
    par_for(d->par, tasks, PIECE / (work + 1) + 1, run_blocks, g); // never fails
}

size_t matmul_room(int threads)
{
    return (size_t)threads * sizeof(struct room);
}

void cpu_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                bool add)
{
    int64_t rows = x.dim[0], cols = w.dim[0], depth = w.dim[1];
    enum panel_order order = w.layout == T_ROWS ? PANEL_COLS : PANEL_READY;
    struct product g = {.c = y.data,
                        .a = x.data,
                        .a_row = depth,
                        .a_step = 1,
                        .b = {w.data, w.type, order, depth, depth, cols},
                        .rows = rows,
                        .cols = cols,
                        .depth = depth,
                        .add = add};
    run_product(d, &g);
}

void cpu_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                   bool add)
{
    int64_t rows = dy.dim[0], cols = w.dim[1], depth = w.dim[0];
    struct product g = {.c = dx.data,
                        .a = dy.data,
                        .a_row = depth,
                        .a_step = 1,
                        .b = {w.data, w.type, PANEL_STEPS, cols, depth, cols},
                        .rows = rows,
                        .cols = cols,
                        .depth = depth,
                        .add = add};
    run_product(d, &g);
}

void cpu_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x)
{
    int64_t rows = dy.dim[1], cols = x.dim[1], depth = x.dim[0];
    struct product g = {.c = dw.data,
                        .a = dy.data,
                        .a_row = 1,
                        .a_step = rows,
                        .b = {x.data, x.type, PANEL_STEPS, cols, depth, cols},
                        .rows = rows,
                        .cols = cols,
                        .depth = depth,
                        .add = true};
    run_product(d, &g);
}
