/* SPDX-License-Identifier: MIT */
/* norm.c - RMSNorm over rows, and the sum of two tensors.
 *
 * Forward: rows are independent.  Backward: rows again, but dw sums over them: each of
 * a fixed number of parts adds its rows into its own f64 sum, and the parts are added
 * up in order, so the bits do not depend on the number of threads. */
#include "loop.h"
#include "norm.h"

#include <string.h>

struct norm {
    struct tensor y, x, w, dy;
    const real *weight; // w as reals
    double *part;       // [LOOP_PARTS][H] sums of dw
    real eps;
};

static int rmsnorm_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct norm *a = ctx;
    int64_t h = a->x.dim[1];
    (void)worker;
    for (int64_t t = begin; t < end; t++)
        norm_row((real *)a->y.data + t * h, (const real *)a->x.data + t * h, a->weight,
                 h, a->eps);
    return 0;
}

void cpu_rmsnorm(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                 float eps)
{
    int64_t h = x.dim[1];
    real *buf = cpu_scratch(d, (size_t)h * sizeof(real));
    if (!buf)
        return;
    struct norm a = {.y = y, .x = x, .weight = loop_reals(&w, 0, h, buf), .eps = eps};
    loop_rows(d, x.dim[0], 2 * h, rmsnorm_rows, &a);
}

static int rmsnorm_bwd_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct norm *a = ctx;
    int64_t rows = a->x.dim[0], h = a->x.dim[1];
    (void)worker;
    for (int64_t p = begin; p < end; p++)
        for (int64_t t = loop_part_row(rows, p); t < loop_part_row(rows, p + 1); t++)
            norm_row_bwd((real *)a->y.data + t * h, a->part + p * h,
                         (const real *)a->dy.data + t * h,
                         (const real *)a->x.data + t * h, a->weight, h, a->eps);
    return 0;
}

void cpu_rmsnorm_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                     struct tensor dy, struct tensor x, struct tensor w, float eps)
{
    int64_t h = x.dim[1];
    size_t sums = LOOP_PARTS * (size_t)h * sizeof(double);
    double *part = cpu_scratch(d, sums + (size_t)h * sizeof(real));
    if (!part)
        return;
    memset(part, 0, sums);
    real *buf = (real *)(part + LOOP_PARTS * h);
    struct norm a = {.y = dx, .x = x, .dy = dy, .part = part, .eps = eps};
    a.weight = loop_reals(&w, 0, h, buf);
    loop_parts(d, rmsnorm_bwd_parts, &a);
    loop_add_parts(&dw, part);
}

/* ---- sums ---- */

static int add_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct norm *a = ctx;
    real *y = a->y.data;
    const real *x = a->x.data, *b = a->w.data;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        y[i] = x[i] + b[i];
    return 0;
}

void cpu_add(struct dev *d, struct tensor y, struct tensor a, struct tensor b)
{
    struct norm args = {.y = y, .x = a, .w = b};
    loop_rows(d, tensor_count(&y), 1, add_pieces, &args);
}
