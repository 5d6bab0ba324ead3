/* SPDX-License-Identifier: MIT */
/* target.c - loading and running a dense Qwen3 decoder.
 *
 *   x [T,H] -> norm -> q [T,n_h,D], k, v [T,n_kv,D] -> q, k: norm, RoPE
 *     k, v -> the cache's rows [len, len + T), or rows of this pass
 *     attention over [lo, hi) -> o -> x += Wo o
 *   x -> norm -> g, up [T,I] -> silu(g) * up -> x += Wd
 *
 * Frozen weights are packed for products.  Rows meet only in attention, and there a row
 * depends on its own keys alone, so packed, cached and single passes agree. */
#include "target.h"

#include "err.h"
#include "mem.h"
#include "op.h"
#include "rope.h"
#include "weights.h"

#include <math.h>

struct layer {
    struct tensor input_norm, q, k, v, o, q_norm, k_norm, post_norm, gate, up, down;
};

struct target {
    struct target_config config;
    struct dev *dev;
    struct arena arena;
    struct tensor embed, head, norm, freq;
    struct layer *layer; /* owned, [config.layers] */
    int64_t layers;      /* loaded: 0 .. layers - 1 */
    bool whole;          /* all layers, final norm and packed head */
    bool shared;         /* weights belong to another target */
    uint64_t digest;
};

/* ---- opening ---- */

