/* SPDX-License-Identifier: MIT */
/* test_matmul.c - the CPU's matrix products, bit for bit, against their definition.
 *
 * The definition is one chain of fmaf per output, written here as a plain loop.  Every
 * way to compute it must give those bits: both sets of tiles, any number of threads,
 * weights as rows or panels, in bf16 or f32 (the weights here are values that bf16
 * holds).  Rows thus depend on themselves alone, and a reversed order or a rounding
 * between multiply and add shows.  Shapes sit at the edges of tiles (6, 12 rows; 16, 32
 * columns), of runs (256 steps) and of blocks (288 rows). */
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/matmul.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "par.h"
#include "rng.h"

static const struct shape {
    int64_t m, n, k;
} shape[] = {
    {1, 1, 1},     {1, 16, 3},     {5, 17, 2},     {6, 15, 7},    {7, 33, 64},
    {12, 32, 255}, {13, 31, 256},  {16, 48, 257},  {17, 1, 300},  {24, 100, 40},
    {25, 70, 513}, {130, 5, 31},   {130, 129, 70}, {300, 40, 20}, {1, 500, 700},
    {16, 300, 90}, {600, 26, 37},  {64, 600, 9},   {257, 3, 130}, {289, 289, 5},
    {5, 3, 0},     {49, 200, 530}, {512, 12, 36},
};
enum { SHAPES = sizeof shape / sizeof shape[0], HEIGHTS = 25, GUARD = 64 };

/* shape_at goes through the table and then through every height of a tile. */
static struct shape shape_at(int i)
{
    int64_t height = i - SHAPES + 1;
    return i < SHAPES ? shape[i] : (struct shape){height, HEIGHTS + 1 - height, 9};
}

/* ---- the definition ---- */

static float chain(float sum, const float *a, int64_t a_step, const float *b,
                   int64_t b_step, int64_t steps)
{
    for (int64_t p = 0; p < steps; p++)
        sum = fmaf(a[p * a_step], b[p * b_step], sum);
    return sum;
}

static void define_y(float *y, const float *x, const float *w, struct shape s, bool add)
{
    for (int64_t m = 0; m < s.m; m++)
        for (int64_t n = 0; n < s.n; n++) {
            float *out = y + m * s.n + n;
            *out = chain(add ? *out : 0, x + m * s.k, 1, w + n * s.k, 1, s.k);
        }
}

static void define_dx(float *dx, const float *dy, const float *w, struct shape s,
                      bool add)
{
    for (int64_t m = 0; m < s.m; m++)
        for (int64_t k = 0; k < s.k; k++) {
            float *out = dx + m * s.k + k;
            *out = chain(add ? *out : 0, dy + m * s.n, 1, w + k, s.k, s.n);
        }
}

static void define_dw(float *dw, const float *dy, const float *x, struct shape s)
{
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t k = 0; k < s.k; k++) {
            float *out = dw + n * s.k + k;
            *out = chain(*out, dy + n, s.n, x + k, s.k, s.m);
        }
}

/* ---- operands ---- */

/* Numbers of full precision, followed by a guard that no product may touch. */
static float *numbers(uint64_t key, int64_t n)
{
    float *p = mem_alloc((size_t)(n + GUARD) * sizeof *p);
    struct rng r = rng_new(rng_key(&key, 1));
    for (int64_t i = 0; i < n + GUARD; i++)
        p[i] = (float)rng_real(&r) * 4 - 2;
    return p;
}

static float *copy(const float *p, int64_t n)
{
    float *q = mem_alloc((size_t)(n + GUARD) * sizeof *q);
    memcpy(q, p, (size_t)(n + GUARD) * sizeof *q);
    return q;
}

struct operands {
    struct shape s;
    float *x, *w, *dy; // w holds bf16 values
    uint16_t *half;    // w in bf16
};

static void operands_make(struct operands *o, struct shape s)
{
    int64_t n = s.n * s.k;
    o->s = s;
    o->x = numbers(1, s.m * s.k);
    o->w = numbers(2, n);
    o->dy = numbers(3, s.m * s.n);
    o->half = mem_alloc((size_t)n * sizeof *o->half);
    for (int64_t i = 0; i < n; i++) {
        o->half[i] = num_f32_bf16(o->w[i]);
        o->w[i] = num_bf16_f32(o->half[i]);
    }
}

static void operands_drop(struct operands *o)
{
    mem_free(o->x);
    mem_free(o->w);
    mem_free(o->dy);
    mem_free(o->half);
}

static struct tensor f32(float *p, int64_t rows, int64_t cols)
{
    return tensor_of(p, DT_F32, T2(rows, cols));
}

