/* SPDX-License-Identifier: MIT */
/* target_load.c - which tensors a family has, under which names, and where they go.
 *
 * Every tensor of the checkpoint is asked for, also of layers that are not loaded, so
 * that a file of another architecture is noticed whatever is wanted of it. */
#include "target_parts.h"

#include "err.h"
#include "rope.h"
#include "weights.h"

/* A load under way. */
struct want {
    struct weights w;
    struct target *t;
    const char *prefix; /* of all names but the head's */
    const char *head;
    int64_t l;
};

/* ask wants tensor `name` of layer l, loaded if the layer is. */
static void ask(struct want *k, struct tensor *to, enum weights_form form,
                const char *name, int64_t rows, int64_t cols)
{
    weights_want(&k->w, k->l < k->t->layers ? to : NULL, form, rows, cols,
                 "%slayers.%lld.%s", k->prefix, (long long)k->l, name);
}

static void want_attn(struct want *k)
{
    const struct target_config *c = &k->t->config;
    struct layer *y = &k->t->layer[k->l];
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim, h = c->hidden;
    ask(k, &y->q, WEIGHTS_PANELS, "self_attn.q_proj.weight", q, h);
    ask(k, &y->k, WEIGHTS_PANELS, "self_attn.k_proj.weight", kv, h);
    ask(k, &y->v, WEIGHTS_PANELS, "self_attn.v_proj.weight", kv, h);
    ask(k, &y->o, WEIGHTS_PANELS, "self_attn.o_proj.weight", h, q);
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

static void want_layer(struct want *k)
{
    const struct target_config *c = &k->t->config;
    struct layer *y = &k->t->layer[k->l];
    int64_t h = c->hidden, inter = c->inter;
    ask(k, &y->input_norm, WEIGHTS_ACT, "input_layernorm.weight", h, 0);
    want_attn(k);
    ask(k, &y->post_norm, WEIGHTS_ACT, "post_attention_layernorm.weight", h, 0);
    ask(k, &y->gate, WEIGHTS_PANELS, "mlp.gate_proj.weight", inter, h);
    ask(k, &y->up, WEIGHTS_PANELS, "mlp.up_proj.weight", inter, h);
    ask(k, &y->down, WEIGHTS_PANELS, "mlp.down_proj.weight", h, inter);
}

/* want_all lists every tensor of the checkpoint.  The head is lm_head.weight where
 * there is one and else the embedding, whatever config.json says. */
static void want_all(struct want *k, const struct st_model *m, enum target_head head)
{
    struct target *t = k->t;
    const struct target_config *c = &t->config;
    enum weights_form form = head == TARGET_LOGITS ? WEIGHTS_PANELS : WEIGHTS_ROWS;
    bool own = st_model_find(m, k->head) != NULL;
    weights_want(&k->w, &t->embed, WEIGHTS_ROWS, c->vocab, c->hidden,
                 "%sembed_tokens.weight", k->prefix);
    for (k->l = 0; k->l < c->layers; k->l++)
        want_layer(k);
    weights_want(&k->w, head == TARGET_LOGITS ? &t->norm : NULL, WEIGHTS_ACT, c->hidden,
                 0, "%snorm.weight", k->prefix);
    if (own)
        weights_want(&k->w, head ? &t->head : NULL, form, c->vocab, c->hidden, "%s",
                     k->head);
    else if (head == TARGET_LOGITS)
        weights_want(&k->w, &t->head, form, c->vocab, c->hidden,
                     "%sembed_tokens.weight", k->prefix);
}

static int open_rope(struct target *t, struct arena *a)
{
    const struct target_config *c = &t->config;
    struct rope r = {c->rope_theta, c->head_dim, c->rotary, c->scaling};
    return rope_open(&t->freq, a, t->dev, &r);
}

int target_load(struct target *t, const struct st_model *m, enum target_head head)
{
    struct want k = {
        .w.fp8 = t->config.fp8, .t = t, .prefix = "model.", .head = "lm_head.weight"};
    struct arena plan = arena_plan();
    int rc;
    want_all(&k, m, head);
    TRY_GOTO(rc, weights_match(&k.w, m), out);
    TRY_GOTO(rc, st_model_digest(m, &t->digest), out);
    TRY_GOTO(rc, weights_load(&k.w, t->dev, &plan), out);
    TRY_GOTO(rc, open_rope(t, &plan), out);
    TRY_GOTO(rc, arena_open(&t->arena, t->dev, "the target", plan.used), out);
    TRY_GOTO(rc, weights_load(&k.w, t->dev, &t->arena), out);
    TRY_GOTO(rc, open_rope(t, &t->arena), out);
    if (!t->head.data && head == TARGET_VOCABULARY)
        t->head = t->embed;
out:
    weights_drop(&k.w);
    return rc;
}
