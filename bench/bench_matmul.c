/* SPDX-License-Identifier: MIT */
/* bench_matmul.c - the matrix products beside OpenBLAS, in one run.
 *
 *   THREADS=1 bench_matmul      one a core unless said otherwise
 *
 * A line a product: which, M N K, GFLOP/s with each set of tiles, OpenBLAS's, and the
 * ratio of our best to that; for few rows also GB/s of weights read.  Medians of seven
 * runs of at least 10 ms, taken in turn, so that a change of clock meets all alike.
 * With one thread its processor time counts, which other processes disturb less.
 *
 * OpenBLAS is loaded when it is installed and never linked.  0.3.21 takes processors
 * that it does not know for a Prescott; so the kernels are named here: SkylakeX where
 * there is AVX-512, else Haswell, whatever OPENBLAS_CORETYPE says. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/matmul.h"
#include "err.h"
#include "kit_time.h"
#include "op.h"
#include "par.h"

enum { RUNS = 7, WAYS = 3, ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 };

/* ---- the peer ---- */

typedef void gemm_fn(int order, int turn_a, int turn_b, int m, int n, int k,
                     float alpha, const float *a, int lda, const float *b, int ldb,
                     float beta, float *c, int ldc);

static gemm_fn *peer;

static void peer_open(int threads)
{
    setenv("OPENBLAS_CORETYPE",
           __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell", 1);
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!lib) {
        printf("# OpenBLAS: not installed\n");
        return;
    }
    void (*set_threads)(int);
    char *(*corename)(void), *(*config)(void);
    *(void **)&peer = dlsym(lib, "cblas_sgemm");
    *(void **)&set_threads = dlsym(lib, "openblas_set_num_threads");
    *(void **)&corename = dlsym(lib, "openblas_get_corename");
    *(void **)&config = dlsym(lib, "openblas_get_config");
    set_threads(threads);
    printf("# %s; kernels in use: %s\n", config(), corename());
}

/* ---- one product ---- */

enum what { Y, DX, DW, PANELS_F32, PANELS_BF16 };

struct product {
    enum what what;
    int m, n, k;
    struct dev *d;
    struct tensor x, w, y, p; // p: w in panels
};

static void run_ours(const struct product *g)
{
    switch (g->what) {
    case Y:
        op_matmul(g->d, g->y, g->x, g->w, false);
        break;
    case DX:
        op_matmul_dx(g->d, g->x, g->y, g->w, false);
        break;
    case DW:
        op_matmul_dw(g->d, g->w, g->y, g->x);
        break;
    default:
        op_matmul(g->d, g->y, g->x, g->p, false);
    }
}

static void run_peer(const struct product *g)
{
    int m = g->m, n = g->n, k = g->k;
    float *x = g->x.data, *w = g->w.data, *y = g->y.data;
    if (g->what == DX)
        peer(ROW_MAJOR, AS_IS, AS_IS, m, k, n, 1, y, n, w, k, 0, x, k);
    else if (g->what == DW)
        peer(ROW_MAJOR, TURNED, AS_IS, n, k, m, 1, y, n, x, k, 1, w, k);
    else
        peer(ROW_MAJOR, AS_IS, TURNED, m, n, k, 1, x, k, w, k, 0, y, n);
}

static void run_way(const struct product *g, int way)
{
    struct matmul *m = g->d->state;
    m->tiles = way == 0 ? &tile_avx2 : &tile_avx512;
    if (way == 2)
        run_peer(g);
    else
        run_ours(g);
}

/* ---- time ---- */

