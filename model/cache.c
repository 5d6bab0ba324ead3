/* SPDX-License-Identifier: MIT */
/* cache.c - a few tensors a layer in one arena. */
#include "cache.h"

#include "err.h"
#include "mem.h"
#include "op.h"

static void carve_delta(struct cache_delta *l, struct arena *a, enum dtype act,
                        const struct cache_form *f)
{
    const struct config_delta *g = &f->delta;
    int64_t mix = 2 * g->k_heads * g->k_dim + g->v_heads * g->v_dim;
    l->state = arena_tensor(a, DT_F32, T3(g->v_heads, g->k_dim, g->v_dim));
    l->mix = arena_tensor(a, act, T2(OP_TAPS - 1 + f->window, mix));
    l->a = arena_tensor(a, act, T2(f->window, g->v_heads));
    l->b = arena_tensor(a, act, T2(f->window, g->v_heads));
}

/* carve makes layer l's tensors in `a`. */
static void carve(struct cache *c, int64_t l, struct arena *a, enum dtype act,
                  const struct cache_form *f)
{
    const int64_t dim[3] = {f->capacity, f->kv_heads, f->head_dim};
    struct tensor key, value;
    struct cache_delta delta;
    if (f->linear && f->linear[l]) {
        carve_delta(c ? &c->delta[l] : &delta, a, act, f);
        return;
    }
    *(c ? &c->key[l] : &key) = arena_tensor(a, act, 3, dim);
    *(c ? &c->value[l] : &value) = arena_tensor(a, act, 3, dim);
}

size_t cache_bytes(const struct dev *d, const struct cache_form *f)
{
    struct arena plan = arena_plan();
    for (int64_t l = 0; l < f->layers; l++)
        carve(NULL, l, &plan, d->act, f);
    return plan.used;
}

int cache_open(struct cache *c, struct dev *d, const struct cache_form *f)
{
    size_t layers = (size_t)f->layers;
    *c = (struct cache){
        .layers = f->layers, .capacity = f->capacity, .window = f->window};
    int rc = E_MEMORY;
    c->key = mem_zero(layers, sizeof *c->key);
    c->value = mem_zero(layers, sizeof *c->value);
    if (f->linear) {
        c->delta = mem_zero(layers, sizeof *c->delta);
        c->from = mem_zero((size_t)f->window, sizeof *c->from);
    }
    if (!c->key || !c->value || (f->linear && (!c->delta || !c->from)))
        goto out;
    TRY_GOTO(rc, arena_open(&c->arena, d, "the cache", cache_bytes(d, f)), out);
    for (int64_t l = 0; l < f->layers; l++)
        carve(c, l, &c->arena, d->act, f);
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
    mem_free(c->delta);
    mem_free(c->from);
    *c = (struct cache){0};
}

void cache_cut(struct cache *c, int64_t len)
{
    if (len == 0)
        c->base = 0;
    if (len < c->base || len > c->len)
        bug("a cache of %lld rows, %lld of them for good, cut to %lld",
            (long long)c->len, (long long)c->base, (long long)len);
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
