/* SPDX-License-Identifier: MIT */
/* target_forward.c - a pass of rows through the target.
 *
 *   x [T,H] = embed[ids]
 *   each layer: x += attention (target_attn.c) or Gated DeltaNet (target_delta.c)
 *               x -> norm -> g, up [T,I] -> silu(g) * up -> x += Wd
 *   taps of x, x itself, logits of the last rows
 *
 * Frozen weights are packed for products.  Rows meet only in attention and DeltaNet,
 * and there a row depends on its own document alone, so packed, cached and single
 * passes agree.  Attention, DeltaNet and MLP never run at once and share their memory.
 */
#include "target_parts.h"

#include "err.h"
#include "mem.h"
#include "op.h"

static void carve_attn(struct acts *a, const struct target *t, int64_t rows,
                       struct arena *work)
{
    const struct target_config *c = &t->config;
    enum dtype act = t->dev->act;
    a->q = arena_tensor(work, act, T3(rows, c->heads, c->head_dim));
    a->o = arena_tensor(work, act, T3(rows, c->heads, c->head_dim));
    a->k = arena_tensor(work, act, T3(rows, c->kv_heads, c->head_dim));
    a->v = arena_tensor(work, act, T3(rows, c->kv_heads, c->head_dim));
    a->gate = arena_tensor(work, act, T3(c->hybrid ? rows : 0, c->heads, c->head_dim));
}

static void carve_delta(struct acts *a, const struct target *t, int64_t rows,
                        int64_t window, struct arena *work)
{
    const struct config_delta *g = &t->config.delta;
    int64_t all = rows + window, keys = g->k_heads, values = g->v_heads;
    int64_t mix = 2 * keys * g->k_dim + values * g->v_dim;
    enum dtype act = t->dev->act;
    a->mix = arena_tensor(work, act, T2(OP_TAPS - 1 + all, mix));
    a->a = arena_tensor(work, act, T2(all, values));
    a->b = arena_tensor(work, act, T2(all, values));
    a->dq = arena_tensor(work, act, T3(all, keys, g->k_dim));
    a->dk = arena_tensor(work, act, T3(all, keys, g->k_dim));
    a->dv = arena_tensor(work, act, T3(all, values, g->v_dim));
    a->decay = arena_tensor(work, DT_F32, T2(all, values));
    a->beta = arena_tensor(work, DT_F32, T2(all, values));
    a->z = arena_tensor(work, act, T3(rows, values, g->v_dim));
    a->out = arena_tensor(work, act, T3(all, values, g->v_dim));
    a->state = arena_tensor(work, DT_F32, T3(values, g->k_dim, g->v_dim));
}

/* back takes `work` back to `mark` and returns the larger of its fill and `most`. */
static size_t back(struct arena *work, size_t mark, size_t most)
{
    size_t used = work->used;
    arena_reset(work, mark);
    return used > most ? used : most;
}

/* carve_own makes what a pass has to itself, from layer to layer. */
static void carve_own(struct acts *a, const struct target *t, int64_t rows,
                      int64_t window, struct arena *work)
{
    const struct target_config *c = &t->config;
    struct tensor *const index[] = {&a->ids, &a->pos, &a->lo, &a->hi};
    for (int i = 0; i < 4; i++)
        *index[i] = arena_tensor(work, DT_I32, T1(rows));
    a->zero = arena_tensor(work, DT_I32, T1(c->bias ? rows : 0));
    a->from = arena_tensor(work, DT_I32, T1(c->hybrid ? rows + window : 0));
    a->x = arena_tensor(work, t->dev->act, T2(rows, c->hidden));
}

/* carve_within makes what is done with inside a layer, and so is shared by passes. */
static void carve_within(struct acts *a, const struct target *t, int64_t rows,
                         int64_t window, struct arena *work)
{
    const struct target_config *c = &t->config;
    enum dtype act = t->dev->act;
    a->u = arena_tensor(work, act, T2(rows, c->hidden));
    size_t mark = work->used, most = 0;
    carve_attn(a, t, rows, work);
    most = back(work, mark, most);
    if (c->hybrid)
        carve_delta(a, t, rows, window, work);
    most = back(work, mark, most);
    a->g = arena_tensor(work, act, T2(rows, c->inter));
    a->up = arena_tensor(work, act, T2(rows, c->inter));
    work->used = back(work, mark, most);
}

struct cache_form target_cache_form(const struct target *t, int64_t capacity,
                                    int64_t window)
{
    const struct target_config *c = &t->config;
    return (struct cache_form){.layers = t->layers,
                               .capacity = capacity,
                               .kv_heads = c->kv_heads,
                               .head_dim = c->head_dim,
                               .linear = c->hybrid ? c->linear : NULL,
                               .delta = c->delta,
                               .window = c->hybrid ? window : 0};
}

size_t target_bytes(const struct target *t, int64_t rows, int64_t window)
{
    struct arena plan = arena_plan();
    struct acts a;
    carve_own(&a, t, rows, window, &plan);
    carve_within(&a, t, rows, window, &plan);
    return plan.used;
}

size_t target_group_bytes(const struct target *t, int64_t rows, int n)
{
    struct arena plan = arena_plan();
    struct acts a;
    carve_own(&a, t, rows, 0, &plan);
    size_t own = plan.used;
    carve_within(&a, t, rows, 0, &plan);
    return plan.used + (size_t)(n - 1) * own;
}

