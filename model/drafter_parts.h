/* SPDX-License-Identifier: MIT */
/* drafter_parts.h - what the files of the drafter share; private to drafter*.c.
 *
 * One layer function serves training, validation and decoding.  They differ in where
 * intermediate values lie: training keeps those of every layer for the backward pass,
 * the others let every layer write over the last one's. */
#ifndef DRAFTER_PARTS_H
#define DRAFTER_PARTS_H

#include "drafter.h"
#include "op.h"

/* Weights or gradients as tensors; layer[l][PARAM_Q] and so on (param.h). */
struct drafter_weights {
    struct tensor fc, hidden_norm, norm;
    struct tensor layer[CONFIG_LAYERS][PARAM_PER_LAYER];
};

/* drafter_views makes the tensors of flat memory. */
void drafter_views(struct drafter_weights *w, const struct param_table *t,
                   struct tensor flat);

/* What a layer computes from its input, before norm and RoPE where they apply: all that
 * its backward pass needs. */
struct drafter_kept {
    struct tensor x;      /* [Q,H] the input */
    struct tensor q;      /* [Q,n_h,D] */
    struct tensor kb, vb; /* [Q,n_kv,D] of the block */
    struct tensor kc, vc; /* [S,n_kv,D] of the context */
    struct tensor o;      /* [Q,n_h,D] attention's output */
    struct tensor lse;    /* [Q,n_h] */
    struct tensor mid;    /* [Q,H] between attention and MLP; may be x */
    struct tensor g, up;  /* [Q,I] */
};

/* The block rows of a pass, and scratch that each layer fills anew. */
struct drafter_pass {
    int64_t block;                       /* slots of a block */
    struct tensor id, at, lo, slide, hi; /* i32 [Q] */
    struct tensor u;                     /* [Q,H] a norm's output */
    struct tensor q;  /* [Q,n_h,D] after norm and RoPE; may be kept.q */
    struct tensor kb; /* [Q,n_kv,D] likewise; may be kept.kb */
    struct tensor s;  /* [Q,I] silu(g) up; may be kept.g */
};

/* Everything drafter_step works in. */
struct drafter_acts {
    struct tensor pos;        /* i32 [S] */
    struct tensor aux;        /* [S,K*H] converted to act */
    struct tensor fused, ctx; /* [S,H] fc aux, and its norm */
    struct tensor kc;         /* [S,n_kv,D] after norm and RoPE; may be kept.kc */
    struct drafter_kept kept[CONFIG_LAYERS];
    struct tensor last; /* [Q,H] after the last layer */
    struct drafter_pass pass;
    struct tensor row, label, hit; /* i32 [R] */
    struct tensor weight;          /* f32 [R] */
    struct tensor loss;            /* f64 [1] */
    struct tensor picked;          /* [R,H] h of the labelled rows */
    /* backward only */
    struct tensor dpicked;  /* [R,H] */
    struct tensor dx;       /* [Q,H] */
    struct tensor dout, dq; /* [Q,n_h,D] */
    struct tensor dkb, dvb; /* [Q,n_kv,D] */
    struct tensor dkc, dvc; /* [S,n_kv,D] */
    struct tensor dctx;     /* [S,H] */
};

/* drafter_attn gives layer l's attention over blocks of `block` slots, and the lower
 * ends of its context spans. */
struct attn_block drafter_attn(const struct drafter *m, int64_t l, int64_t block);
struct tensor drafter_low(const struct drafter *m, int64_t l,
                          const struct drafter_pass *p);

/* drafter_fuse: ctx = norm(fc aux), and fused = fc aux (may be ctx). */
void drafter_fuse(struct drafter *m, struct tensor ctx, struct tensor fused,
                  struct tensor aux);

/* drafter_context: layer l's keys and values of context rows: raw = Wk ctx, key = norm
 * and RoPE of it (may be raw), value = Wv ctx; all [S,n_kv,D]. */
void drafter_context(struct drafter *m, int64_t l, struct tensor key, struct tensor raw,
                     struct tensor value, struct tensor ctx, struct tensor pos);

/* drafter_layer runs layer l from k->x to `next` [Q,H] (may be k->mid) against context
 * keys and values kc, vc. */
void drafter_layer(struct drafter *m, int64_t l, struct tensor next,
                   const struct drafter_kept *k, const struct drafter_pass *p,
                   struct tensor kc, struct tensor vc);

/* drafter_forward fills `a` from aux and ids to p.u = h, the states of the block rows.
 * drafter_backward adds the gradients, given a->dpicked; both belong to drafter_step.
 */
void drafter_forward(struct drafter *m, struct drafter_acts *a);
void drafter_backward(struct drafter *m, struct drafter_acts *a,
                      struct drafter_weights *g);

#endif