static clockid_t meter = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(meter, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(const struct product *g, int way, int times)
{
    double begun = now();
    for (int i = 0; i < times; i++)
        run_way(g, way);
    return (now() - begun) / times;
}

/* measure gives the median seconds of each way; 0 where there is none. */
static void measure(const struct product *g, double median[WAYS])
{
    double took[WAYS][RUNS];
    bool has[WAYS] = {true, __builtin_cpu_supports("avx512f"), peer != NULL};
    seconds(g, 0, 1);
    int times = (int)(0.01 / seconds(g, 0, 1)) + 1;
    for (int run = -1; run < RUNS; run++) // the first is not counted
        for (int way = 0; way < WAYS; way++)
            if (has[way])
                took[way][run < 0 ? 0 : run] = seconds(g, way, times);
    for (int way = 0; way < WAYS; way++) {
        if (has[way])
            kit_sort(took[way], RUNS);
        median[way] = has[way] ? took[way][RUNS / 2] : 0;
    }
}

static void report(const struct product *g)
{
    static const char *const name[] = {"y", "dx", "dw", "y_panels", "y_panels_bf16"};
    double t[WAYS], flops = 2.0 * g->m * g->n * g->k, best;
    measure(g, t);
    best = t[1] > 0 && t[1] < t[0] ? t[1] : t[0];
    printf("%-14s %5d %5d %5d", name[g->what], g->m, g->n, g->k);
    for (int way = 0; way < WAYS; way++)
        printf(" %8.1f", t[way] > 0 ? 1e-9 * flops / t[way] : 0);
    printf(" %7.2f", t[2] / best);
    if (g->m < 64)
        printf(" %7.1f", 1e-9 * (g->what == PANELS_BF16 ? 2 : 4) * g->n * g->k / best);
    printf("\n");
    fflush(stdout);
}

/* ---- shapes ---- */

static struct tensor matrix(struct arena *a, int64_t rows, int64_t cols)
{
    struct tensor t = arena_tensor(a, DT_F32, T2(rows, cols));
    float *p = t.data;
    for (int64_t i = 0; i < rows * cols; i++)
        p[i] = (float)(i * 7919 % 2003 - 1001) / 1001;
    return t;
}

/* rate measures [M,K] by [N,K]: all three products for many rows, else both kinds of
 * panels. */
static int rate(struct dev *d, int m, int n, int k)
{
    struct arena a;
    struct product g = {.m = m, .n = n, .k = k, .d = d};
    TRY(arena_open(&a, d, "bench", 4 * (size_t)(m * k + 3 * n * k + m * n) + 8192));
    g.x = matrix(&a, m, k);
    g.w = matrix(&a, n, k);
    g.y = matrix(&a, m, n);
    g.p = arena_tensor(&a, DT_F32, T2((n + 15) / 16 * 16, k));
    g.p.layout = T_PANELS;
    g.p.dim[0] = n;
    for (enum what w = m < 64 ? PANELS_F32 : Y; w <= (m < 64 ? PANELS_BF16 : DW); w++) {
        g.what = w;
        if (w == PANELS_BF16) {
            struct tensor half = g.w;
            half.type = g.p.type = DT_BF16; // half of it, read as other numbers
            op_fill(d, half, 0.25f);
            op_pack(d, g.p, half);
        } else if (w == PANELS_F32) {
            op_pack(d, g.p, g.w);
        }
        report(&g);
    }
    arena_close(&a);
    return dev_sync(d);
}

static int rates(struct dev *d)
{
    static const int shape[][3] = {
        {4096, 768, 256},   {4096, 256, 768},  {4096, 256, 256},  {4096, 64, 256},
        {4096, 256, 64},    {8192, 256, 512},  {4096, 4096, 256}, {4096, 1024, 1024},
        {1024, 4096, 4096}, {128, 1024, 1024}, {1, 768, 256},     {8, 768, 256},
        {16, 768, 256},     {1, 4096, 256},    {8, 4096, 256},    {1, 4096, 4096},
        {8, 4096, 4096},    {16, 4096, 4096},
    };
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        TRY(rate(d, shape[i][0], shape[i][1], shape[i][2]));
    return 0;
}

static int bench(struct dev *d)
{
    int threads = par_threads(d->par);
    peer_open(threads);
    if (threads == 1)
        meter = CLOCK_THREAD_CPUTIME_ID;
    printf("# %d threads\n# what M N K avx2 avx512 openblas best/openblas GB/s\n",
           threads);
    return rates(d);
}

int main(void)
{
    const char *text = getenv("THREADS");
    int threads = text ? (int)strtol(text, NULL, 10) : 0;
    return kit_bench("bench_matmul", "cpu", threads, bench);
}
