/* SPDX-License-Identifier: MIT */
/* optim.c - over flat memory: AdamW, sum of squares, fill, scale, and the search for
 * what is not finite; normal draws. */
#include "loop.h"
#include "vec.h"

#include "err.h"
#include "rng.h"

#include <math.h>

struct optim {
    struct tensor x, w, master, m, v, grad;
    struct adamw p;
    real value, correct1, correct2; // 1 / (1 - beta^t)
    uint64_t key;
    double part[LOOP_PARTS];
    const char *what;
};

/* Pieces of LOOP_PIECE elements, numbered from 0. */
static int64_t pieces(const struct tensor *x)
{
    return (tensor_count(x) + LOOP_PIECE - 1) / LOOP_PIECE;
}

static int64_t piece_size(const struct tensor *x, int64_t piece)
{
    int64_t left = tensor_count(x) - piece * LOOP_PIECE;
    return left < LOOP_PIECE ? left : LOOP_PIECE;
}

static int sumsq_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct optim *a = ctx;
    int64_t n = pieces(&a->x);
    (void)worker;
    for (int64_t p = begin; p < end; p++)
        for (int64_t i = loop_part_row(n, p); i < loop_part_row(n, p + 1); i++) {
            real buf[LOOP_PIECE];
            int64_t size = piece_size(&a->x, i);
            const real *v = loop_reals(&a->x, i * LOOP_PIECE, size, buf);
            a->part[p] += vec_dot64(v, v, size);
        }
    return 0;
}

void cpu_sumsq(struct dev *d, struct tensor sum, struct tensor x)
{
    struct optim a = {.x = x};
    loop_parts(d, sumsq_parts, &a);
    double total = 0;
    for (int p = 0; p < LOOP_PARTS; p++)
        total += a.part[p];
    *(double *)sum.data += total;
}

static int fill_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct optim *a = ctx;
    real buf[LOOP_PIECE];
    (void)worker;
    for (int64_t i = 0; i < LOOP_PIECE; i++)
        buf[i] = a->value;
    for (int64_t i = begin; i < end; i++)
        loop_store(&a->x, i * LOOP_PIECE, piece_size(&a->x, i), buf);
    return 0;
}

void cpu_fill(struct dev *d, struct tensor x, float value)
{
    struct optim a = {.x = x, .value = value};
    loop_rows(d, pieces(&x), LOOP_PIECE, fill_pieces, &a);
}

static int scale_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct optim *a = ctx;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        real buf[LOOP_PIECE], out[LOOP_PIECE];
        int64_t n = piece_size(&a->x, i);
        const real *v = loop_reals(&a->x, i * LOOP_PIECE, n, buf);
        for (int64_t j = 0; j < n; j++)
            out[j] = v[j] * a->value;
        loop_store(&a->x, i * LOOP_PIECE, n, out);
    }
    return 0;
}

void cpu_scale(struct dev *d, struct tensor x, float value)
{
    struct optim a = {.x = x, .value = value};
    loop_rows(d, pieces(&x), LOOP_PIECE, scale_pieces, &a);
}

/* ---- AdamW ---- */

/* power is b^n by squaring: libm's pow may differ in the last bit from one C library to
 * the next. */
static double power(double b, int64_t n)
{
    double result = 1;
    for (; n > 0; n /= 2, b *= b)
        if (n % 2)
            result *= b;
    return result;
}

static int adamw_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct optim *a = ctx;
    const struct adamw *p = &a->p;
    (void)worker;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t at = piece * LOOP_PIECE, n = piece_size(&a->master, piece);
        real *master = (real *)a->master.data + at;
        real *m = (real *)a->m.data + at, *v = (real *)a->v.data + at;
        real buf[LOOP_PIECE];
        const real *grad = loop_reals(&a->grad, at, n, buf);
        for (int64_t i = 0; i < n; i++) {
            real g = grad[i] * p->scale;
            m[i] = p->beta1 * m[i] + (1 - p->beta1) * g;
            v[i] = p->beta2 * v[i] + (1 - p->beta2) * g * g;
            real step = m[i] * a->correct1 / (mathf_sqrt(v[i] * a->correct2) + p->eps);
            master[i] -= p->lr * (step + p->decay * master[i]);
        }
        loop_store(&a->w, at, n, master);
    }
    return 0;
}

void cpu_adamw(struct dev *d, struct tensor w, struct tensor master, struct tensor m,
               struct tensor v, struct tensor grad, struct adamw p)
{
    struct optim a = {.w = w, .master = master, .m = m, .v = v, .grad = grad, .p = p};
    a.correct1 = (real)(1 / (1 - power(p.beta1, p.step)));
    a.correct2 = (real)(1 / (1 - power(p.beta2, p.step)));
    loop_rows(d, pieces(&master), 8 * LOOP_PIECE, adamw_pieces, &a);
}

/* ---- normal draws ---- */

enum { NORMAL_WORDS = 4, NORMAL_COST = 100 };

static int normal_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct optim *a = ctx;
    (void)worker;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t at = piece * LOOP_PIECE, n = piece_size(&a->x, piece);
        struct rng r = {.key = a->key, .next = (uint64_t)at * NORMAL_WORDS};
        real buf[LOOP_PIECE];
        for (int64_t i = 0; i < n; i++)
            buf[i] = a->value * (real)rng_normal(&r);
        loop_store(&a->x, at, n, buf);
    }
    return 0;
}

void cpu_normal(struct dev *d, struct tensor x, uint64_t key, float sigma)
{
    struct optim a = {.x = x, .value = (real)sigma, .key = key};
    loop_rows(d, pieces(&x), NORMAL_COST * LOOP_PIECE, normal_pieces, &a);
}

/* ---- finite ---- */

static int finite_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct optim *a = ctx;
    int64_t width = a->x.dim[1];
    (void)worker;
    for (int64_t r = begin; r < end; r++)
        for (int64_t i = 0; i < width; i += LOOP_PIECE) {
            real buf[LOOP_PIECE];
            int64_t n = width - i < LOOP_PIECE ? width - i : LOOP_PIECE;
            const real *v = loop_reals(&a->x, r * width + i, n, buf);
            for (int64_t j = 0; j < n; j++)
                if (!isfinite(v[j]))
                    return err_set(E_FORMAT, "%s: row %lld holds %g at %lld", a->what,
                                   (long long)r, (double)v[j], (long long)(i + j));
        }
    return 0;
}

void cpu_finite(struct dev *d, struct tensor x, const char *what)
{
    struct optim a = {.x = x, .what = what};
    loop_rows(d, x.dim[0], x.dim[1], finite_rows, &a);
}
