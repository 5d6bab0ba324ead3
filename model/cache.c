/* SPDX-License-Identifier: MIT */
/* cache.c - two tensors a layer in one arena. */
#include "cache.h"

#include "err.h"
#include "mem.h"

int cache_open(struct cache *c, struct dev *d, int64_t layers, int64_t capacity,
               int64_t kv_heads, int64_t head_dim)
{
    const int64_t dim[3] = {capacity, kv_heads, head_dim};
    *c = (struct cache){.layers = layers, .capacity = capacity};
    int rc = E_MEMORY;
    c->key = mem_zero((size_t)layers, sizeof *c->key);
    c->value = mem_zero((size_t)layers, sizeof *c->value);
    if (!c->key || !c->value)
        goto out;
    size_t bytes = 2 * (size_t)layers * arena_bytes(d->act, 3, dim);
    TRY_GOTO(rc, arena_open(&c->arena, d, "the key/value cache", bytes), out);
    for (int64_t l = 0; l < layers; l++) {
        c->key[l] = arena_tensor(&c->arena, d->act, 3, dim);
        c->value[l] = arena_tensor(&c->arena, d->act, 3, dim);
    }
out:
    if (rc < 0)
        cache_close(c);
    return rc;
}

void cache_close(struct cache *c)
{
    arena_close(&c->arena);
    mem_free(c->key);
    mem_free(c->value);
    *c = (struct cache){0};
}

void cache_cut(struct cache *c, int64_t len)
{
    if (len < 0 || len > c->len)
        bug("a cache of %lld rows cut to %lld", (long long)c->len, (long long)len);
    c->len = len;
}

int cache_room(const struct cache *c, int64_t rows)
{
    if (rows <= c->capacity - c->len)
        return 0;
    return err_set(E_CONFIG,
                   "key/value cache: %lld rows more do not fit, %lld of %lld are used",
                   (long long)rows, (long long)c->len, (long long)c->capacity);
}