static int check(const struct target *t, const struct target_pass *p)
{
    TRY(config_check_ids(t->config.vocab, p->ids, p->rows));
    for (int64_t r = 0; r < p->rows; r++)
        if (p->pos[r] >= t->config.max_positions)
            return err_set(E_CONFIG, "position %d: the target has %lld positions",
                           (int)p->pos[r], (long long)t->config.max_positions);
    if (p->cache)
        TRY(cache_room(p->cache, p->rows));
    if ((p->last.data || p->logits.data) && t->layers < t->config.layers)
        bug("the last layer of a target is wanted, %lld of %lld are open",
            (long long)t->layers, (long long)t->config.layers);
    return 0;
}

static int put(struct target *t, struct acts *a, const struct target_pass *p)
{
    const struct {
        const struct tensor *to;
        const int32_t *from;
    } list[] = {{&a->ids, p->ids}, {&a->pos, p->pos}, {&a->lo, p->lo}, {&a->hi, p->hi}};
    for (int i = 0; i < 4; i++)
        TRY(dev_put(t->dev, list[i].to->data, list[i].from, tensor_bytes(list[i].to)));
    struct tensor zero = a->zero;
    zero.type = DT_F32; // all bits are zero in either type
    op_fill(t->dev, zero, 0);
    return target_delta_rows(t, a, p);
}

static void mlp(struct target *t, int64_t l, const struct acts *a)
{
    struct dev *d = t->dev;
    const struct layer *y = &t->layer[l];
    op_rmsnorm(d, a->u, a->x, y->post_norm, (float)t->config.eps);
    op_matmul(d, a->g, a->u, y->gate, false);
    op_matmul(d, a->up, a->u, y->up, false);
    op_swiglu(d, a->g, a->g, a->up);
    op_matmul(d, a->x, a->g, y->down, true);
}

static void logits(struct target *t, const struct acts *a, struct tensor out)
{
    int64_t n = out.dim[0], rows = a->x.dim[0];
    struct tensor u = tensor_rows(a->u, 0, n);
    op_rmsnorm(t->dev, u, tensor_rows(a->x, rows - n, n), t->norm,
               (float)t->config.eps);
    op_matmul(t->dev, out, u, t->head, false);
}

static void layer(struct target *t, int64_t l, struct acts *a,
                  const struct target_pass *p)
{
    if (t->config.linear[l])
        target_delta(t, l, a, p);
    else
        target_attn(t, l, a, p);
    mlp(t, l, a);
    if (p->aux.data && a->tapped < p->taps && p->tap[a->tapped] == l)
        op_tap(t->dev, p->aux, a->x, a->tapped++);
}

static void finish(struct target *t, const struct acts *a, struct target_pass *p)
{
    if (p->aux.data && a->tapped < p->taps)
        bug("tap of layer %lld, %lld layers are open", (long long)p->tap[a->tapped],
            (long long)t->layers);
    if (p->last.data)
        op_convert(t->dev, p->last, a->x);
    if (p->logits.data)
        logits(t, a, p->logits);
}

/* begin carves the passes' memory and embeds their tokens. */
static int begin(struct target *t, struct acts *a, struct target_pass *p, int n,
                 struct arena *work)
{
    for (int i = 0; i < n; i++)
        TRY(check(t, &p[i]));
    for (int i = 0; i < n; i++)
        carve_own(&a[i], t, p[i].rows, p[i].cache ? p[i].cache->window : 0, work);
    size_t mark = work->used;
    for (int i = 0; i < n; i++) {
        carve_within(&a[i], t, p[i].rows, p[i].cache ? p[i].cache->window : 0, work);
        arena_reset(work, mark);
    }
    for (int i = 0; i < n; i++) {
        TRY(put(t, &a[i], &p[i]));
        op_gather(t->dev, a[i].x, t->embed, a[i].ids);
    }
    return 0;
}

static int run(struct target *t, struct acts *a, struct target_pass *p, int n)
{
    for (int64_t l = 0; l < t->layers; l++) {
        TRY(target_stream_place(t, l));
        for (int i = 0; i < n; i++)
            layer(t, l, &a[i], &p[i]);
        // behind the last layer comes the next group's first
        TRY(target_stream_bring(t, (l + 1) % t->layers));
    }
    for (int i = 0; i < n; i++)
        finish(t, &a[i], &p[i]);
    return dev_sync(t->dev);
}

int target_group(struct target *t, struct target_pass *p, int n, struct arena *work)
{
    size_t used = work->used;
    struct acts *a = mem_zero((size_t)n, sizeof *a);
    int rc = E_MEMORY;
    if (!a)
        return rc;
    TRY_GOTO(rc, begin(t, a, p, n, work), out);
    rc = run(t, a, p, n);
    for (int i = 0; i < n && rc == 0; i++)
        if (p[i].cache) {
            target_delta_done(&a[i], &p[i]);
            p[i].cache->len += p[i].rows;
        }
out:
    arena_reset(work, used);
    mem_free(a);
    return rc;
}

int target_forward(struct target *t, struct target_pass *p, struct arena *work)
{
    return target_group(t, p, 1, work);
}
