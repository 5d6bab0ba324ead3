/* SPDX-License-Identifier: MIT */
/* normrope.c - RMSNorm of each head, then its rotation by position.
 *
 * Sine and cosine of a row's D/2 angles are computed once and serve all its heads.  A
 * rotation's transpose is the rotation by the opposite angle: backward turns dy back
 * and goes on as the norm does (norm.h). */
#include "loop.h"
#include "norm.h"

#include <string.h>

struct normrope {
    struct tensor y, x, w, dy, pos, freq;
    double *part; // [LOOP_PARTS][D] sums of dw
    real eps;
};

/* angles: pos * freq is rounded to real, as the reference models do it. */
static void angles(const struct normrope *a, int64_t t, real *sine, real *cosine)
{
    const float *freq = a->freq.data;
    real pos = (real)((const int32_t *)a->pos.data)[t];
    for (int64_t i = 0; i < a->freq.dim[0]; i++)
        mathf_sincos(pos * freq[i], sine + i, cosine + i);
}

/* turn rotates a head; sign -1 turns it back.  y may be x. */
static void turn(real *y, const real *x, const real *sine, const real *cosine,
                 int64_t half, real sign)
{
    for (int64_t i = 0; i < half; i++) {
        real a = x[i], b = x[i + half], s = sign * sine[i];
        y[i] = a * cosine[i] - b * s;
        y[i + half] = b * cosine[i] + a * s;
    }
}

static int norm_rope_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct normrope *a = ctx;
    int64_t n = a->x.dim[1], width = a->x.dim[2];
    real buf[OP_HEAD_MAX], unit[OP_HEAD_MAX], sine[OP_HEAD_MAX / 2],
        cosine[OP_HEAD_MAX / 2];
    const real *w = a->w.data ? loop_reals(&a->w, 0, width, buf) : NULL;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        angles(a, t, sine, cosine);
        for (int64_t h = t * n; h < (t + 1) * n; h++) {
            const real *x = (const real *)a->x.data + h * width;
            if (w)
                norm_row(unit, x, w, width, a->eps);
            turn((real *)a->y.data + h * width, w ? unit : x, sine, cosine, width / 2,
                 1);
        }
    }
    return 0;
}

void cpu_norm_rope(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                   struct tensor pos, struct tensor freq, float eps)
{
    struct normrope a = {.y = y, .x = x, .w = w, .pos = pos, .freq = freq, .eps = eps};
    loop_rows(d, x.dim[0], 4 * x.dim[1] * x.dim[2], norm_rope_rows, &a);
}

static void norm_rope_bwd_row(const struct normrope *a, int64_t t, const real *w,
                              double *dw)
{
    int64_t n = a->x.dim[1], width = a->x.dim[2];
    real sine[OP_HEAD_MAX / 2], cosine[OP_HEAD_MAX / 2];
    angles(a, t, sine, cosine);
    for (int64_t h = t * n; h < (t + 1) * n; h++) {
        real *dx = (real *)a->y.data + h * width;
        turn(dx, (const real *)a->dy.data + h * width, sine, cosine, width / 2, -1);
        if (w)
            norm_row_bwd(dx, dw, dx, (const real *)a->x.data + h * width, w, width,
                         a->eps);
    }
}

static int norm_rope_bwd_parts(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct normrope *a = ctx;
    int64_t rows = a->x.dim[0], width = a->x.dim[2];
    real buf[OP_HEAD_MAX];
    const real *w = a->w.data ? loop_reals(&a->w, 0, width, buf) : NULL;
    (void)worker;
    for (int64_t p = begin; p < end; p++)
        for (int64_t t = loop_part_row(rows, p); t < loop_part_row(rows, p + 1); t++)
            norm_rope_bwd_row(a, t, w, a->part + p * width);
    return 0;
}

void cpu_norm_rope_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                       struct tensor dy, struct tensor x, struct tensor w,
                       struct tensor pos, struct tensor freq, float eps)
{
    size_t bytes = LOOP_PARTS * (size_t)x.dim[2] * sizeof(double);
    struct normrope a = {
        .y = dx, .x = x, .w = w, .dy = dy, .pos = pos, .freq = freq, .eps = eps};
    a.part = cpu_scratch(d, bytes);
    if (!a.part)
        return;
    memset(a.part, 0, bytes);
    loop_parts(d, norm_rope_bwd_parts, &a);
    if (w.data)
        loop_add_parts(&dw, a.part);
}
