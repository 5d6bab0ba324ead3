/* SPDX-License-Identifier: MIT */
/* drafter.c - a drafter's memory: flat weights to train, packed ones to run.
 *
 * Trained weights lie in one allocation that the optimizer walks; a checkpoint that is
 * only run is packed for products, norms converted to the activation type. */
#include "drafter_parts.h"

#include "err.h"
#include "file.h"
#include "mem.h"
#include "rope.h"
#include "weights.h"

void drafter_views(struct drafter_weights *w, const struct param_table *t,
                   struct tensor flat)
{
    int64_t layers = (t->params - PARAM_GLOBALS) / PARAM_PER_LAYER;
    w->fc = param_view(t, PARAM_FC, flat);
    w->hidden_norm = param_view(t, PARAM_HIDDEN_NORM, flat);
    w->norm = param_view(t, t->params - 1, flat);
    for (int64_t l = 0; l < layers; l++)
        for (int i = 0; i < PARAM_PER_LAYER; i++)
            w->layer[l][i] = param_view(t, param_layer(l) + i, flat);
}

/* begin fills what a new and a loaded drafter have in common, but no memory of the
 * device. */
static int begin(struct drafter *m, struct dev *d, const struct drafter_config *c,
                 struct tensor embed, struct tensor head)
{
    *m = (struct drafter){.config = *c, .dev = d, .embed = embed, .head = head};
    TRY(config_drafter_check(c, NULL));
    if (embed.dim[0] != c->vocab || embed.dim[1] != c->hidden)
        return err_set(E_CONFIG,
                       "drafter: vocabulary %lld and hidden size %lld, the target's "
                       "embedding has %lld and %lld",
                       (long long)c->vocab, (long long)c->hidden,
                       (long long)embed.dim[0], (long long)embed.dim[1]);
    m->w = mem_zero(1, sizeof *m->w);
    return m->w ? param_table(&m->table, c) : E_MEMORY;
}

static int open_rope(struct drafter *m, struct arena *a)
{
    const struct drafter_config *c = &m->config;
    struct rope r = {
        .theta = c->rope_theta, .head = c->head_dim, .turned = c->head_dim};
    return rope_open(&m->freq, a, m->dev, &r);
}

/* carve_new makes flat and the frequencies in `a`. */
static int carve_new(struct drafter *m, struct arena *a)
{
    m->flat = arena_tensor(a, m->dev->act, T1(m->table.count));
    return open_rope(m, a);
}

int drafter_new(struct drafter *m, struct dev *d, const struct drafter_config *c,
                struct tensor embed, struct tensor head)
{
    struct arena plan = arena_plan();
    int rc = begin(m, d, c, embed, head);
    if (rc < 0)
        goto out;
    TRY_GOTO(rc, carve_new(m, &plan), out);
    TRY_GOTO(rc, arena_open(&m->arena, d, "the drafter's weights", plan.used), out);
    TRY_GOTO(rc, carve_new(m, &m->arena), out);
    drafter_views(m->w, &m->table, m->flat);
out:
    if (rc < 0)
        drafter_drop(m);
    return rc;
}

/* view_at is the tensor that parameter i fills when it is loaded. */
static struct tensor *view_at(struct drafter *m, int64_t i)
{
    struct drafter_weights *w = m->w;
    if (i == PARAM_FC)
        return &w->fc;
    if (i == PARAM_HIDDEN_NORM)
        return &w->hidden_norm;
    if (i == m->table.params - 1)
        return &w->norm;
    i -= PARAM_GLOBALS;
    return &w->layer[i / PARAM_PER_LAYER][i % PARAM_PER_LAYER];
}

/* match finds all parameters in the files. */
static int match(struct drafter *m, struct weights *w, const struct st_model *files)
{
    for (int64_t i = 0; i < m->table.params; i++) {
        const struct param *p = &m->table.param[i];
        weights_want(w, view_at(m, i), p->rank == 2 ? WEIGHTS_PANELS : WEIGHTS_ACT,
                     p->dim[0], p->rank == 2 ? p->dim[1] : 0, "%s", p->name);
    }
    return weights_match(w, files);
}

static int load(struct drafter *m, const struct st_model *files)
{
    struct arena plan = arena_plan();
    struct weights w = {0};
    int rc;
    TRY_GOTO(rc, match(m, &w, files), out);
    TRY_GOTO(rc, weights_load(&w, m->dev, &plan), out);
    TRY_GOTO(rc, open_rope(m, &plan), out);
    TRY_GOTO(rc, arena_open(&m->arena, m->dev, "the drafter", plan.used), out);
    TRY_GOTO(rc, weights_load(&w, m->dev, &m->arena), out);
    rc = open_rope(m, &m->arena);
out:
    weights_drop(&w);
    return rc;
}

int drafter_load(struct drafter *m, struct dev *d, const char *dir, struct tensor embed,
                 struct tensor head)
{
    struct drafter_config c;
    struct st_model files = {0};
    *m = (struct drafter){0};
    TRY(config_drafter(&c, dir));
    int rc = begin(m, d, &c, embed, head);
    if (rc < 0)
        goto out;
    TRY_GOTO(rc, st_model_open(&files, dir), out);
    rc = load(m, &files);
out:
    st_model_close(&files);
    if (rc < 0)
        drafter_drop(m);
    return rc;
}

int drafter_check(const char *dir, const struct target_config *target)
{
    struct st_model files = {0};
    struct weights w = {0};
    struct drafter m = {0};
    struct drafter_config c;
    int rc;
    TRY(config_drafter(&c, dir));
    TRY(config_drafter_check(&c, target));
    struct tensor embed = tensor_of(NULL, DT_BF16, T2(target->vocab, target->hidden));
    TRY_GOTO(rc, begin(&m, NULL, &c, embed, embed), out);
    TRY_GOTO(rc, st_model_open(&files, dir), out);
    rc = match(&m, &w, &files);
out:
    weights_drop(&w);
    st_model_close(&files);
    drafter_drop(&m);
    return rc;
}

void drafter_drop(struct drafter *m)
{
    arena_close(&m->arena);
    param_drop(&m->table);
    mem_free(m->w);
    *m = (struct drafter){0};
}
