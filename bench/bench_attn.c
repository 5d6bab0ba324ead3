/* SPDX-License-Identifier: MIT */
/* bench_attn.c - the drafter's attention on a GPU, at the sizes of training.
 *
 *   bench_attn [RUNS]        medians of RUNS (15), 32 query heads, 8 key/value heads
 *
 * First what mma.sync alone reaches on this card; then for each case and direction the
 * median milliseconds of an op, the TFLOP/s of visible pairs (4 D a pair and head
 * forward, 10 D backward), and the share of that ceiling in the products that are done
 * (backward: 14 D).  The last line of a case is forward and backward in one stream.  A
 * time is that of several ops issued together, divided by their number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "kit_time.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "rng.h"

enum { HEADS = 32, KV = 8, D = 128, B = 16, TOGETHER = 10, RUNS_MAX = 99 };

struct attn_case {
    const char *name;
    int64_t docs[5]; /* lengths, 0: no more */
    int64_t anchors, window;
};

static const struct attn_case cases[] = {
    {"one document", {8192}, 512, 0},
    {"five documents", {1024, 512, 2048, 1536, 3072}, 512, 0},
    {"window 2048", {8192}, 512, 2048},
    {"short", {4096}, 128, 0},
};

struct problem {
    struct dev *d;
    struct arena arena;
    struct tensor o, lse, dout, q, kc, vc, kb, vb, lo, hi;
    struct attn_grads g;
    struct attn_block p;
    double pairs; /* visible, a head */
};

static int runs = 15;

