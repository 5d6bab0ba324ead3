/* SPDX-License-Identifier: MIT */
/* matmul.c - the three matrix products, C [rows, cols] (+)= A [rows, depth] B.
 *
 *     y  = x w^T       depth k, B(k, n) = w[n][k]
 *     dx = dy w        depth n, B(n, k) = w[n][k]
 *     dw = dy^T x      depth m, B(m, k) = x[m][k],  A(n, m) = dy[m][n]
 *
 * Every output is one chain of multiply-adds over ascending depth (tile.h), so how the
 * work is cut changes no bit.  It is cut twice: C into blocks, the tasks of the thread
 * pool, and within a block the depth into runs of DEPTH steps.  For each run and pair
 * of panels B is packed into 32 KiB of the task's stack (level 1 cache) and meets all
 * rows of the block; A is read where it lies, its part of the block (512 x 256 floats)
 * staying in level 2. */
#include "cpu.h"

#include "panel.h"

#include <string.h>

enum { DEPTH = 256, WIDTH = TILE_PANELS * PANEL };

struct product {
    const struct tile_set *tiles;
    real *c; /* [rows][cols] */
    const real *a;
    int64_t a_row, a_step; /* A(i, p) = a[i * a_row + p * a_step] */
    struct panel_from b;
    int64_t rows, cols, depth;
    bool add;
    int64_t block_rows, block_cols, across; /* tasks to a row of blocks */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* run_edge runs a tile whose last columns are not there, through a copy of c. */
static void run_edge(const struct tile_set *tiles, const struct tile *t, int64_t cols)
{
    real copy[TILE_ROWS * WIDTH] = {0};
    struct tile u = *t;
    u.c = copy;
    u.ldc = WIDTH;
    for (int r = 0; r < t->rows; r++)
        memcpy(copy + r * WIDTH, t->c + r * t->ldc, (size_t)cols * sizeof(real));
    tiles->run(&u);
    for (int r = 0; r < t->rows; r++)
        memcpy(t->c + r * t->ldc, copy + r * WIDTH, (size_t)cols * sizeof(real));
}

/* run_rows gives one or two panels of B to rows [i, end) of C, from column j. */
static void run_rows(const struct product *g, struct tile t, int64_t i, int64_t end,
                     int64_t p, int64_t j)
{
    int64_t cols = least(g->cols - j, t.panels * PANEL);
    for (; i < end; i += t.rows) {
        t.rows = (int)least(end - i, g->tiles->rows);
        t.c = g->c + i * g->cols + j;
        t.a = g->a + i * g->a_row + p * g->a_step;
        if (cols == t.panels * PANEL)
            g->tiles->run(&t);
        else
            run_edge(g->tiles, &t, cols);
    }
}

static void run_block(const struct product *g, int64_t i, int64_t j)
{
    _Alignas(64) real room[DEPTH * WIDTH];
    int64_t i_end = least(i + g->block_rows, g->rows);
    int64_t j_end = least(j + g->block_cols, g->cols);
    int64_t p = 0;
    do {
        int64_t n = least(DEPTH, g->depth - p);
        for (int64_t at = j; at < j_end; at += WIDTH) {
            int panels = j_end - at > PANEL ? 2 : 1;
            struct tile t = {.ldc = g->cols,
                             .a_row = g->a_row,
                             .a_step = g->a_step,
                             .depth = n,
                             .panels = panels,
                             .add = g->add || p > 0};
            t.b = panel_get(&g->b, p, n, at, panels, room, &t.b_panel);
            run_rows(g, t, i, i_end, p, at);
        }
        p += DEPTH;
    } while (p < g->depth);
}

static int run_blocks(void *ctx, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const struct product *g = ctx;
    for (int64_t t = begin; t < end; t++)
        run_block(g, t / g->across * g->block_rows, t % g->across * g->block_cols);
    return 0;
}

static int64_t pieces(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

static void run_product(struct dev *d, struct product *g)
{
    g->tiles = d->state;
    int64_t threads = par_threads(d->par);
    g->block_rows = g->rows < 512 ? g->rows : 512;
    g->block_cols = g->rows < 64 ? WIDTH : 128;
    g->across = pieces(g->cols, g->block_cols);
    while (threads > 1 && g->block_rows > 96 &&
           g->across * pieces(g->rows, g->block_rows) < 4 * threads)
        g->block_rows /= 2;
    int64_t tasks = g->across * pieces(g->rows, g->block_rows);
    int64_t work = least(g->rows, g->block_rows) * g->block_cols * g->depth;
    int64_t grain = work > 100000 ? 1 : 100000 / (work + 1) + 1;
    par_for(d->par, tasks, grain, run_blocks, g); // tasks do not fail
}

void cpu_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                bool add)
{
    int64_t depth = w.dim[1], cols = w.dim[0];
    struct product g = {
        .c = y.data, .a = x.data, .a_row = depth, .a_step = 1, .add = add};
    g.b = (struct panel_from){.data = w.data,
                              .type = w.type,
                              .order = w.layout == T_ROWS ? PANEL_COLS : PANEL_READY,
                              .stride = depth,
                              .depth = depth,
                              .cols = cols};
    g.rows = x.dim[0];
    g.cols = cols;
    g.depth = depth;
    run_product(d, &g);
}

void cpu_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                   bool add)
{
    int64_t depth = w.dim[0], cols = w.dim[1];
    struct product g = {
        .c = dx.data, .a = dy.data, .a_row = depth, .a_step = 1, .add = add};
    g.b = (struct panel_from){w.data, w.type, PANEL_STEPS, cols, depth, cols};
    g.rows = dy.dim[0];
    g.cols = cols;
    g.depth = depth;
    run_product(d, &g);
}

void cpu_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x)
{
    int64_t depth = x.dim[0], cols = x.dim[1], rows = dy.dim[1];
    struct product g = {
        .c = dw.data, .a = dy.data, .a_row = 1, .a_step = rows, .add = true};
    g.b = (struct panel_from){x.data, x.type, PANEL_STEPS, cols, depth, cols};
    g.rows = rows;
    g.cols = cols;
    g.depth = depth;
    run_product(d, &g);
}

size_t cpu_pack_bytes(const struct dev *d, struct tensor w)
{
    (void)d;
    int64_t rows = pieces(w.dim[0], PANEL) * PANEL;
    return (size_t)(rows * w.dim[1]) * dtype_size(w.type);
}

void cpu_pack(struct dev *d, struct tensor p, struct tensor w)
{
    (void)d;
    int64_t n = w.dim[0], k = w.dim[1];
    size_t size = dtype_size(w.type);
    memset(p.data, 0, cpu_pack_bytes(d, w));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++)
            memcpy((char *)p.data +
                       (size_t)((i / PANEL * k + j) * PANEL + i % PANEL) * size,
                   (char *)w.data + (size_t)(i * k + j) * size, size);
}