static void want_layer(struct weights *w, struct target *t, int64_t l)
{
    const struct target_config *c = &t->config;
    struct layer *y = &t->layer[l];
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    enum weights_form norm = l < t->layers ? WEIGHTS_ACT : WEIGHTS_SKIP;
    enum weights_form matrix = l < t->layers ? WEIGHTS_PANELS : WEIGHTS_SKIP;
    const struct {
        const char *name;
        struct tensor *to;
        int64_t rows, cols;
    } list[] = {
        {"input_layernorm", &y->input_norm, c->hidden, 0},
        {"self_attn.q_proj", &y->q, q, c->hidden},
        {"self_attn.k_proj", &y->k, kv, c->hidden},
        {"self_attn.v_proj", &y->v, kv, c->hidden},
        {"self_attn.o_proj", &y->o, c->hidden, q},
        {"self_attn.q_norm", &y->q_norm, c->head_dim, 0},
        {"self_attn.k_norm", &y->k_norm, c->head_dim, 0},
        {"post_attention_layernorm", &y->post_norm, c->hidden, 0},
        {"mlp.gate_proj", &y->gate, c->inter, c->hidden},
        {"mlp.up_proj", &y->up, c->inter, c->hidden},
        {"mlp.down_proj", &y->down, c->hidden, c->inter},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        weights_want(w, list[i].to, list[i].cols ? matrix : norm, list[i].rows,
                     list[i].cols, "model.layers.%lld.%s.weight", (long long)l,
                     list[i].name);
}

/* want_all lists every tensor of the checkpoint.  The head is lm_head.weight where
 * there is one and else the embedding, whatever config.json says. */
static void want_all(struct weights *w, struct target *t, const struct st_model *m,
                     enum weights_form head)
{
    const struct target_config *c = &t->config;
    const char *embed = "model.embed_tokens.weight", *own = "lm_head.weight";
    bool tied = !st_model_find(m, own);
    weights_want(w, &t->embed, WEIGHTS_ROWS, c->vocab, c->hidden, "%s", embed);
    for (int64_t l = 0; l < c->layers; l++)
        want_layer(w, t, l);
    weights_want(w, &t->norm, t->whole ? WEIGHTS_ACT : WEIGHTS_SKIP, c->hidden, 0,
                 "model.norm.weight");
    if (!tied || head == WEIGHTS_PANELS)
        weights_want(w, &t->head, head, c->vocab, c->hidden, "%s", tied ? embed : own);
}

static int load(struct target *t, const struct st_model *m, enum weights_form head)
{
    struct weights w = {0};
    struct arena plan = arena_plan();
    int rc;
    want_all(&w, t, m, head);
    TRY_GOTO(rc, weights_match(&w, m), out);
    TRY_GOTO(rc, st_model_digest(m, &t->digest), out);
    TRY_GOTO(rc, weights_load(&w, t->dev, &plan), out);
    const struct target_config *c = &t->config;
    rope_open(&t->freq, &plan, t->dev, c->head_dim, c->rope_theta);
    TRY_GOTO(rc, arena_open(&t->arena, t->dev, "the target", plan.used), out);
    TRY_GOTO(rc, weights_load(&w, t->dev, &t->arena), out);
    TRY_GOTO(rc, rope_open(&t->freq, &t->arena, t->dev, c->head_dim, c->rope_theta),
             out);
    if (!t->head.data && head == WEIGHTS_ROWS)
        t->head = t->embed;
out:
    weights_drop(&w);
    return rc;
}

/* open_with opens the first `layers` layers (-1: all) and the head in the given form.
 */
static int open_with(struct target **out, struct dev *d, const char *dir,
                     int64_t layers, enum weights_form head)
{
    struct st_model m = {0};
    struct target *t = mem_zero(1, sizeof *t);
    int rc = E_MEMORY;
    if (!t)
        return rc;
    t->dev = d;
    TRY_GOTO(rc, config_target(&t->config, dir), out);
    t->layers = layers < 0 ? t->config.layers : layers;
    t->whole = head == WEIGHTS_PANELS;
    if (t->whole && layers >= 0 && t->layers != t->config.layers)
        bug("a head behind %lld of %lld layers", (long long)t->layers,
            (long long)t->config.layers);
    if (t->layers > t->config.layers) {
        rc = err_set(E_CONFIG, "%s: layer %lld is wanted, the last one is %lld", dir,
                     (long long)t->layers - 1, (long long)t->config.layers - 1);
        goto out;
    }
    t->layer = mem_zero((size_t)t->config.layers, sizeof *t->layer);
    if (!t->layer) {
        rc = E_MEMORY;
        goto out;
    }
    TRY_GOTO(rc, st_model_open(&m, dir), out);
    rc = load(t, &m, head);
out:
    st_model_close(&m);
    if (rc < 0)
        target_close(t);
    else
        *out = t;
    return rc;
}

int target_open(struct target **out, struct dev *d, const char *dir, int64_t last_layer,
                bool head)
{
    return open_with(out, d, dir, last_layer < 0 ? -1 : last_layer + 1,
                     head ? WEIGHTS_PANELS : WEIGHTS_SKIP);
}

int target_vocabulary(struct target **out, struct dev *d, const char *dir)
{
    return open_with(out, d, dir, 0, WEIGHTS_ROWS);
}

void target_close(struct target *t)
{
    if (!t)
        return;
    if (!t->shared) {
        arena_close(&t->arena);
        mem_free(t->layer);
    }
    mem_free(t);
}

int target_share(struct target **out, const struct target *t, struct dev *d)
{
    struct target *view = mem_alloc(sizeof *view);
    if (!view)
        return E_MEMORY;
    *view = *t;
    view->dev = d;
    view->shared = true;
    *out = view;
    return 0;
}

const struct target_config *target_config(const struct target *t)
{
    return &t->config;
}

uint64_t target_digest(const struct target *t)
{
    return t->digest;
}

struct tensor target_embed(const struct target *t)
{
    return t->embed;
}

struct tensor target_head(const struct target *t)
{
    return t->head;
}

/* ---- running ---- */

/* Working memory of a pass. */
struct acts {
    struct tensor ids, pos, lo, hi; /* [T] */
    struct tensor x, u;             /* [T,H] */
    struct tensor q, o;             /* [T,n_h,D] */
    struct tensor k, v;             /* [T,n_kv,D] */
    struct tensor g, up;            /* [T,I] */
};

static struct acts carve(const struct target *t, int64_t rows, struct arena *work)
{
    const struct target_config *c = &t->config;
    struct acts a;
    enum dtype act = t->dev->act;
    struct tensor *const index[] = {&a.ids, &a.pos, &a.lo, &a.hi};
    for (int i = 0; i < 4; i++)
        *index[i] = arena_tensor(work, DT_I32, T1(rows));
    a.x = arena_tensor(work, act, T2(rows, c->hidden));
    a.u = arena_tensor(work, act, T2(rows, c->hidden));
    a.q = arena_tensor(work, act, T3(rows, c->heads, c->head_dim));
    a.o = arena_tensor(work, act, T3(rows, c->heads, c->head_dim));
    a.k = arena_tensor(work, act, T3(rows, c->kv_heads, c->head_dim));
    a.v = arena_tensor(work, act, T3(rows, c->kv_heads, c->head_dim));
    a.g = arena_tensor(work, act, T2(rows, c->inter));
    a.up = arena_tensor(work, act, T2(rows, c->inter));
    return a;
}

size_t target_bytes(const struct target *t, int64_t rows)
{
    struct arena plan = arena_plan();
    carve(t, rows, &plan);
    return plan.used;
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

static int put(const struct target *t, const struct acts *a,
               const struct target_pass *p)
{
    const struct {
        const struct tensor *to;
        const int32_t *from;
    } list[] = {{&a->ids, p->ids}, {&a->pos, p->pos}, {&a->lo, p->lo}, {&a->hi, p->hi}};
    for (int i = 0; i < 4; i++)
        TRY(dev_put(t->dev, list[i].to->data, list[i].from, tensor_bytes(list[i].to)));
    return 0;
}

static void attention(struct target *t, int64_t l, const struct acts *a,
                      const struct target_pass *p)
{
    struct dev *d = t->dev;
    const struct target_config *c = &t->config;
    const struct layer *y = &t->layer[l];
    float eps = (float)c->eps;
    struct tensor k = a->k, v = a->v, keys = k, values = v;
    if (p->cache) {
        int64_t len = p->cache->len;
        k = tensor_rows(p->cache->key[l], len, p->rows);
        v = tensor_rows(p->cache->value[l], len, p->rows);
        keys = tensor_rows(p->cache->key[l], 0, len + p->rows);
        values = tensor_rows(p->cache->value[l], 0, len + p->rows);
    }
    op_rmsnorm(d, a->u, a->x, y->input_norm, eps);
    op_matmul(d, tensor_wide(a->q), a->u, y->q, false);
    op_matmul(d, tensor_wide(k), a->u, y->k, false);
    op_matmul(d, tensor_wide(v), a->u, y->v, false);
    op_norm_rope(d, a->q, a->q, y->q_norm, a->pos, t->freq, eps);
    op_norm_rope(d, k, k, y->k_norm, a->pos, t->freq, eps);
    op_attn_span(d, a->o, a->q, keys, values, a->lo, a->hi,
                 (float)(1 / sqrt((double)c->head_dim)));
    op_matmul(d, a->x, tensor_wide(a->o), y->o, true);
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

int target_forward(struct target *t, struct target_pass *p, struct arena *work)
{
    size_t used = work->used;
    int tapped = 0;
    TRY(check(t, p));
    struct acts a = carve(t, p->rows, work);
    int rc = put(t, &a, p);
    if (rc < 0)
        goto out;
    op_gather(t->dev, a.x, t->embed, a.ids);
    for (int64_t l = 0; l < t->layers; l++) {
        attention(t, l, &a, p);
        mlp(t, l, &a);
        if (p->aux.data && tapped < p->taps && p->tap[tapped] == l)
            op_tap(t->dev, p->aux, a.x, tapped++);
    }
    if (p->aux.data && tapped < p->taps)
        bug("tap of layer %lld, %lld layers are open", (long long)p->tap[tapped],
            (long long)t->layers);
    if (p->last.data)
        op_convert(t->dev, p->last, a.x);
    if (p->logits.data)
        logits(t, &a, p->logits);
    rc = dev_sync(t->dev);
    if (rc == 0 && p->cache)
        p->cache->len += p->rows;
out:
    arena_reset(work, used);
    return rc;
}
