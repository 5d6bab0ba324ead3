/* SPDX-License-Identifier: MIT */
/* trial.c - draws a drafter, a target's matrices and a row, and takes steps with them.
 */
#include "trial.h"

#include "err.h"
#include "mem.h"
#include "op.h"
#include "rng.h"

#include <math.h>
#include <string.h>

enum { PROMPT = 3 }; // tokens that are not supervised, as a conversation begins

static const double sigma = 0.02; // of matrices, as new drafters have

/* ---- shapes ---- */

struct drafter_config trial_published(int taps)
{
    struct drafter_config c = {.hidden = 5120,
                               .inter = 17408,
                               .layers = 5,
                               .heads = 32,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .vocab = 248320,
                               .max_positions = 262144,
                               .eps = 1e-6,
                               .rope_theta = 1e7,
                               .block = 16,
                               .mask_id = 248070,
                               .taps = taps,
                               .target_layers = 64,
                               .causal = -1,
                               .stop = -1};
    for (int i = 0; i < taps; i++)
        c.tap[i] = 1 + 60 * i / (taps - 1);
    return c;
}

struct drafter_config trial_small(int taps)
{
    struct drafter_config c = trial_published(taps);
    c.hidden = 128;
    c.inter = 352;
    c.layers = 2;
    c.heads = 4;
    c.kv_heads = 2;
    c.head_dim = 32;
    c.vocab = 1024;
    c.mask_id = c.vocab - 1;
    return c;
}

/* ---- drawing ---- */

static uint64_t key_of(uint64_t seed, uint64_t what)
{
    const uint64_t word[] = {seed, what};
    return rng_key(word, 2);
}

/* carve_frozen makes embedding and head in bf16, as targets are stored. */
static void carve_frozen(struct arena *a, const struct drafter_config *c,
                         struct tensor *embed, struct tensor *head)
{
    *embed = arena_tensor(a, DT_BF16, T2(c->vocab, c->hidden));
    *head = arena_tensor(a, DT_BF16, T2(c->vocab, c->hidden));
}

/* draw_weights: matrices normal, norms 1, gaps 0, as param_init has them. */
static void draw_weights(struct trial *t, uint64_t seed)
{
    const struct param_table *table = &t->room.drafter.table;
    op_fill(t->dev, t->room.optim.master, 0);
    for (int64_t i = 0; i < table->params; i++) {
        struct tensor w = param_view(table, i, t->room.optim.master);
        if (w.rank == 2)
            op_normal(t->dev, w, key_of(seed, 16 + (uint64_t)i), (float)sigma);
        else
            op_fill(t->dev, w, 1);
    }
    optimizer_round(&t->room.optim);
}

static int draw_row(struct trial *t, uint64_t seed)
{
    struct batch *b = &t->room.batch;
    int64_t n = b->length;
    struct rng r = rng_new(key_of(seed, 3));
    uint8_t *mask = (uint8_t *)(t->text + 2 * n);
    for (int64_t i = 0; i < n; i++) {
        t->text[i] = (int32_t)rng_below(&r, (uint64_t)b->vocab);
        mask[i] = i >= PROMPT;
    }
    const int64_t source[3] = {0};
    const struct anchor_row row = {.length = n,
                                   .ids = t->text,
                                   .mask = mask,
                                   .doc = t->text + n,
                                   .source = source,
                                   .docs = 1};
    TRY(batch_lay(b, &t->row, &row, key_of(seed, 4)));
    if (t->row.blocks == 0)
        return err_set(E_CONFIG, "a row of %lld tokens has no anchor", (long long)n);
    t->row.aux = b->states;
    op_normal(t->dev, b->states, key_of(seed, 5), 1);
    return 0;
}

/* ---- opening ---- */

static int open_all(struct trial *t, const struct trial_shape *s, struct log *log)
{
    static const struct adamw base = {.beta1 = 0.9F, .beta2 = 0.999F, .eps = 1e-8F};
    struct arena plan = arena_plan();
    struct tensor embed, head;
    carve_frozen(&plan, &s->config, &embed, &head);
    const struct plan_for ask = {.dev = t->dev,
                                 .shape = {.config = &s->config,
                                           .length = s->length,
                                           .anchors = s->anchors,
                                           .seed = (int64_t)s->seed,
                                           .gamma = 7},
                                 .vocabulary = plan.used};
    TRY(arena_open(&t->frozen, t->dev, "the target's embedding and head", plan.used));
    carve_frozen(&t->frozen, &s->config, &embed, &head);
    op_normal(t->dev, embed, key_of(s->seed, 1), (float)sigma);
    op_normal(t->dev, head, key_of(s->seed, 2), (float)sigma);
    TRY(room_open(&t->room, &ask, embed, head, &base, 1, log));
    draw_weights(t, s->seed);
    t->text = mem_zero((size_t)(3 * s->length), sizeof *t->text);
    if (!t->text)
        return E_MEMORY;
    TRY(draw_row(t, s->seed));
    return dev_sync(t->dev);
}

int trial_open(struct trial *t, struct dev *d, const struct trial_shape *s,
               struct log *log)
{
    *t = (struct trial){.dev = d};
    int rc = open_all(t, s, log);
    if (rc < 0)
        trial_close(t);
    return rc;
}

void trial_close(struct trial *t)
{
    room_close(&t->room);
    arena_close(&t->frozen);
    mem_free(t->text);
    *t = (struct trial){0};
}

/* ---- steps ---- */

int trial_forward(struct trial *t)
{
    return drafter_step(&t->room.drafter, &t->row, (struct tensor){0},
                        (struct tensor){0}, &t->result, &t->room.work);
}

int trial_step(struct trial *t)
{
    op_fill(t->dev, t->room.optim.grads, 0);
    return drafter_step(&t->room.drafter, &t->row, t->room.optim.grads,
                        (struct tensor){0}, &t->result, &t->room.work);
}

int trial_norm(struct trial *t, double *norm)
{
    double sum;
    op_fill(t->dev, t->room.optim.sum, 0);
    op_sumsq(t->dev, t->room.optim.sum, t->room.optim.grads);
    TRY(dev_get(t->dev, &sum, t->room.optim.sum.data, sizeof sum));
    *norm = sqrt(sum) / t->result.weight;
    return 0;
}

void trial_chance(const struct trial *t, double *loss, double *band)
{
    const struct drafter_config *c = &t->room.drafter.config;
    double s2 = sigma * sigma * (double)c->hidden, sum = 0, squares = 0;
    for (int64_t i = 0; i < t->row.labelled; i++) {
        double w = (double)t->row.weight[i];
        sum += w;
        squares += w * w;
    }
    *loss = log((double)c->vocab) + s2 / 2;
    *band = 5 * sqrt(s2 * squares) / sum + 5 * sqrt(expm1(s2) / (double)c->vocab);
}

double trial_flop(const struct trial *t)
{
    const struct drafter_config *c = &t->room.drafter.config;
    double h = (double)c->hidden, head = (double)c->head_dim,
           s = (double)t->row.context;
    double q = (double)(t->row.blocks * c->block), r = (double)t->row.labelled;
    double kv = 2 * h * (double)c->kv_heads * head;
    double block = 2 * h * (double)c->heads * head + kv + 3 * h * (double)c->inter;
    double fused = 4 * s * h * h * (double)c->taps; // no gradient of hidden states
    return fused + (double)c->layers * 6 * (q * block + s * kv) +
           4 * r * h * (double)c->vocab;
}
