/* SPDX-License-Identifier: MIT */
/* drafter.h - the DFlash drafter: forward, loss and backward for training; context
 * cache and proposal for decoding.   (arXiv 2602.06036; docs/drafter.md)
 *
 *   ctx = norm(fc aux)                      once, rows of context
 *   x   = embed[anchor, mask, mask ...]     blocks of B rows
 *   each layer:  u = norm(x);  q = Wq u;  k, v = W u (block) and W ctx (context)
 *                q, k: head norm, RoPE
 *                x += Wo attention(q; context before the anchor, own block)
 *                x += Wd (silu(Wg y) * Wu y),  y = norm(x)
 *   h   = norm(x)                           slot k >= 1, through the target's frozen
 *                                           head, predicts token a + k */
#ifndef DRAFTER_H
#define DRAFTER_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "config.h"
#include "dev.h"
#include "param.h"

struct drafter {
    struct drafter_config config;
    struct param_table table;
    struct dev *dev;
    struct tensor flat;        /* [count] weights, act type; data NULL once frozen */
    struct tensor embed, head; /* the target's, borrowed: [V,H] */
    struct tensor freq;        /* inverse RoPE frequencies [D/2] */
    struct arena arena;        /* owns flat or panels, and freq */
    struct drafter_weights *w; /* views of flat, or panels once frozen; owned */
};

/* drafter_new makes room for the weights in the device's act type (not initialised);
 * drafter_load reads a checkpoint folder's model.safetensors and config.json into a
 * frozen drafter (weights packed for products: no gradients).  embed and head are the
 * target's; drafter_step wants the head in T_ROWS, drafter_propose takes either. */
int drafter_new(struct drafter *m, struct dev *d, const struct drafter_config *c,
                struct tensor embed, struct tensor head);
int drafter_load(struct drafter *m, struct dev *d, const char *dir, struct tensor embed,
                 struct tensor head);
void drafter_drop(struct drafter *m);

/* drafter_check finds what drafter_load would of DIR, and what does not fit the target,
 * without a device. */
int drafter_check(const char *dir, const struct target_config *target);

/* ---- training ---- */

/* What one packed row asks of the drafter; host arrays, borrowed. */
struct drafter_row {
    struct tensor aux;  /* device [S, K*H] bf16 or act */
    int64_t context;    /* S */
    const int32_t *pos; /* [S] */
    int64_t blocks;     /* A; block rows Q = A * B */
    const int32_t *id, *at, *lo, *slide,
        *hi;                    /* [Q]: tokens, positions, spans (span.h) */
    int64_t labelled;           /* R */
    const int32_t *row, *label; /* [R] (anchor.h) */
    const float *weight;        /* [R] */
};

struct drafter_result {
    double loss;   /* sum of weighted nll */
    double weight; /* sum of weights */
    int32_t *hit;  /* host [R], filled: label was the argmax; NULL: not wanted */
};

/* drafter_bytes: working memory of drafter_step for S context rows, Q block rows and up
 * to R labelled ones; with `grads` what the backward keeps, too. */
size_t drafter_bytes(const struct drafter *m, int64_t context, int64_t rows,
                     int64_t labelled, bool grads);

/* drafter_step runs forward and loss, and when grads.data is set adds to grads [count]
 * (f32 or act, layout of the table) the gradient of the SUM of weighted losses; the
 * caller divides by the weights of all micro-batches and ranks.  hidden (data NULL:
 * none) [Q,H] receives h. */
int drafter_step(struct drafter *m, const struct drafter_row *r, struct tensor grads,
                 struct tensor hidden, struct drafter_result *out, struct arena *work);

/* ---- decoding ---- */

/* drafter_extend appends n context rows, aux [n, K*H] at positions pos[0..n) (host), to
 * the drafter's context cache (cache_open with config.layers). */
int drafter_extend(struct drafter *m, struct cache *ctx, struct tensor aux,
                   const int32_t *pos, struct arena *work);

/* drafter_states runs one block of n <= B tokens id[0..n) (the anchor, then masks)
 * whose anchor stands at position start <= ctx->len, and gives its states h [n,H].  The
 * block sees context rows [0, start), whose positions are their row numbers. */
int drafter_states(struct drafter *m, struct tensor h, const struct cache *ctx,
                   const int32_t *id, int64_t start, struct arena *work);

/* drafter_propose goes on to the tokens: token[k], k = 1 .. n-1, receives the argmax of
 * slot k (host). */
int drafter_propose(struct drafter *m, const struct cache *ctx, const int32_t *id,
                    int64_t n, int64_t start, int32_t *token, struct arena *work);

/* drafter_decode_bytes: working memory of these for up to `rows` context rows at once.
 */
size_t drafter_decode_bytes(const struct drafter *m, int64_t rows);

#endif
