/* SPDX-License-Identifier: MIT */
/* loop.c - pieces of about 32 thousand steps: long enough to hide the hand-over, short
 * enough to keep all threads busy to the end. */
#include "loop.h"

#include "err.h"
#include "num.h"

void loop_rows(struct dev *d, int64_t rows, int64_t cost, par_fn *fn, void *ctx)
{
    int64_t grain = 32768 / (cost > 0 ? cost : 1);
    int rc = par_for(d->par, rows, grain > 0 ? grain : 1, fn, ctx);
    if (rc < 0)
        dev_fail(d, rc, "%s", err_text());
}

void loop_parts(struct dev *d, par_fn *fn, void *ctx)
{
    int rc = par_for(d->par, LOOP_PARTS, 1, fn, ctx);
    if (rc < 0)
        dev_fail(d, rc, "%s", err_text());
}

void loop_add_parts(const struct tensor *dw, const double *part)
{
    int64_t n = tensor_count(dw);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        real old;
        for (int64_t p = 0; p < LOOP_PARTS; p++)
            sum += part[p * n + i];
        old = *loop_reals(dw, i, 1, &old);
        old += (real)sum;
        loop_store(dw, i, 1, &old);
    }
}

/* Each case is the same loop over another type: what a template would be. */
#define LOAD(type, convert)                                                            \
    do {                                                                               \
        const type *from = (const type *)t->data + at;                                 \
        for (int64_t i = 0; i < n; i++)                                                \
            buf[i] = (real)convert(from[i]);                                           \
    } while (0)
#define STORE(type, convert)                                                           \
    do {                                                                               \
        type *to = (type *)t->data + at;                                               \
        for (int64_t i = 0; i < n; i++)                                                \
            to[i] = convert(v[i]);                                                     \
    } while (0)

const real *loop_reals(const struct tensor *t, int64_t at, int64_t n, real *buf)
{
    if (t->type == DT_REAL)
        return (const real *)t->data + at;
    switch (t->type) {
    case DT_E4M3:
        LOAD(uint8_t, num_e4m3_f32);
        break;
    case DT_BF16:
        LOAD(uint16_t, num_bf16_f32);
        break;
    case DT_F32:
        LOAD(float, (float));
        break;
    case DT_F64:
        LOAD(double, (double));
        break;
    default:
        bug("%s is not a type of reals", dtype_name(t->type));
    }
    return buf;
}

static uint8_t to_e4m3(real x)
{
    return num_f32_e4m3((float)x);
}

static uint16_t to_bf16(real x)
{
    return num_f32_bf16((float)x);
}

void loop_store(const struct tensor *t, int64_t at, int64_t n, const real *v)
{
    switch (t->type) {
    case DT_E4M3:
        STORE(uint8_t, to_e4m3);
        break;
    case DT_BF16:
        STORE(uint16_t, to_bf16);
        break;
    case DT_F32:
        STORE(float, (float));
        break;
    case DT_F64:
        STORE(double, (double));
        break;
    default:
        bug("%s is not a type of reals", dtype_name(t->type));
    }
}
