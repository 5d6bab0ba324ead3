/* SPDX-License-Identifier: MIT */
/* gate.c - outputs under a gate: x sigmoid(g), and a head's RMSNorm times silu(z). */
#include "loop.h"
#include "norm.h"

struct gate {
    struct tensor y, x, z; // z: the gate
    const real *w;
    real eps;
};

static int gate_pieces(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct gate *a = ctx;
    real *y = a->y.data;
    const real *x = a->x.data, *g = a->z.data;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        y[i] = x[i] / (1 + mathf_exp(-g[i]));
    return 0;
}

void cpu_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor g)
{
    struct gate a = {.y = y, .x = x, .z = g};
    loop_rows(d, tensor_count(&y), 4, gate_pieces, &a);
}

static int norm_gate_heads(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct gate *a = ctx;
    int64_t n = a->x.dim[2];
    (void)worker;
    for (int64_t h = begin; h < end; h++) {
        real *y = (real *)a->y.data + h * n;
        const real *z = (const real *)a->z.data + h * n;
        norm_row(y, (const real *)a->x.data + h * n, a->w, n, a->eps);
        for (int64_t i = 0; i < n; i++)
            y[i] *= z[i] / (1 + mathf_exp(-z[i]));
    }
    return 0;
}

void cpu_norm_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                   struct tensor z, float eps)
{
    int64_t n = x.dim[2];
    real *buf = cpu_scratch(d, (size_t)n * sizeof(real));
    if (!buf)
        return;
    struct gate a = {
        .y = y, .x = x, .z = z, .w = loop_reals(&w, 0, n, buf), .eps = eps};
    loop_rows(d, x.dim[0] * x.dim[1], 8 * n, norm_gate_heads, &a);
}
