/* SPDX-License-Identifier: MIT */
/* drafter_decode.c - the context cache, and one block of proposals.
 *
 * The context rows' keys and values depend on their own features alone, so they are
 * computed once, when the target has verified them, and kept; those of the block live
 * for one proposal.  The layers are those of training (drafter_layer), so a proposal
 * equals the training pass of the same anchor. */
#include "drafter_parts.h"

#include "err.h"
#include "span.h"

/* ---- context ---- */

struct fresh {
    struct tensor pos; /* i32 [n] */
    struct tensor aux; /* [n,K*H] */
    struct tensor ctx; /* [n,H] */
};

static struct fresh carve_fresh(const struct drafter *m, int64_t n, struct arena *work)
{
    const struct drafter_config *c = &m->config;
    struct fresh f = {.pos = arena_tensor(work, DT_I32, T1(n))};
    if (m->dev->act != DT_BF16)
        f.aux = arena_tensor(work, m->dev->act, T2(n, c->taps * c->hidden));
    f.ctx = arena_tensor(work, m->dev->act, T2(n, c->hidden));
    return f;
}

int drafter_extend(struct drafter *m, struct cache *ctx, struct tensor aux,
                   const int32_t *pos, struct arena *work)
{
    int64_t n = aux.dim[0];
    size_t used = work->used;
    TRY(cache_room(ctx, n));
    struct fresh f = carve_fresh(m, n, work);
    int rc = dev_put(m->dev, f.pos.data, pos, tensor_bytes(&f.pos));
    if (rc < 0)
        goto out;
    if (m->dev->act != DT_BF16) {
        op_convert(m->dev, f.aux, aux);
        aux = f.aux;
    }
    drafter_fuse(m, f.ctx, f.ctx, aux);
    for (int64_t l = 0; l < m->config.layers; l++) {
        struct tensor key = tensor_rows(ctx->key[l], ctx->len, n);
        struct tensor value = tensor_rows(ctx->value[l], ctx->len, n);
        drafter_context(m, l, key, key, value, f.ctx, f.pos);
    }
    rc = dev_sync(m->dev);
    if (rc == 0)
        ctx->len += n;
out:
    arena_reset(work, used);
    return rc;
}

/* ---- proposal ---- */

/* What the layers write over a block of n rows, in place. */
struct scratch {
    struct drafter_pass pass;
    struct drafter_kept kept;
};

static struct scratch carve_scratch(const struct drafter *m, int64_t n,
                                    struct arena *work)
{
    const struct drafter_config *c = &m->config;
    enum dtype act = m->dev->act;
    struct scratch r = {.pass.block = n};
    struct drafter_pass *p = &r.pass;
    struct drafter_kept *k = &r.kept;
    struct tensor *const index[] = {&p->id, &p->at, &p->lo, &p->slide, &p->hi};
    for (int i = 0; i < 5; i++)
        *index[i] = arena_tensor(work, DT_I32, T1(n));
    k->x = k->mid = arena_tensor(work, act, T2(n, c->hidden));
    p->u = arena_tensor(work, act, T2(n, c->hidden));
    k->q = p->q = arena_tensor(work, act, T3(n, c->heads, c->head_dim));
    k->kb = p->kb = arena_tensor(work, act, T3(n, c->kv_heads, c->head_dim));
    k->vb = arena_tensor(work, act, T3(n, c->kv_heads, c->head_dim));
    k->o = arena_tensor(work, act, T3(n, c->heads, c->head_dim));
    k->lse = arena_tensor(work, DT_F32, T2(n, c->heads));
    k->g = p->s = arena_tensor(work, act, T2(n, c->inter));
    k->up = arena_tensor(work, act, T2(n, c->inter));
    return r;
}

/* put_rows sends the block's tokens and spans. */
static int put_rows(struct drafter *m, const struct drafter_pass *p, const int32_t *id,
                    int64_t start)
{
    int32_t span[4][CONFIG_BLOCK];
    const struct tensor *const to[] = {&p->at, &p->lo, &p->slide, &p->hi};
    span_block(span[0], span[1], span[2], span[3], (int32_t)start, (int32_t)start,
               p->block, m->config.window);
    for (int i = 0; i < 4; i++)
        TRY(dev_put(m->dev, to[i]->data, span[i], tensor_bytes(to[i])));
    return dev_put(m->dev, p->id.data, id, tensor_bytes(&p->id));
}

int drafter_states(struct drafter *m, struct tensor h, const struct cache *ctx,
                   const int32_t *id, int64_t start, struct arena *work)
{
    int64_t n = h.dim[0];
    size_t used = work->used;
    if (n > m->config.block || start < 0 || start > ctx->len)
        bug("a block of %lld slots at %lld, context of %lld", (long long)n,
            (long long)start, (long long)ctx->len);
    TRY(config_check_ids(m->config.vocab, id, n));
    struct scratch r = carve_scratch(m, n, work);
    int rc = put_rows(m, &r.pass, id, start);
    if (rc < 0)
        goto out;
    op_gather(m->dev, r.kept.x, m->embed, r.pass.id);
    for (int64_t l = 0; l < m->config.layers; l++)
        drafter_layer(m, l, r.kept.x, &r.kept, &r.pass, ctx->key[l], ctx->value[l]);
    op_rmsnorm(m->dev, h, r.kept.x, m->w->norm, (float)m->config.eps);
    rc = dev_sync(m->dev);
out:
    arena_reset(work, used);
    return rc;
}

struct proposal {
    struct tensor h;      /* [n,H] */
    struct tensor logits; /* [n - 1,V] */
    struct tensor best;   /* i32 [n - 1] */
};

static struct proposal carve_proposal(const struct drafter *m, int64_t n,
                                      struct arena *work)
{
    const struct drafter_config *c = &m->config;
    return (struct proposal){arena_tensor(work, m->dev->act, T2(n, c->hidden)),
                             arena_tensor(work, m->dev->act, T2(n - 1, c->vocab)),
                             arena_tensor(work, DT_I32, T1(n - 1))};
}

int drafter_propose(struct drafter *m, const struct cache *ctx, const int32_t *id,
                    int64_t n, int64_t start, int32_t *token, struct arena *work)
{
    size_t used = work->used;
    if (n < 2)
        return 0;
    struct proposal p = carve_proposal(m, n, work);
    int rc = drafter_states(m, p.h, ctx, id, start, work);
    if (rc < 0)
        goto out;
    op_matmul(m->dev, p.logits, tensor_rows(p.h, 1, n - 1), m->head, false);
    op_argmax(m->dev, p.best, p.logits);
    rc = dev_get(m->dev, token + 1, p.best.data, tensor_bytes(&p.best));
out:
    arena_reset(work, used);
    return rc;
}

size_t drafter_decode_bytes(const struct drafter *m, int64_t rows)
{
    struct arena extend = arena_plan(), propose = arena_plan();
    carve_fresh(m, rows, &extend);
    carve_proposal(m, m->config.block, &propose);
    carve_scratch(m, m->config.block, &propose);
    return extend.used > propose.used ? extend.used : propose.used;
}
