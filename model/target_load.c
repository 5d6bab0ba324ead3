/* SPDX-License-Identifier: MIT */
/* target_load.c - which tensors a family has, under which names, and where they go.
 *
 * Every tensor of the checkpoint is asked for, also of layers that are not loaded, so
 * that a file of another architecture is noticed whatever is wanted of it. */
#include "target_parts.h"

#include "err.h"
#include "op.h"
#include "rope.h"
#include "weights.h"

/* A load under way. */
struct want {
    struct weights w;
    struct target *t;
    const char *prefix; /* of all names but the head's */
    const char *head;
    enum weights_form gain; /* of the norms of layers and the final one */
    int64_t l;
};

/* What multimodal checkpoints of a hybrid hold beside the language model: the tower for
 * images and the heads of multi-token prediction. */
static const char *const beside[] = {"model.visual.", "mtp.", NULL};

/* find_names: published checkpoints, text-only saves and converted ones have the same
 * tensors under other names; the embedding tells which these are. */
static void find_names(struct want *k, const struct st_model *m)
{
    static const char *const known[][3] = {
        {"model.language_model.embed_tokens.weight", "model.language_model.",
         "lm_head.weight"},
        {"language_model.model.embed_tokens.weight", "language_model.model.",
         "language_model.lm_head.weight"},
    };
    k->prefix = "model.";
    k->head = "lm_head.weight";
    for (int i = 0; i < 2 && m; i++)
        if (k->t->config.hybrid && st_model_find(m, known[i][0])) {
            k->prefix = known[i][1];
            k->head = known[i][2];
        }
}

/* ask wants tensor `name` of layer l, loaded if the layer is. */
static void ask(struct want *k, struct tensor *to, enum weights_form form,
                const char *name, int64_t rows, int64_t cols)
{
    weights_want(&k->w, k->l < k->t->layers ? to : NULL, form, rows, cols,
                 "%slayers.%lld.%s", k->prefix, (long long)k->l, name);
}

/* pick takes a hybrid's heads out of `rows` stored rows, `step` rows for each head;
 * those that turn get their channels in the order that op_norm_rope pairs. */
static void pick(struct want *k, int64_t rows, int64_t step, int64_t offset, bool turns)
{
    const struct target_config *c = &k->t->config;
    int64_t d = c->head_dim;
    weights_pick(&k->w,
                 (struct weights_pick){rows, d, step, offset, turns ? c->rotary : d});
}

/* A gated q_proj holds query and gate of each head in turn. */
static void want_gated(struct want *k)
{
    const struct target_config *c = &k->t->config;
    struct layer *y = &k->t->layer[k->l];
    int64_t d = c->head_dim, q = c->heads * d, kv = c->kv_heads * d;
    ask(k, &y->q, WEIGHTS_PANELS, "self_attn.q_proj.weight", q, c->hidden);
    pick(k, 2 * q, 2 * d, 0, true);
    ask(k, &y->q_gate, WEIGHTS_PANELS, "self_attn.q_proj.weight", q, c->hidden);
    pick(k, 2 * q, 2 * d, d, false);
    ask(k, &y->k, WEIGHTS_PANELS, "self_attn.k_proj.weight", kv, c->hidden);
    pick(k, kv, d, 0, true);
    ask(k, &y->q_norm, WEIGHTS_ONE, "self_attn.q_norm.weight", d, 0);
    pick(k, d, d, 0, true);
    ask(k, &y->k_norm, WEIGHTS_ONE, "self_attn.k_norm.weight", d, 0);
    pick(k, d, d, 0, true);
}

