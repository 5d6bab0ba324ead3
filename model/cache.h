/* SPDX-License-Identifier: MIT */
/* cache.h - keys and values of past positions, one pair of tensors a layer.
 *
 * Rows [0, len) are valid; keys are stored after norm and RoPE.  A pass writes its rows
 * at len and cuts back what was rejected: cache_cut is all that rollback takes. */
#ifndef CACHE_H
#define CACHE_H

#include <stdint.h>

#include "dev.h"

struct cache {
    struct arena arena; /* owned */
    struct tensor *key,
        *value; /* per layer [capacity, n_kv, D] of the device's act type */
    int64_t layers, len, capacity;
};

int cache_open(struct cache *c, struct dev *d, int64_t layers, int64_t capacity,
               int64_t kv_heads, int64_t head_dim);
void cache_close(struct cache *c);
void cache_cut(struct cache *c, int64_t len); /* len <= c->len, else bug() */

/* cache_room fails with E_CONFIG when rows more would not fit. */
int cache_room(const struct cache *c, int64_t rows);

#endif
