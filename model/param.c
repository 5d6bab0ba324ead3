/* SPDX-License-Identifier: MIT */
/* param.c - the table is built from one list of the tensors of a layer. */
#include "param.h"

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "rng.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

struct widths {
    int64_t hidden, q, kv, head, inter;
};

/* add appends a tensor and its place; cols 0 is a vector. */
static void add(struct param_table *t, const char *name, int64_t rows, int64_t cols)
{
    struct param *p = &t->param[t->params++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->rank = cols ? 2 : 1;
    p->dim[0] = rows;
    p->dim[1] = cols;
    p->offset = t->count;
    int64_t n = rows * (cols ? cols : 1);
    t->trained += n;
    t->count += (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* add_layer appends the eleven tensors in the order of param.h's enum. */
static void add_layer(struct param_table *t, int64_t l, const struct widths *w)
{
    const struct {
        const char *name;
        int64_t rows, cols;
    } list[PARAM_PER_LAYER] = {
        [PARAM_INPUT_NORM] = {"input_layernorm", w->hidden, 0},
        [PARAM_Q] = {"self_attn.q_proj", w->q, w->hidden},
        [PARAM_K] = {"self_attn.k_proj", w->kv, w->hidden},
        [PARAM_V] = {"self_attn.v_proj", w->kv, w->hidden},
        [PARAM_O] = {"self_attn.o_proj", w->hidden, w->q},
        [PARAM_Q_NORM] = {"self_attn.q_norm", w->head, 0},
        [PARAM_K_NORM] = {"self_attn.k_norm", w->head, 0},
        [PARAM_POST_NORM] = {"post_attention_layernorm", w->hidden, 0},
        [PARAM_GATE] = {"mlp.gate_proj", w->inter, w->hidden},
        [PARAM_UP] = {"mlp.up_proj", w->inter, w->hidden},
        [PARAM_DOWN] = {"mlp.down_proj", w->hidden, w->inter},
    };
    for (int i = 0; i < PARAM_PER_LAYER; i++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.%s.weight", (int)l, list[i].name);
        add(t, name, list[i].rows, list[i].cols);
    }
}

int param_table(struct param_table *t, const struct drafter_config *c)
{
    const struct widths w = {.hidden = c->hidden,
                             .q = c->heads * c->head_dim,
                             .kv = c->kv_heads * c->head_dim,
                             .head = c->head_dim,
                             .inter = c->inter};
    *t = (struct param_table){0};
    t->param = mem_zero((size_t)param_layer(c->layers) + 1, sizeof *t->param);
    if (!t->param)
        return E_MEMORY;
    add(t, "fc.weight", w.hidden, c->taps * w.hidden);
    add(t, "hidden_norm.weight", w.hidden, 0);
    for (int64_t l = 0; l < c->layers; l++)
        add_layer(t, l, &w);
    add(t, "norm.weight", w.hidden, 0);
    return 0;
}

void param_drop(struct param_table *t)
{
    mem_free(t->param);
    *t = (struct param_table){0};
}

int64_t param_layer(int64_t l)
{
    return PARAM_GLOBALS + l * PARAM_PER_LAYER;
}

struct tensor param_view(const struct param_table *t, int64_t i, struct tensor flat)
{
    const struct param *p = &t->param[i];
    void *at = flat.data;
    if (at)
        at = (char *)at + (size_t)p->offset * dtype_size(flat.type);
    return tensor_of(at, flat.type, p->rank, p->dim);
}

/* One matrix to fill. */
struct filling {
    float *w;
    uint64_t key;
};

enum { GRAIN = 1 << 14, WORDS = 4 }; // a normal takes four words of the counter

static int fill_normal(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct filling *f = ctx;
    struct rng rng = {.key = f->key, .next = (uint64_t)begin * WORDS};
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        f->w[k] = (float)(0.02 * rng_normal(&rng));
    return 0;
}

void param_init(float *flat, const struct param_table *t, uint64_t seed,
                struct par *par)
{
    memset(flat, 0, (size_t)t->count * sizeof *flat);
    for (int64_t i = 0; i < t->params; i++) {
        const struct param *p = &t->param[i];
        float *w = flat + p->offset;
        uint64_t word[2] = {seed, hash_bytes(p->name, strlen(p->name))};
        struct filling f = {w, rng_key(word, 2)};
        if (p->rank == 2)
            par_for(par, p->dim[0] * p->dim[1], GRAIN, fill_normal, &f);
        for (int64_t k = 0; p->rank == 1 && k < p->dim[0]; k++)
            w[k] = 1.0f;
    }
}
