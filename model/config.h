/* SPDX-License-Identifier: MIT */
/* config.h - config.json of targets and drafters: read strictly, written as published.
 *
 * What is not understood is refused in one sentence that says what was found and what
 * is supported (E_CONFIG); a key that changes the mathematics is never ignored. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

enum {
    CONFIG_TAPS = 16,
    CONFIG_LAYERS = 32, /* of a drafter */
    CONFIG_TARGET_LAYERS = 1 << 10,
    CONFIG_BLOCK = 1024,
    CONFIG_STOPS = 8
};

/* Llama 3's slowing of the lower frequencies: by `factor` below `low` turns within
 * `original` positions, not at all above `high`, in between in proportion (HF
 * transformers, modeling_rope_utils.py).  factor 0: none. */
struct config_scaling {
    double factor, low, high, original;
};

/* Gated DeltaNet layers (HF transformers, models/qwen3_5): q and k have k_heads heads
 * of k_dim channels, v has v_heads of v_dim; value head h reads key head h / (v_heads /
 * k_heads). */
struct config_delta {
    int64_t k_heads, v_heads, k_dim, v_dim;
};

/* A dense decoder.  What tells the families apart:
 *
 *   llama          x += Wo attn(rope(Wq u), rope(Wk u), Wv u)
 *   qwen2          the same with biases on q, k and v
 *   qwen3          without biases; q and k are normed per head
 *   qwen3_5_text   as qwen3, but norms multiply by 1 + w, attention's output has a
 * gate, a part of each head turns; layers marked `linear` are Gated DeltaNet instead */
struct target_config {
    char type[32]; /* model_type */
    int64_t hidden, inter, layers, heads, kv_heads, head_dim, vocab, max_positions;
    double eps, rope_theta;
    int64_t rotary; /* channels of a head that turn, the first; even */
    struct config_scaling scaling;
    bool bias;      /* of q, k, v */
    bool head_norm; /* of q and k */
    bool hybrid;    /* of the Qwen3.5 kind */
    bool fp8;       /* matrices may be e4m3 with a scale per block of 128 x 128 */
    bool linear[CONFIG_TARGET_LAYERS];
    struct config_delta delta;
    int64_t stop[CONFIG_STOPS]; /* eos ids */
    int stops;
};

/* config_target reads DIR/config.json. */
int config_target(struct target_config *c, const char *dir);

/* config_check_ids: every id lies in [0, vocab), else E_FORMAT naming position and id.
 */
int config_check_ids(int64_t vocab, const int32_t *id, int64_t n);

/* A DFlash drafter: z-lab's config.json (docs/drafter.md; arXiv 2602.06036). */
struct drafter_config {
    int64_t hidden, inter, layers, heads, kv_heads, head_dim, vocab, max_positions;
    double eps, rope_theta;
    int64_t block;            /* B: the anchor and B - 1 masks */
    int64_t mask_id;          /* a row of the target's embedding */
    int64_t tap[CONFIG_TAPS]; /* target_layer_ids: 0-based decoder layers, ascending */
    int taps;
    int64_t target_layers;
    bool sliding[CONFIG_LAYERS]; /* by layer */
    int64_t window;              /* of the sliding layers; 0: none slide */
    int causal;   /* is_causal: 0, 1, or -1 = causal iff the layer slides */
    int64_t stop; /* eos id, -1 unknown */
};

/* config_drafter reads DIR/config.json; config_drafter_write appends the file's text,
 * with every key that vLLM and SGLang read.  config_drafter_check refuses impossible
 * shapes, and a mask id or tap that the target does not have (target may be NULL). */
int config_drafter(struct drafter_config *c, const char *dir);
void config_drafter_write(struct buf *out, const struct drafter_config *c);
int config_drafter_check(const struct drafter_config *c, const struct target_config *t);

/* config_taps fills c->tap with n layers spread as published drafters do:
 * round(1 + j (L - 4) / (n - 1)), ties to even; n == 1: L / 2.  Repeats are E_CONFIG.
 */
int config_taps(struct drafter_config *c, int n, int64_t target_layers);

/* config_causal: is draft layer l causal inside the block? */
bool config_causal(const struct drafter_config *c, int64_t l);

#endif