/* weight gives w in one of its four forms; panels are the caller's to free. */
static struct tensor weight(struct dev *d, const struct operands *o, enum dtype type,
                            enum layout layout)
{
    struct tensor w = tensor_of(type == DT_F32 ? (void *)o->w : (void *)o->half, type,
                                T2(o->s.n, o->s.k));
    if (layout == T_ROWS)
        return w;
    struct tensor p = w;
    p.layout = T_PANELS;
    p.data = mem_alloc(op_pack_bytes(d, w));
    op_pack(d, p, w);
    return p;
}

/* ---- every way to compute ---- */

static const struct tile_set *const sets[] = {&tile_avx2, &tile_avx512};

/* per_device runs `check` with 1, 2 and 3 threads on each set of tiles. */
static void per_device(void (*check)(struct dev *d, const char *how))
{
    for (int threads = 1; threads <= 3; threads++) {
        struct par *par;
        struct dev *d;
        kit_ok(par_open(&par, threads));
        kit_ok(dev_open(&d, "cpu", par));
        struct matmul *m = d->state;
        bool wide = m->tiles == &tile_avx512;
        if (!wide && threads == 1)
            printf("skip: tile_avx512: no AVX-512F here\n");
        for (int i = 0; i <= wide; i++) {
            char how[64];
            m->tiles = sets[i];
            snprintf(how, sizeof how, "%s, %d threads", sets[i]->name, threads);
            check(d, how);
        }
        kit_ok(dev_sync(d));
        dev_close(d);
        par_close(par);
    }
}

static void same(const char *op, const char *how, const struct operands *o,
                 const float *got, const float *want, int64_t n)
{
    char what[160];
    snprintf(what, sizeof what, "%s M=%d N=%d K=%d %s", op, (int)o->s.m, (int)o->s.n,
             (int)o->s.k, how);
    kit_same(what, got, want, (size_t)(n + GUARD) * sizeof *got);
}

static void check_y(struct dev *d, const struct operands *o, bool add, const char *how)
{
    int64_t n = o->s.m * o->s.n;
    float *old = numbers(4, n), *want = copy(old, n);
    define_y(want, o->x, o->w, o->s, add);
    for (int form = 0; form < 4; form++) {
        struct tensor w =
            weight(d, o, form & 1 ? DT_BF16 : DT_F32, form & 2 ? T_PANELS : T_ROWS);
        float *y = copy(old, n);
        op_matmul(d, f32(y, o->s.m, o->s.n), f32(o->x, o->s.m, o->s.k), w, add);
        same(form & 2 ? "matmul of panels" : "matmul", how, o, y, want, n);
        mem_free(y);
        if (form & 2)
            mem_free(w.data);
    }
    mem_free(old);
    mem_free(want);
}

static void all_y(struct dev *d, const char *how)
{
    for (int i = 0; i < SHAPES + HEIGHTS; i++) {
        struct operands o;
        operands_make(&o, shape_at(i));
        check_y(d, &o, false, how);
        check_y(d, &o, true, how);
        operands_drop(&o);
    }
}

START_TEST(forward)
{
    per_device(all_y);
}
END_TEST

static void check_dx(struct dev *d, const struct operands *o, bool add, const char *how)
{
    int64_t n = o->s.m * o->s.k;
    float *old = numbers(5, n), *want = copy(old, n);
    define_dx(want, o->dy, o->w, o->s, add);
    for (int form = 0; form < 2; form++) {
        struct tensor w = weight(d, o, form ? DT_BF16 : DT_F32, T_ROWS);
        float *dx = copy(old, n);
        op_matmul_dx(d, f32(dx, o->s.m, o->s.k), f32(o->dy, o->s.m, o->s.n), w, add);
        same("matmul_dx", how, o, dx, want, n);
        mem_free(dx);
    }
    mem_free(old);
    mem_free(want);
}

static void check_dw(struct dev *d, const struct operands *o, const char *how)
{
    int64_t n = o->s.n * o->s.k;
    float *dw = numbers(6, n), *want = copy(dw, n);
    define_dw(want, o->dy, o->x, o->s);
    op_matmul_dw(d, f32(dw, o->s.n, o->s.k), f32(o->dy, o->s.m, o->s.n),
                 f32(o->x, o->s.m, o->s.k));
    same("matmul_dw", how, o, dw, want, n);
    mem_free(dw);
    mem_free(want);
}

static void all_gradients(struct dev *d, const char *how)
{
    for (int i = 0; i < SHAPES + HEIGHTS; i++) {
        struct operands o;
        operands_make(&o, shape_at(i));
        check_dx(d, &o, false, how);
        check_dx(d, &o, true, how);
        check_dw(d, &o, how);
        operands_drop(&o);
    }
}

START_TEST(backward)
{
    per_device(all_gradients);
}
END_TEST

KIT_MAIN("matmul", forward, backward)
