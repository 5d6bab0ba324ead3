/* SPDX-License-Identifier: MIT */
/* rows.c - moving rows: gather, scatter, convert, tap, and e4m3 with scales.
 *
 * No arithmetic but rounding: every op here is exact or rounds each element once. */
#include "loop.h"

#include "err.h"

#include <math.h>
#include <string.h>

struct rows {
    struct tensor y, x, extra;
    int64_t width; // elements of a row
    int k;
};

/* copy_row converts `width` elements from x's type at xi to y's type at yi. */
static void copy_row(const struct rows *a, int64_t yi, int64_t xi)
{
    real buf[LOOP_PIECE];
    for (int64_t i = 0; i < a->width; i += LOOP_PIECE) {
        int64_t n = a->width - i < LOOP_PIECE ? a->width - i : LOOP_PIECE;
        loop_store(&a->y, yi + i, n, loop_reals(&a->x, xi + i, n, buf));
    }
}

/* find reads ids[r] and refuses what is not a row. */
static int find(const char *op, const struct tensor *ids, int64_t r, int64_t rows)
{
    int32_t id = ((const int32_t *)ids->data)[r];
    if (id < 0 || id >= rows)
        return err_set(E_FORMAT, "%s: id %d at position %lld is not in [0, %lld)", op,
                       id, (long long)r, (long long)rows);
    return 0;
}

static int gather_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *a = ctx;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        TRY(find("gather", &a->extra, r, a->x.dim[0]));
        copy_row(a, r * a->width, ((const int32_t *)a->extra.data)[r] * a->width);
    }
    return 0;
}

void cpu_gather(struct dev *d, struct tensor y, struct tensor x, struct tensor ids)
{
    struct rows a = {y, x, ids, x.dim[1], 0};
    loop_rows(d, y.dim[0], a.width, gather_rows, &a);
}

static int scatter_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *a = ctx;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        TRY(find("scatter", &a->extra, r, a->y.dim[0]));
        copy_row(a, ((const int32_t *)a->extra.data)[r] * a->width, r * a->width);
    }
    return 0;
}

void cpu_scatter(struct dev *d, struct tensor dx, struct tensor dy, struct tensor ids)
{
    struct rows a = {dx, dy, ids, dx.dim[1], 0};
    memset(dx.data, 0, tensor_bytes(&dx));
    loop_rows(d, dy.dim[0], a.width, scatter_rows, &a);
}

static int convert_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *a = ctx;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * LOOP_PIECE, left = tensor_count(&a->x) - at;
        int64_t n = left < LOOP_PIECE ? left : LOOP_PIECE;
        real buf[LOOP_PIECE];
        loop_store(&a->y, at, n, loop_reals(&a->x, at, n, buf));
    }
    return 0;
}

void cpu_convert(struct dev *d, struct tensor y, struct tensor x)
{
    struct rows a = {.y = y, .x = x};
    int64_t pieces = (tensor_count(&x) + LOOP_PIECE - 1) / LOOP_PIECE;
    loop_rows(d, pieces, LOOP_PIECE, convert_rows, &a);
}

static int tap_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *a = ctx;
    (void)worker;
    for (int64_t r = begin; r < end; r++)
        copy_row(a, r * a->y.dim[1] + a->k * a->width, r * a->width);
    return 0;
}

void cpu_tap(struct dev *d, struct tensor y, struct tensor x, int k)
{
    struct rows a = {.y = y, .x = x, .width = x.dim[1], .k = k};
    loop_rows(d, x.dim[0], a.width, tap_rows, &a);
}

/* ---- e4m3 with one scale per row and tap ---- */

static const real e4m3_max = 448;

static real largest(const struct tensor *x, int64_t at, int64_t width)
{
    real buf[LOOP_PIECE], top = 0;
    for (int64_t i = 0; i < width; i += LOOP_PIECE) {
        int64_t n = width - i < LOOP_PIECE ? width - i : LOOP_PIECE;
        const real *v = loop_reals(x, at + i, n, buf);
        for (int64_t j = 0; j < n; j++)
            top = (real)fabs(v[j]) > top ? (real)fabs(v[j]) : top;
    }
    return top;
}

/* rescale_row: y = x times or over the row's scale. */
static void rescale_row(const struct rows *a, int64_t at, real scale, bool divide)
{
    real buf[LOOP_PIECE], out[LOOP_PIECE];
    for (int64_t i = 0; i < a->width; i += LOOP_PIECE) {
        int64_t n = a->width - i < LOOP_PIECE ? a->width - i : LOOP_PIECE;
        const real *v = loop_reals(&a->x, at + i, n, buf);
        for (int64_t j = 0; j < n; j++)
            out[j] = divide ? v[j] / scale : v[j] * scale;
        loop_store(&a->y, at + i, n, out);
    }
}

static int quant_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *a = ctx;
    float *scale = a->extra.data;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        real top = largest(&a->x, r * a->width, a->width);
        scale[r] = top > 0 ? (float)(top / e4m3_max) : 1.0f;
        rescale_row(a, r * a->width, scale[r], true);
    }
    return 0;
}

void cpu_quant(struct dev *d, struct tensor q, struct tensor scale, struct tensor x)
{
    struct rows a = {q, x, scale, x.dim[2], 0};
    loop_rows(d, x.dim[0] * x.dim[1], 4 * a.width, quant_rows, &a);
}

static int dequant_rows(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct rows *a = ctx;
    const float *scale = a->extra.data;
    (void)worker;
    for (int64_t r = begin; r < end; r++)
        rescale_row(a, r * a->width, scale[r], false);
    return 0;
}

void cpu_dequant(struct dev *d, struct tensor y, struct tensor q, struct tensor scale)
{
    struct rows a = {y, q, scale, y.dim[2], 0};
    loop_rows(d, y.dim[0] * y.dim[1], 4 * a.width, dequant_rows, &a);
}
