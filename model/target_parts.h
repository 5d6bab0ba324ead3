/* SPDX-License-Identifier: MIT */
/* target_parts.h - what the files of the target share; private to target*.c.
 *
 *   target.c           opening, closing, sharing
 *   target_load.c      which tensors a family has, and under which names
 *   target_forward.c   a pass: embedding, layers, taps, logits
 *   target_attn.c      the attention of a layer */
#ifndef TARGET_PARTS_H
#define TARGET_PARTS_H

#include "target.h"

#include "safetensors.h"

struct layer {
    struct tensor input_norm, post_norm, gate, up, down;
    struct tensor q, k, v, o;
    struct tensor q_bias, k_bias, v_bias; /* no data: none */
    struct tensor q_norm, k_norm;         /* no data: none */
};

struct target {
    struct target_config config;
    struct dev *dev;
    struct arena arena;
    struct tensor embed, head, norm, freq;
    struct layer *layer; /* owned, [config.layers] */
    int64_t layers;      /* loaded: 0 .. layers - 1 */
    bool shared;         /* weights belong to another target */
    uint64_t digest;
};

/* What is wanted of the head: nothing (then no final norm either), the matrix packed
 * for products, or its rows without the norm. */
enum target_head { TARGET_HEADLESS, TARGET_LOGITS, TARGET_VOCABULARY };

/* target_load fills the weights of t, whose config and layers are set. */
int target_load(struct target *t, const struct st_model *m, enum target_head head);

/* Working memory of a pass. */
struct acts {
    struct tensor ids, pos, lo, hi; /* [T] */
    struct tensor zero;             /* [T] of 0, with biases */
    struct tensor x, u;             /* [T,H] */
    struct tensor q, o;             /* [T,n_h,D] */
    struct tensor k, v;             /* [T,n_kv,D] */
    struct tensor g, up;            /* [T,I] */
};

/* target_attn adds layer l's attention to a->x. */
void target_attn(struct target *t, int64_t l, const struct acts *a,
                 const struct target_pass *p);

#endif