static int whole(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* ---- a case's tensors ---- */

/* normal_bf16 is one of 4,096 draws from a sum of twelve: normal enough. */
static uint16_t normal_bf16(struct rng *r)
{
    static uint16_t pool[4096];
    if (!pool[0])
        for (int i = 0; i < 4096; i++) {
            double sum = -6;
            for (int j = 0; j < 12; j++)
                sum += rng_real(r);
            pool[i] = num_f32_bf16((float)sum);
        }
    return pool[rng_below(r, 4096)];
}

static int normal(struct problem *p, struct tensor *t, int64_t rows, int64_t heads,
                  uint64_t seed)
{
    *t = arena_tensor(&p->arena, DT_BF16, T3(rows, heads, D));
    size_t bytes = tensor_bytes(t);
    uint16_t *host = mem_alloc(bytes);
    if (!host)
        return E_MEMORY;
    struct rng r = rng_new(seed);
    for (int64_t i = 0; i < tensor_count(t); i++)
        host[i] = normal_bf16(&r);
    int rc = dev_put(p->d, t->data, host, bytes);
    mem_free(host);
    return rc;
}

static int64_t start_of(const struct attn_case *c, int64_t key)
{
    int64_t start = 0;
    for (int i = 0; i < 5 && c->docs[i] && start + c->docs[i] <= key; i++)
        start += c->docs[i];
    return start;
}

/* spans draws distinct anchors and writes what each row sees. */
static int spans(struct problem *p, const struct attn_case *c, int64_t s)
{
    int64_t rows = c->anchors * B;
    int32_t *key = mem_alloc((size_t)s * sizeof *key);
    int32_t *lo = mem_alloc(2 * (size_t)rows * sizeof *lo), *hi = lo + rows;
    struct rng r = rng_new(11);
    for (int64_t i = 0; i < s; i++)
        key[i] = (int32_t)i;
    for (int64_t i = 0; i < c->anchors; i++) {
        int64_t j = i + (int64_t)rng_below(&r, (uint64_t)(s - i));
        int32_t swap = key[i];
        key[i] = key[j];
        key[j] = swap;
    }
    qsort(key, (size_t)c->anchors, sizeof *key, whole);
    for (int64_t t = 0; t < rows; t++) {
        int64_t anchor = key[t / B], low = start_of(c, anchor);
        if (c->window && anchor + t % B - c->window + 1 > low)
            low = anchor + t % B - c->window + 1;
        hi[t] = (int32_t)anchor;
        lo[t] = (int32_t)(low < anchor ? low : anchor);
        p->pairs += hi[t] - lo[t] + (c->window ? t % B + 1 : B);
    }
    p->lo = arena_tensor(&p->arena, DT_I32, T1(rows));
    p->hi = arena_tensor(&p->arena, DT_I32, T1(rows));
    int rc = dev_put(p->d, p->lo.data, lo, tensor_bytes(&p->lo));
    if (rc >= 0)
        rc = dev_put(p->d, p->hi.data, hi, tensor_bytes(&p->hi));
    mem_free(key);
    mem_free(lo);
    return rc;
}

static int problem_open(struct problem *p, struct dev *d, const struct attn_case *c)
{
    int64_t s = 0, rows = c->anchors * B;
    for (int i = 0; i < 5; i++)
        s += c->docs[i];
    *p = (struct problem){.d = d};
    p->p = (struct attn_block){.block = B,
                               .causal = c->window > 0,
                               .window = (int)c->window,
                               .scale = 1 / sqrtf(D)};
    TRY(arena_open(&p->arena, d, "attention", (size_t)1 << 30));
    TRY(spans(p, c, s));
    TRY(normal(p, &p->q, rows, HEADS, 1));
    TRY(normal(p, &p->dout, rows, HEADS, 2));
    TRY(normal(p, &p->kc, s, KV, 3));
    TRY(normal(p, &p->vc, s, KV, 4));
    TRY(normal(p, &p->kb, rows, KV, 5));
    TRY(normal(p, &p->vb, rows, KV, 6));
    p->o = arena_tensor(&p->arena, DT_BF16, T3(rows, HEADS, D));
    p->lse = arena_tensor(&p->arena, DT_F32, T2(rows, HEADS));
    p->g.dq = arena_tensor(&p->arena, DT_BF16, T3(rows, HEADS, D));
    p->g.dkc = arena_tensor(&p->arena, DT_BF16, T3(s, KV, D));
    p->g.dvc = arena_tensor(&p->arena, DT_BF16, T3(s, KV, D));
    p->g.dkb = arena_tensor(&p->arena, DT_BF16, T3(rows, KV, D));
    p->g.dvb = arena_tensor(&p->arena, DT_BF16, T3(rows, KV, D));
    return 0;
}

/* ---- measuring ---- */

static void forward(const struct problem *p)
{
    op_attn_block(p->d, p->o, p->lse, p->q, p->kc, p->vc, p->kb, p->vb, p->lo, p->hi,
                  p->p);
}

static void backward(const struct problem *p)
{
    op_attn_block_bwd(p->d, p->g, p->dout, p->o, p->lse, p->q, p->kc, p->vc, p->kb,
                      p->vb, p->lo, p->hi, p->p);
}

static void both(const struct problem *p)
{
    forward(p);
    backward(p);
}

/* median_ms of one call of f. */
static double median_ms(const struct problem *p, void (*f)(const struct problem *))
{
    double took[RUNS_MAX];
    for (int i = -2; i < runs; i++) {
        double begun = kit_now();
        for (int j = 0; j < TOGETHER; j++)
            f(p);
        if (dev_sync(p->d) < 0)
            return NAN;
        if (i >= 0)
            took[i] = (kit_now() - begun) * 1e3 / TOGETHER;
    }
    return kit_median(took, runs);
}

static void line(const char *name, const char *what, double ms, double flop,
                 double done, double peak)
{
    printf("%-16s %-9s %8.3f ms %6.0f TFLOP/s %5.1f %%\n", name, what, ms,
           1e-9 * flop / ms, 100 * 1e-9 * done / ms / peak);
}

static int measure(struct dev *d, const struct attn_case *c, double peak)
{
    struct problem p;
    int rc;
    TRY_GOTO(rc, problem_open(&p, d, c), out);
    double pair = p.pairs * HEADS * D;
    double fwd = median_ms(&p, forward), bwd = median_ms(&p, backward);
    double sum = median_ms(&p, both);
    line(c->name, "forward", fwd, 4 * pair, 4 * pair, peak);
    line(c->name, "backward", bwd, 10 * pair, 14 * pair, peak);
    line(c->name, "both", sum, 14 * pair, 18 * pair, peak);
    rc = dev_sync(d);
out:
    arena_close(&p.arena);
    return rc;
}

static int bench(struct dev *d)
{
    double peak = 1e-12 * kit_mma_peak(d);
    printf("mma.sync alone: %.0f TFLOP/s; medians of %d\n", peak, runs);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        TRY(measure(d, &cases[i], peak));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        runs = (int)strtol(argv[1], NULL, 10);
    if (runs < 1 || runs > RUNS_MAX)
        return 64;
    return kit_bench("bench_attn", "cuda", 1, bench);
}
