/* SPDX-License-Identifier: MIT */
/* cache.h - what a sequence leaves behind: keys and values of past positions, one pair
 * of tensors a layer, and the state of layers that have one instead.
 *
 * Rows [0, len) are valid; keys are stored after norm and RoPE.  A pass writes its rows
 * at len and cuts back what was rejected: cache_cut is all that rollback takes.
 *
 * A state cannot be cut.  Where layers have one, it is kept as it was before row
 * `base`, with what made it change since: the inputs of rows [base, len), at most
 * `window`, which the next pass replays (target_delta.c). */
#ifndef CACHE_H
#define CACHE_H

#include <stdint.h>

#include "config.h"
#include "dev.h"

struct cache_delta {
    struct tensor state; /* f32 [n_v,D,E], before row base */
    struct tensor mix;   /* act [3 + window, C]: of rows base - 3 .. */
    struct tensor a, b;  /* act [window, n_v]: of rows base .. */
};

struct cache {
    struct arena arena;         /* owned */
    struct tensor *key, *value; /* per layer [capacity, n_kv, D] of the device's act
                                   type; no data where the layer has a state */
    struct cache_delta *delta;  /* per layer; NULL: no layer has a state */
    int32_t *from; /* [window]: where the documents of rows base .. begin */
    int64_t layers, len, capacity;
    int64_t base, window;
};

/* What is kept. */
struct cache_form {
    int64_t layers, capacity, kv_heads, head_dim;
    const bool *linear;        /* [layers]: has a state; NULL: none */
    struct config_delta delta; /* with linear, and */
    int64_t window;            /* how many of a pass's rows may be cut off again */
};

/* cache_bytes is what cache_open takes from the device. */
size_t cache_bytes(const struct dev *d, const struct cache_form *f);
int cache_open(struct cache *c, struct dev *d, const struct cache_form *f);
void cache_close(struct cache *c);

/* cache_cut forgets rows len and up: len <= c->len, and with states 0 or at least
 * c->base, else bug().  After a pass of n rows base is at most its first, or n - window
 * rows behind it. */
void cache_cut(struct cache *c, int64_t len);

/* cache_room fails with E_CONFIG when rows more would not fit. */
int cache_room(const struct cache *c, int64_t rows);

#endif
