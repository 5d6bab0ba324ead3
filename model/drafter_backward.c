/* SPDX-License-Identifier: MIT */
/* drafter_backward.c - gradients of the sum of weighted losses, layer by layer back.
 *
 *   dpicked [R,H] -> scatter -> dx [Q,H] -> norm'
 *   each layer, last to first:
 *     MLP:        ds = dx Wd;  dg, dup = swiglu'(ds);  dx += norm'(dg Wg + dup Wu)
 *     attention:  dout = dx Wo;  dq, dkb, dvb, dkc, dvc = attention';  RoPE', norm'
 *                 dx += norm'(dq Wq + dkb Wk + dvb Wv);  dctx += dkc Wk + dvc Wv
 *   dctx -> norm' -> fc
 *
 * Each product y = x W^T gives dW += dy^T x beside dx = dy W.  Wk, Wv and the key norm
 * serve block and context, so they collect twice.  Embedding, head and features are
 * frozen: the chain ends at the first layer's weights and at fc.  Derivation:
 * docs/drafter.md. */
#include "drafter_parts.h"

/* mlp turns a->dx, the gradient of the layer's output, into that of mid.  kept.g and
 * kept.up are overwritten by their gradients: nothing needs them after. */
static void mlp(struct drafter *m, int64_t l, struct drafter_acts *a, struct tensor *g)
{
    struct dev *d = m->dev;
    const struct tensor *w = m->w->layer[l];
    const struct drafter_kept *k = &a->kept[l];
    const struct drafter_pass *p = &a->pass;
    float eps = (float)m->config.eps;

    op_swiglu(d, p->s, k->g, k->up);
    op_matmul_dw(d, g[PARAM_DOWN], a->dx, p->s);
    op_matmul_dx(d, p->s, a->dx, w[PARAM_DOWN], false);
    op_swiglu_bwd(d, k->g, k->up, p->s, k->g, k->up);

    op_rmsnorm(d, p->u, k->mid, w[PARAM_POST_NORM], eps);
    op_matmul_dw(d, g[PARAM_GATE], k->g, p->u);
    op_matmul_dw(d, g[PARAM_UP], k->up, p->u);
    op_matmul_dx(d, p->u, k->g, w[PARAM_GATE], false);
    op_matmul_dx(d, p->u, k->up, w[PARAM_UP], true);
    op_rmsnorm_bwd(d, p->u, g[PARAM_POST_NORM], p->u, k->mid, w[PARAM_POST_NORM], eps);
    op_add(d, a->dx, a->dx, p->u);
}

/* attend fills dq, dkb, dvb, dkc, dvc: gradients of q, keys and values as the products
 * left them, before norm and RoPE.  p->u holds the block rows' input after the norm. */
static void attend(struct drafter *m, int64_t l, struct drafter_acts *a,
                   struct tensor *g)
{
    struct dev *d = m->dev;
    const struct tensor *w = m->w->layer[l];
    const struct drafter_kept *k = &a->kept[l];
    const struct drafter_pass *p = &a->pass;
    const struct attn_grads out = {a->dq, a->dkc, a->dvc, a->dkb, a->dvb};
    struct tensor qn = w[PARAM_Q_NORM], kn = w[PARAM_K_NORM];
    float eps = (float)m->config.eps;

    op_norm_rope(d, p->q, k->q, qn, p->at, m->freq, eps);
    op_norm_rope(d, p->kb, k->kb, kn, p->at, m->freq, eps);
    op_norm_rope(d, a->kc, k->kc, kn, a->pos, m->freq, eps);
    op_attn_block_bwd(d, out, a->dout, k->o, k->lse, p->q, a->kc, k->vc, p->kb, k->vb,
                      drafter_low(m, l, p), p->hi, drafter_attn(m, l, p->block));
    op_norm_rope_bwd(d, a->dq, g[PARAM_Q_NORM], a->dq, k->q, qn, p->at, m->freq, eps);
    op_norm_rope_bwd(d, a->dkb, g[PARAM_K_NORM], a->dkb, k->kb, kn, p->at, m->freq,
                     eps);
    op_norm_rope_bwd(d, a->dkc, g[PARAM_K_NORM], a->dkc, k->kc, kn, a->pos, m->freq,
                     eps);
}

/* attention turns a->dx, now the gradient of mid, into that of the layer's input, and
 * adds the layer's part of dctx (`first`: sets it). */
static void attention(struct drafter *m, int64_t l, struct drafter_acts *a,
                      struct tensor *g, bool first)
{
    struct dev *d = m->dev;
    const struct tensor *w = m->w->layer[l];
    const struct drafter_kept *k = &a->kept[l];
    struct tensor u = a->pass.u, dq = tensor_wide(a->dq);
    struct tensor dkb = tensor_wide(a->dkb), dvb = tensor_wide(a->dvb);
    struct tensor dkc = tensor_wide(a->dkc), dvc = tensor_wide(a->dvc);
    float eps = (float)m->config.eps;

    op_matmul_dw(d, g[PARAM_O], a->dx, tensor_wide(k->o));
    op_matmul_dx(d, tensor_wide(a->dout), a->dx, w[PARAM_O], false);
    attend(m, l, a, g);

    op_rmsnorm(d, u, k->x, w[PARAM_INPUT_NORM], eps);
    op_matmul_dw(d, g[PARAM_Q], dq, u);
    op_matmul_dw(d, g[PARAM_K], dkb, u);
    op_matmul_dw(d, g[PARAM_K], dkc, a->ctx);
    op_matmul_dw(d, g[PARAM_V], dvb, u);
    op_matmul_dw(d, g[PARAM_V], dvc, a->ctx);
    op_matmul_dx(d, a->dctx, dkc, w[PARAM_K], !first);
    op_matmul_dx(d, a->dctx, dvc, w[PARAM_V], true);
    op_matmul_dx(d, u, dq, w[PARAM_Q], false);
    op_matmul_dx(d, u, dkb, w[PARAM_K], true);
    op_matmul_dx(d, u, dvb, w[PARAM_V], true);
    op_rmsnorm_bwd(d, u, g[PARAM_INPUT_NORM], u, k->x, w[PARAM_INPUT_NORM], eps);
    op_add(d, a->dx, a->dx, u);
}

void drafter_backward(struct drafter *m, struct drafter_acts *a,
                      struct drafter_weights *g)
{
    struct dev *d = m->dev;
    const struct drafter_weights *w = m->w;
    int64_t layers = m->config.layers;
    float eps = (float)m->config.eps;
    op_scatter(d, a->dx, a->dpicked, a->row);
    op_rmsnorm_bwd(d, a->dx, g->norm, a->dx, a->last, w->norm, eps);
    for (int64_t l = layers - 1; l >= 0; l--) {
        mlp(m, l, a, g->layer[l]);
        attention(m, l, a, g->layer[l], l == layers - 1);
    }
    op_rmsnorm_bwd(d, a->dctx, g->hidden_norm, a->dctx, a->fused, w->hidden_norm, eps);
    op_matmul_dw(d, g->fc, a->dctx, a->aux);
}
