/* SPDX-License-Identifier: MIT */
/* lane.c - passes of one sequence through target and drafter. */
#include "lane.h"

#include "err.h"
#include "mem.h"
#include "op.h"

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static size_t work_bytes(const struct lane *l, int64_t rows)
{
    size_t target = target_bytes(l->target, rows, l->block - 1);
    size_t draft = l->drafter.dev ? drafter_decode_bytes(&l->drafter, rows) : 0;
    return target > draft ? target : draft;
}

static int open_arenas(struct lane *l, int64_t rows)
{
    const struct target_config *t = target_config(l->target);
    int64_t aux = l->drafter.config.taps * t->hidden;
    size_t out = arena_bytes(DT_BF16, T2(rows, aux)) +
                 arena_bytes(l->dev->act, T2(l->block, t->vocab)) +
                 arena_bytes(DT_I32, T1(l->block)) +
                 arena_bytes(DT_F32, T2(1, t->vocab));

    TRY(arena_open(&l->work, l->dev, "pass", work_bytes(l, rows)));
    TRY(arena_open(&l->out, l->dev, "taps and logits", out));
    l->aux = arena_tensor(&l->out, DT_BF16, T2(rows, aux));
    l->logits = arena_tensor(&l->out, l->dev->act, T2(l->block, t->vocab));
    l->best = arena_tensor(&l->out, DT_I32, T1(l->block));
    l->single = arena_tensor(&l->out, DT_F32, T2(1, t->vocab));
    return 0;
}

static int open_parts(struct lane *l, int64_t capacity)
{
    const struct drafter_config *d = &l->drafter.config;
    int64_t rows = most(LANE_ROWS, l->block);
    size_t bytes = (size_t)rows * sizeof(int32_t);

    TRY(open_arenas(l, rows));
    struct cache_form own = target_cache_form(l->target, capacity, l->block - 1);
    struct cache_form context = {.layers = d->layers,
                                 .capacity = capacity,
                                 .kv_heads = d->kv_heads,
                                 .head_dim = d->head_dim};
    TRY(cache_open(&l->cache, l->dev, &own));
    if (l->drafter.dev)
        TRY(cache_open(&l->context, l->dev, &context));
    l->pos = mem_alloc(bytes);
    l->lo = mem_zero(1, bytes);
    l->hi = mem_alloc(bytes);
    return l->pos && l->lo && l->hi ? 0 : E_MEMORY;
}

int lane_open(struct lane *l, const char *device, struct par *par,
              struct target *target, const struct drafter *drafter, int64_t capacity)
{
    int rc;

    *l = (struct lane){.block = drafter ? drafter->config.block : 1};
    TRY_GOTO(rc, dev_open(&l->dev, device, par), out);
    TRY_GOTO(rc, target_share(&l->target, target, l->dev), out);
    lane_use(l, drafter);
    TRY_GOTO(rc, open_parts(l, capacity), out);
out:
    if (rc < 0)
        lane_close(l);
    return rc;
}

void lane_close(struct lane *l)
{
    cache_close(&l->cache);
    cache_close(&l->context);
    arena_close(&l->work);
    arena_close(&l->out);
    target_close(l->target);
    dev_close(l->dev);
    mem_free(l->pos);
    mem_free(l->lo);
    mem_free(l->hi);
    *l = (struct lane){0};
}

void lane_use(struct lane *l, const struct drafter *drafter)
{
    l->drafter = (struct drafter){0};
    if (!drafter)
        return;
    l->drafter = *drafter;
    l->drafter.dev = l->dev;
}

void lane_reset(struct lane *l)
{
    cache_cut(&l->cache, 0);
    if (l->drafter.dev)
        cache_cut(&l->context, 0);
}

int lane_forward(struct lane *l, const int32_t *ids, int64_t n, int64_t logits)
{
    const struct drafter_config *d = &l->drafter.config;
    struct target_pass pass = {.rows = n,
                               .ids = ids,
                               .pos = l->pos,
                               .lo = l->lo,
                               .hi = l->hi,
                               .cache = &l->cache};

    for (int64_t i = 0; i < n; i++) {
        l->pos[i] = (int32_t)(l->cache.len + i);
        l->hi[i] = l->pos[i] + 1;
    }
    if (l->drafter.dev) {
        pass.tap = d->tap;
        pass.taps = d->taps;
        pass.aux = tensor_rows(l->aux, 0, n);
    }
    if (logits > 0)
        pass.logits = tensor_rows(l->logits, 0, logits);
    return target_forward(l->target, &pass, &l->work);
}

int lane_best(struct lane *l, int32_t *best, int64_t n)
{
    op_argmax(l->dev, tensor_rows(l->best, 0, n), tensor_rows(l->logits, 0, n));
    TRY(dev_get(l->dev, best, l->best.data, (size_t)n * sizeof *best));
    return dev_sync(l->dev);
}

int lane_logits(struct lane *l, float *logits)
{
    op_convert(l->dev, l->single, tensor_rows(l->logits, 0, 1));
    TRY(dev_get(l->dev, logits, l->single.data, tensor_bytes(&l->single)));
    return dev_sync(l->dev);
}

int lane_feed(struct lane *l, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        l->pos[i] = (int32_t)(l->context.len + i);
    return drafter_extend(&l->drafter, &l->context, tensor_rows(l->aux, 0, n), l->pos,
                          &l->work);
}
