/* SPDX-License-Identifier: MIT */
/* drafter_forward.c - from the target's features and the blocks' tokens to states.
 *
 *   aux [S,K*H] -> fc -> fused -> norm -> ctx [S,H]            once
 *   id [Q] -> embed -> x [Q,H]
 *   each layer:  ctx -> kc, vc;  x -> norm -> q, kb, vb;  q, kb, kc: norm, RoPE
 *                attention over the context before the anchor and the own block
 *                x -> mid = x + Wo o -> next = mid + Wd (silu(g) * up)
 *   last -> norm -> h [Q,H]
 *
 * The backward pass is drafter_backward.c; it recomputes norms and RoPE, which cost
 * little, and keeps products and attention, which cost much. */
#include "drafter_parts.h"

#include <math.h>

struct attn_block drafter_attn(const struct drafter *m, int64_t l, int64_t block)
{
    const struct drafter_config *c = &m->config;
    return (struct attn_block){.block = (int)block,
                               .causal = config_causal(c, l),
                               .window = c->sliding[l] ? (int)c->window : 0,
                               .scale = (float)(1 / sqrt((double)c->head_dim))};
}

struct tensor drafter_low(const struct drafter *m, int64_t l,
                          const struct drafter_pass *p)
{
    return m->config.sliding[l] ? p->slide : p->lo;
}

void drafter_fuse(struct drafter *m, struct tensor ctx, struct tensor fused,
                  struct tensor aux)
{
    op_matmul(m->dev, fused, aux, m->w->fc, false);
    op_rmsnorm(m->dev, ctx, fused, m->w->hidden_norm, (float)m->config.eps);
}

void drafter_context(struct drafter *m, int64_t l, struct tensor key, struct tensor raw,
                     struct tensor value, struct tensor ctx, struct tensor pos)
{
    const struct tensor *w = m->w->layer[l];
    op_matmul(m->dev, tensor_wide(raw), ctx, w[PARAM_K], false);
    op_matmul(m->dev, tensor_wide(value), ctx, w[PARAM_V], false);
    op_norm_rope(m->dev, key, raw, w[PARAM_K_NORM], pos, m->freq, (float)m->config.eps);
}

/* carry copies the residual to where the next sum lies, unless that is its place. */
static void carry(struct dev *d, struct tensor to, struct tensor from)
{
    if (to.data != from.data)
        op_convert(d, to, from);
}

void drafter_layer(struct drafter *m, int64_t l, struct tensor next,
                   const struct drafter_kept *k, const struct drafter_pass *p,
                   struct tensor kc, struct tensor vc)
{
    struct dev *d = m->dev;
    const struct tensor *w = m->w->layer[l];
    float eps = (float)m->config.eps;

    op_rmsnorm(d, p->u, k->x, w[PARAM_INPUT_NORM], eps);
    op_matmul(d, tensor_wide(k->q), p->u, w[PARAM_Q], false);
    op_matmul(d, tensor_wide(k->kb), p->u, w[PARAM_K], false);
    op_matmul(d, tensor_wide(k->vb), p->u, w[PARAM_V], false);
    op_norm_rope(d, p->q, k->q, w[PARAM_Q_NORM], p->at, m->freq, eps);
    op_norm_rope(d, p->kb, k->kb, w[PARAM_K_NORM], p->at, m->freq, eps);
    op_attn_block(d, k->o, k->lse, p->q, kc, vc, p->kb, k->vb, drafter_low(m, l, p),
                  p->hi, drafter_attn(m, l, p->block));
    carry(d, k->mid, k->x);
    op_matmul(d, k->mid, tensor_wide(k->o), w[PARAM_O], true);

    op_rmsnorm(d, p->u, k->mid, w[PARAM_POST_NORM], eps);
    op_matmul(d, k->g, p->u, w[PARAM_GATE], false);
    op_matmul(d, k->up, p->u, w[PARAM_UP], false);
    op_swiglu(d, p->s, k->g, k->up);
    carry(d, next, k->mid);
    op_matmul(d, next, p->s, w[PARAM_DOWN], true);
}

void drafter_forward(struct drafter *m, struct drafter_acts *a)
{
    int64_t layers = m->config.layers;
    drafter_fuse(m, a->ctx, a->fused, a->aux);
    op_gather(m->dev, a->kept[0].x, m->embed, a->pass.id);
    for (int64_t l = 0; l < layers; l++) {
        const struct drafter_kept *k = &a->kept[l];
        drafter_context(m, l, a->kc, k->kc, k->vc, a->ctx, a->pos);
        drafter_layer(m, l, l + 1 < layers ? a->kept[l + 1].x : a->last, k, &a->pass,
                      a->kc, k->vc);
    }
    op_rmsnorm(m->dev, a->pass.u, a->last, m->w->norm, (float)m->config.eps);
}