static void want_plain(struct want *k)
{
    const struct target_config *c = &k->t->config;
    struct layer *y = &k->t->layer[k->l];
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    ask(k, &y->q, WEIGHTS_PANELS, "self_attn.q_proj.weight", q, c->hidden);
    ask(k, &y->k, WEIGHTS_PANELS, "self_attn.k_proj.weight", kv, c->hidden);
    if (c->bias) {
        ask(k, &y->q_bias, WEIGHTS_ACT, "self_attn.q_proj.bias", q, 0);
        ask(k, &y->k_bias, WEIGHTS_ACT, "self_attn.k_proj.bias", kv, 0);
        ask(k, &y->v_bias, WEIGHTS_ACT, "self_attn.v_proj.bias", kv, 0);
    }
    if (c->head_norm) {
        ask(k, &y->q_norm, WEIGHTS_ACT, "self_attn.q_norm.weight", c->head_dim, 0);
        ask(k, &y->k_norm, WEIGHTS_ACT, "self_attn.k_norm.weight", c->head_dim, 0);
    }
}

static void want_attn(struct want *k)
{
    const struct target_config *c = &k->t->config;
    struct layer *y = &k->t->layer[k->l];
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    if (c->hybrid)
        want_gated(k);
    else
        want_plain(k);
    ask(k, &y->v, WEIGHTS_PANELS, "self_attn.v_proj.weight", kv, c->hidden);
    ask(k, &y->o, WEIGHTS_PANELS, "self_attn.o_proj.weight", c->hidden, q);
}

static void want_delta(struct want *k)
{
    const struct target_config *c = &k->t->config;
    const struct config_delta *g = &c->delta;
    struct layer *y = &k->t->layer[k->l];
    int64_t values = g->v_heads * g->v_dim, h = c->hidden;
    int64_t mix = 2 * g->k_heads * g->k_dim + values;
    ask(k, &y->mix, WEIGHTS_PANELS, "linear_attn.in_proj_qkv.weight", mix, h);
    ask(k, &y->z, WEIGHTS_PANELS, "linear_attn.in_proj_z.weight", values, h);
    ask(k, &y->a, WEIGHTS_PANELS, "linear_attn.in_proj_a.weight", g->v_heads, h);
    ask(k, &y->b, WEIGHTS_PANELS, "linear_attn.in_proj_b.weight", g->v_heads, h);
    ask(k, &y->conv, WEIGHTS_TAPS, "linear_attn.conv1d.weight", mix, OP_TAPS);
    ask(k, &y->a_log, WEIGHTS_F32, "linear_attn.A_log", g->v_heads, 0);
    ask(k, &y->dt_bias, WEIGHTS_F32, "linear_attn.dt_bias", g->v_heads, 0);
    ask(k, &y->out_norm, WEIGHTS_F32, "linear_attn.norm.weight", g->v_dim, 0);
    ask(k, &y->out, WEIGHTS_PANELS, "linear_attn.out_proj.weight", h, values);
}

static void want_layer(struct want *k)
{
    const struct target_config *c = &k->t->config;
    struct layer *y = &k->t->layer[k->l];
    int64_t h = c->hidden, inter = c->inter;
    ask(k, &y->input_norm, k->gain, "input_layernorm.weight", h, 0);
    if (c->linear[k->l])
        want_delta(k);
    else
        want_attn(k);
    ask(k, &y->post_norm, k->gain, "post_attention_layernorm.weight", h, 0);
    ask(k, &y->gate, WEIGHTS_PANELS, "mlp.gate_proj.weight", inter, h);
    ask(k, &y->up, WEIGHTS_PANELS, "mlp.up_proj.weight", inter, h);
    ask(k, &y->down, WEIGHTS_PANELS, "mlp.down_proj.weight", h, inter);
}

/* want_all lists every tensor of the checkpoint, or, with m NULL, of one as published.
 * The head is lm_head.weight where there is one and else the embedding, whatever
 * config.json says. */
