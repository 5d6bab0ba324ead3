/* SPDX-License-Identifier: MIT */
/* target.h - the frozen language model: a forward pass with taps, packed or cached.
 *
 *   x = embed[ids]
 *   each layer:  u = norm(x);  q, k, v = Wq u, Wk u, Wv u;  q, k: head norm, RoPE
 *                x += Wo attention(q, k, v);  x += Wd (silu(Wg y) * Wu y),  y = norm(x)
 *   logits = head norm(x)            (HF transformers, models/qwen3/modeling_qwen3.py)
 *
 * Families differ from this as config.h says.
 *
 * One pass serves extraction (a packed row, spans per document, no cache) and decoding
 * (rows appended to a cache).  On the CPU both give the same bits for the same token.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "config.h"
#include "dev.h"

struct target;

/* What is wanted of the head: nothing (then no final norm either), the matrix packed
 * for products, or its rows without the norm. */
enum target_head { TARGET_HEADLESS, TARGET_LOGITS, TARGET_VOCABULARY };

/* target_outline finds all that can be wrong with DIR's checkpoint: config.json, the
 * index and its files, every tensor's name, type and shape, also of layers that are not
 * wanted.  The errors are those of target_open, which looks no closer.  What comes out
 * has no weights and runs no passes, but answers everything else; d, of which
 * dev_outline is enough, is borrowed. */
int target_outline(struct target **out, struct dev *d, const char *dir,
                   int64_t last_layer, enum target_head head);

/* What the weights take on a device. */
struct target_sizes {
    size_t whole;   /* all that are wanted */
    size_t loading; /* beside them while they are loaded: the largest as stored */
    size_t parts;   /* the embedding and two layers, where layers come one by one; 0
                       with a head: such a target does not stream */
};
struct target_sizes target_sizes(const struct target *t);

/* target_open maps DIR's checkpoint and copies what is needed to the device: layers
 * 0 .. last_layer (-1: all), and the final norm and head when `head`.  Unknown tensors,
 * missing ones and wrong shapes are E_FORMAT / E_CONFIG naming the tensor. */
int target_open(struct target **out, struct dev *d, const char *dir, int64_t last_layer,
                bool head);

/* target_open_within keeps at most `memory` bytes of weights on the device (0: any), no
 * head.  A target that takes more streams: only its embedding stays there, and every
 * pass brings the layers from the checkpoint, which must not change meanwhile. E_CONFIG
 * when not even that fits. */
int target_open_within(struct target **out, struct dev *d, const char *dir,
                       int64_t last_layer, size_t memory);
bool target_streams(const struct target *t);
void target_close(struct target *t);

/* target_random is the first `layers` layers of a target of this shape with weights
 * that are drawn on the device from `seed`: for benches, which need no checkpoint.
 * E_MEMORY, or the device's error.  Closed like any other. */
int target_random(struct target **out, struct dev *d, const struct target_config *c,
                  int64_t layers, uint64_t seed);

/* target_share is a view of t's weights for another handle of the same device: passes
 * of one handle run one at a time, so each thread takes its own.  Closed before t. */
int target_share(struct target **out, const struct target *t, struct dev *d);

const struct target_config *target_config(const struct target *t);
uint64_t target_digest(const struct target *t); /* st_model_digest */

/* The embedding [V,H], T_ROWS, and the head [V,H], bf16 or f32 as stored; borrowed. The
 * head of target_open is packed for products, that of target_vocabulary T_ROWS, as
 * op_head_loss wants it; there a tied checkpoint gives the same tensor twice. */
struct tensor target_embed(const struct target *t);
struct tensor target_head(const struct target *t);

/* target_vocabulary opens only those two matrices (for training a drafter). */
int target_vocabulary(struct target **out, struct dev *d, const char *dir);

struct target_pass {
    int64_t rows;
    const int32_t *ids, *pos; /* host [rows] */
    const int32_t *lo, *hi;   /* host [rows]: keys seen, as row numbers of this pass, or
                                 of the cache when there is one */
    struct cache *cache;      /* NULL, or where the rows are appended (len grows) */
    const int64_t *tap;       /* layers to tap, ascending */
    int taps;
    struct tensor aux;  /* out [rows, taps * H] bf16 or act; data NULL: none */
    struct tensor last; /* out [rows, H] residual after the last layer BEFORE the final
                           norm; data NULL: none */
    struct tensor logits; /* out [n, V] act: of the last n rows; data NULL: none */
};

/* target_cache_form is the cache of a sequence, for the layers that are open; passes
 * may be cut back by up to `window` rows. */
struct cache_form target_cache_form(const struct target *t, int64_t capacity,
                                    int64_t window);

/* target_bytes is the working memory of a pass of `rows` rows with a cache of that
 * window (0 without one); target_forward takes it from `work` and gives it back. */
size_t target_bytes(const struct target *t, int64_t rows, int64_t window);
int target_forward(struct target *t, struct target_pass *p, struct arena *work);

/* target_group runs n passes without caches, each layer through all of them before the
 * next: what that is good for is a target that streams.  The results are those of
 * target_forward. */
size_t target_group_bytes(const struct target *t, int64_t rows, int n);
int target_group(struct target *t, struct target_pass *p, int n, struct arena *work);

#endif
