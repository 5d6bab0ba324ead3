/* SPDX-License-Identifier: MIT */
/* swiglu.c - silu(g) * u, element by element.
 *
 * Backward, with s = 1 / (1 + exp(-g)): silu' = s + g s (1 - s). */
#include "loop.h"
#include "mathf.h"

struct swiglu {
    real *y, *dg, *du;
    const real *g, *u, *dy;
};

static int swiglu_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct swiglu *a = ctx;
    (void)worker;
    for (int64_t at = begin; at < end; at += LOOP_PIECE) {
        int64_t n = end - at < LOOP_PIECE ? end - at : LOOP_PIECE;
        const real *g = a->g + at, *u = a->u + at;
        real out[LOOP_PIECE]; // y may be g or u: apart, the loop can be vectorised
        for (int64_t i = 0; i < n; i++)
            out[i] = g[i] / (1 + mathf_exp(-g[i])) * u[i];
        for (int64_t i = 0; i < n; i++)
            a->y[at + i] = out[i];
    }
    return 0;
}

void cpu_swiglu(struct dev *d, struct tensor y, struct tensor g, struct tensor u)
{
    struct swiglu a = {.y = y.data, .g = g.data, .u = u.data};
    loop_rows(d, tensor_count(&y), 4, swiglu_pieces, &a);
}

static int swiglu_bwd_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct swiglu *a = ctx;
    (void)worker;
    for (int64_t at = begin; at < end; at += LOOP_PIECE) {
        int64_t n = end - at < LOOP_PIECE ? end - at : LOOP_PIECE;
        const real *g = a->g + at, *u = a->u + at, *dy = a->dy + at;
        real dg[LOOP_PIECE], du[LOOP_PIECE];
        for (int64_t i = 0; i < n; i++) {
            real s = 1 / (1 + mathf_exp(-g[i]));
            dg[i] = dy[i] * u[i] * (s + g[i] * s * (1 - s));
            du[i] = dy[i] * g[i] * s;
        }
        for (int64_t i = 0; i < n; i++) {
            a->dg[at + i] = dg[i];
            a->du[at + i] = du[i];
        }
    }
    return 0;
}

void cpu_swiglu_bwd(struct dev *d, struct tensor dg, struct tensor du, struct tensor dy,
                    struct tensor g, struct tensor u)
{
    struct swiglu a = {
        .dg = dg.data, .du = du.data, .dy = dy.data, .g = g.data, .u = u.data};
    loop_rows(d, tensor_count(&g), 8, swiglu_bwd_pieces, &a);
}