static void want_all(struct want *k, const struct st_model *m, enum target_head head)
{
    struct target *t = k->t;
    const struct target_config *c = &t->config;
    enum weights_form form = head == TARGET_LOGITS ? WEIGHTS_PANELS : WEIGHTS_ROWS;
    bool own = !m || st_model_find(m, k->head) != NULL;
    weights_want(&k->w, &t->embed, WEIGHTS_ROWS, c->vocab, c->hidden,
                 "%sembed_tokens.weight", k->prefix);
    for (k->l = 0; k->l < c->layers; k->l++) {
        k->w.part = target_part(k->l);
        want_layer(k);
    }
    k->w.part = 0;
    weights_want(&k->w, head == TARGET_LOGITS ? &t->norm : NULL, k->gain, c->hidden, 0,
                 "%snorm.weight", k->prefix);
    if (own)
        weights_want(&k->w, head ? &t->head : NULL, form, c->vocab, c->hidden, "%s",
                     k->head);
    else if (head == TARGET_LOGITS)
        weights_want(&k->w, &t->head, form, c->vocab, c->hidden,
                     "%sembed_tokens.weight", k->prefix);
}

int target_open_rope(struct target *t, struct arena *a)
{
    const struct target_config *c = &t->config;
    struct rope r = {c->rope_theta, c->head_dim, c->rotary, c->scaling};
    return rope_open(&t->freq, a, t->dev, &r);
}

/* measure finds all tensors and tells what they take. */
static int measure(struct want *k, const struct st_model *m, enum target_head head)
{
    struct target *t = k->t;
    struct arena plan = arena_plan();
    struct target_stream_sizes s = {0};
    want_all(k, m, head);
    TRY(weights_match(&k->w, m));
    TRY(st_model_digest(m, &t->digest));
    TRY(weights_load(&k->w, t->dev, &plan));
    TRY(target_open_rope(t, &plan));
    if (head == TARGET_HEADLESS)
        TRY(target_stream_measure(t, &k->w, &s));
    t->sizes = (struct target_sizes){.whole = plan.used,
                                     .loading = weights_loading(&k->w),
                                     .parts = s.stays + s.stage + s.place};
    return 0;
}

static struct want want_new(struct target *t, const struct st_model *m)
{
    bool hybrid = t->config.hybrid;
    struct want k = {.w = {.fp8 = t->config.fp8, .ignore = hybrid ? beside : NULL},
                     .t = t,
                     .gain = hybrid ? WEIGHTS_ONE : WEIGHTS_ACT};
    find_names(&k, m);
    return k;
}

int target_measure(struct target *t, const struct st_model *m, enum target_head head)
{
    struct want k = want_new(t, m);
    int rc = measure(&k, m, head);
    weights_drop(&k.w);
    return rc;
}

int target_load(struct target *t, struct st_model *m, enum target_head head,
                size_t memory)
{
    struct want k = want_new(t, m);
    int rc;
    TRY_GOTO(rc, measure(&k, m, head), out);
    if (memory && t->sizes.whole > memory) {
        rc = target_stream_open(t, m, &k.w, memory);
        goto out;
    }
    TRY_GOTO(rc, arena_open(&t->arena, t->dev, "the target", t->sizes.whole), out);
    TRY_GOTO(rc, weights_load(&k.w, t->dev, &t->arena), out);
    TRY_GOTO(rc, target_open_rope(t, &t->arena), out);
    if (!t->head.data && head == TARGET_VOCABULARY)
        t->head = t->embed;
out:
    weights_drop(&k.w);
    return rc;
}

int target_load_drawn(struct target *t, uint64_t seed)
{
    struct want k = want_new(t, NULL);
    struct arena plan = arena_plan();
    int rc;
    want_all(&k, NULL, TARGET_HEADLESS);
    TRY_GOTO(rc, weights_draw(&k.w, t->dev, &plan, seed), out);
    TRY_GOTO(rc, target_open_rope(t, &plan), out);
    TRY_GOTO(rc, arena_open(&t->arena, t->dev, "the target", plan.used), out);
    TRY_GOTO(rc, weights_draw(&k.w, t->dev, &t->arena, seed), out);
    TRY_GOTO(rc, target_open_rope(t, &t->arena), out);
out:
    weights_drop(&k.w);
    return rc;
}
