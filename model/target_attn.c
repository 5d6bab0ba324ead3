/* SPDX-License-Identifier: MIT */
/* target_attn.c - the attention of a layer.
 *
 *   u = norm(x);  q, k, v = Wq u + bq, Wk u + bk, Wv u + bv;  q, k: head norm, RoPE
 *   k, v -> the cache's rows [len, len + T), or rows of this pass
 *   x += Wo (attention over [lo, hi) * sigmoid(Wg u))
 *
 * Biases, head norms and the gate are there or not by family. */
#include "target_parts.h"

#include "op.h"

#include <math.h>

/* project: y = W u + b.  The bias is gathered into every row, then the product added:
 * one rounding in all. */
static void project(struct dev *d, struct tensor y, const struct acts *a,
                    struct tensor w, struct tensor b)
{
    y = tensor_wide(y);
    if (b.data)
        op_gather(d, y, tensor_view(b, T2(1, y.dim[1])), a->zero);
    op_matmul(d, y, a->u, w, b.data != NULL);
}

void target_attn(struct target *t, int64_t l, const struct acts *a,
                 const struct target_pass *p)
{
    struct dev *d = t->dev;
    const struct target_config *c = &t->config;
    const struct layer *y = &t->layer[l];
    float eps = (float)c->eps;
    struct tensor k = a->k, v = a->v, keys = k, values = v;
    if (p->cache) {
        int64_t len = p->cache->len;
        k = tensor_rows(p->cache->key[l], len, p->rows);
        v = tensor_rows(p->cache->value[l], len, p->rows);
        keys = tensor_rows(p->cache->key[l], 0, len + p->rows);
        values = tensor_rows(p->cache->value[l], 0, len + p->rows);
    }
    op_rmsnorm(d, a->u, a->x, y->input_norm, eps);
    project(d, a->q, a, y->q, y->q_bias);
    project(d, k, a, y->k, y->k_bias);
    project(d, v, a, y->v, y->v_bias);
    if (y->q_gate.data)
        op_matmul(d, tensor_wide(a->gate), a->u, y->q_gate, false);
    op_norm_rope(d, a->q, a->q, y->q_norm, a->pos, t->freq, eps);
    op_norm_rope(d, k, k, y->k_norm, a->pos, t->freq, eps);
    op_attn_span(d, a->o, a->q, keys, values, a->lo, a->hi,
                 (float)(1 / sqrt((double)c->head_dim)));
    if (y->q_gate.data)
        op_gate(d, a->o, a->o, a->gate);
    op_matmul(d, a->x, tensor_wide(a->o), y->o, true);
}
