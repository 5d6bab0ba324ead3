/* SPDX-License-Identifier: MIT */
/* test_walk.c - the walk over stored states against live drafting, and faults it finds.
 *
 * No target is needed: a text is grown by decoding.  The drafter (random weights)
 * proposes as in serving, a pattern says how many proposals are right, those become the
 * text, then comes a token that differs from the next proposal.  So the accepted counts
 * of every round are known, and the walk must find them from text and states alone.
 * Each planted fault (labels, positions, RoPE, taps, masks) changes some count. */
#include <string.h>

#include "tools/eval/decode.h"
#include "kit.h"
#include "kit_model.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "rng.h"
#include "tools/eval/walk.h"

enum { H = 64, K = 2, B = 8, V = 96, MASK = 94, STOP = 95, S = 640, LONG = 60 };
enum { DOCS = 2 + 16 + 16 };

/* A document of the row: rows [begin, end), the first anchor, the limit of new tokens,
 * and after how many a stop token ends it (0: none does). */
struct doc {
    int64_t begin, end, anchor, tokens, stop;
    int32_t accepted[LONG];
    int64_t rounds;
};

struct world {
    struct dev *dev;
    struct tensor embed, head, aux;
    struct drafter m;
    struct target_config target;
    struct arena work;
    struct doc doc[DOCS];
    int32_t ids[S], docs[S];
    uint8_t mask[S];
    int64_t source[DOCS * 3];
};

/* ---- a drafter ---- */

static void random_f32(struct tensor t, uint64_t key, float scale)
{
    struct rng r = rng_new(key);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        ((float *)t.data)[i] = scale * (float)rng_normal(&r);
}

static struct drafter_config shape(void)
{
    struct drafter_config c = {.hidden = H,
                               .inter = 96,
                               .layers = 2,
                               .heads = 2,
                               .kv_heads = 1,
                               .head_dim = 32,
                               .vocab = V,
                               .max_positions = 512,
                               .eps = 1e-6,
                               .rope_theta = 10000,
                               .block = B,
                               .mask_id = MASK,
                               .tap = {0, 1},
                               .taps = K,
                               .target_layers = 4,
                               .sliding = {true, false},
                               .window = 20,
                               .causal = -1,
                               .stop = -1};
    return c;
}

/* Weights far from the small ones of param_init, so that attention matters. */
static void drafter_make(struct drafter *m, const struct world *w,
                         const struct drafter_config *c)
{
    kit_ok(drafter_new(m, w->dev, c, w->embed, w->head));
    float *flat = m->flat.data;
    param_init(flat, &m->table, 5, NULL);
    for (int64_t i = 0; i < m->table.params; i++) {
        const struct param *p = &m->table.param[i];
        for (int64_t j = 0; p->rank == 2 && j < p->dim[0] * p->dim[1]; j++)
            flat[p->offset + j] *= 8;
    }
}

/* ---- live drafting ---- */

static struct tensor states(const struct world *w, int64_t row, int64_t n)
{
    return tensor_rows(w->aux, row, n);
}

/* grow decodes one document: the text behind its first anchor follows the proposals as
 * far as the pattern says. */
static void grow(struct world *w, struct doc *d, uint64_t key)
{
    struct cache context;
    struct rng r = rng_new(key);
    int32_t pos[S], id[B], slot[B], mask = MASK;
    int64_t prompt = d->anchor - d->begin, a = d->anchor, limit = a + d->tokens;

    kit_ok(cache_open(&context, w->dev,
                      &(struct cache_form){
                          .layers = 2, .capacity = S, .kv_heads = 1, .head_dim = 32}));
    for (int64_t s = d->begin; s <= a; s++)
        w->ids[s] = (int32_t)rng_below(&r, MASK);
    for (int32_t i = 0; i < S; i++)
        pos[i] = i;
    while (a + 1 < limit) {
        int64_t v = limit - 1 - a < B ? limit - 1 - a : B, from = context.len;
        int64_t n = a - d->begin - from;
        if (n > 0)
            kit_ok(drafter_extend(&w->m, &context, states(w, d->begin + from, n),
                                  pos + from, &w->work));
        id[0] = w->ids[a];
        for (int64_t k = 1; k < v; k++)
            id[k] = mask;
        kit_ok(drafter_propose(&w->m, &context, id, v, a - d->begin, slot, &w->work));
        int64_t accepted = (int64_t)rng_below(&r, (uint64_t)v);
        for (int64_t k = 1; k <= accepted; k++)
            w->ids[a + k] = slot[k];
        int32_t next = accepted + 1 < v ? (slot[accepted + 1] + 7) % MASK : 3;
        d->accepted[d->rounds++] = (int32_t)accepted;
        a += accepted + 1;
        w->ids[a] = next;
        if (d->stop && a - d->anchor >= d->stop) {
            w->ids[a] = STOP;
            break;
        }
    }
    d->end = a + 1;
    for (int64_t s = d->begin; s < d->end; s++) {
        w->docs[s] = (int32_t)(d - w->doc);
        w->mask[s] = s >= d->begin + prompt;
    }
    cache_close(&context);
}

static void open_states(struct world *w)
{
    struct tensor f = kit_tensor_new(DT_F32, T2(S, K * H));
    w->aux = kit_tensor_new(DT_BF16, T2(S, K * H));
    random_f32(f, 3, 1);
    op_convert(w->dev, w->aux, f);
    kit_tensor_free(&f);
}

/* Two long documents; short ones, whose blocks are cut by the limit; and such that a
 * stop token ends early, whose last blocks are as long as if it had not. */
static void lay_out(struct doc *d, int64_t i, int64_t at)
{
    *d = (struct doc){.begin = at};
    d->anchor = at + (i < 2 ? 9 + 21 * i : 4 + i % 3);
    d->tokens = i < 2 ? 50 : i < 18 ? 2 + i % 8 : LONG;
    d->stop = i < 18 ? 0 : 1 + i % 8;
}

static void world_open(struct world *w)
{
    struct drafter_config c = shape();

    memset(w, 0, sizeof *w);
    kit_ok(dev_open(&w->dev, "cpu", NULL));
    w->embed = kit_tensor_new(DT_F32, T2(V, H));
    w->head = kit_tensor_new(DT_F32, T2(V, H));
    random_f32(w->embed, 1, 1);
    random_f32(tensor_rows(w->head, 0, MASK), 2, 1);
    open_states(w);
    drafter_make(&w->m, w, &c);
    kit_arena(&w->work, w->dev, drafter_decode_bytes(&w->m, S));
    w->target = (struct target_config){.vocab = V, .stop = {STOP}, .stops = 1};

    memset(w->docs, 0xff, sizeof w->docs);
    for (int64_t i = 0, at = 0; i < DOCS; i++) {
        struct doc *d = &w->doc[i];
        lay_out(d, i, at);
        grow(w, d, (uint64_t)i + 10);
        at = d->end;
        ck_assert_int_le(at, S);
        w->source[i * 3 + 1] = DOCS - i;
        w->source[i * 3 + 2] = 100 * i;
    }
}

static void world_close(struct world *w)
{
    drafter_drop(&w->m);
    arena_close(&w->work);
    kit_tensor_free(&w->embed);
    kit_tensor_free(&w->head);
    kit_tensor_free(&w->aux);
    dev_close(w->dev);
}

static struct row world_row(const struct world *w)
{
    return (struct row){
        .text = {S, w->ids, w->mask, w->docs, w->source, DOCS},
        .aux = w->aux.data,
        .width = K * H,
    };
}

/* ---- the walk finds what was live ---- */

struct expected {
    const struct world *w;
    int64_t runs;
};

static int same_run(void *ctx, const struct walk_run *r)
{
    struct expected *e = ctx;
    const struct doc *d = &e->w->doc[e->runs];

    ck_assert_int_eq(r->record, DOCS - e->runs);
    ck_assert_int_eq(r->anchor, 100 * e->runs + d->anchor - d->begin);
    ck_assert_int_eq(r->n, d->end - d->anchor);
    ck_assert_int_eq(r->rounds, d->rounds);
    kit_same("accepted", r->accepted, d->accepted,
             (size_t)d->rounds * sizeof *d->accepted);
    e->runs++;
    return 0;
}

static void walk_begin(struct walk *k, const struct world *w, const struct drafter *m)
{
    kit_ok(walk_open(k, m, &w->target, S, false));
    k->tokens = LONG;
}

START_TEST(rounds_equal_live)
{
    struct world w;
    struct walk k;

    world_open(&w);
    walk_begin(&k, &w, &w.m);
    struct row row = world_row(&w);
    struct expected e = {&w, 0};
    kit_ok(walk_row(&k, &row, same_run, &e));
    ck_assert_int_eq(e.runs, DOCS);
    walk_close(&k);
    world_close(&w);
}
END_TEST

/* ---- faults ---- */

typedef void spoil_fn(struct walk *k, const struct world *w);

/* find_fault walks all documents, one anchor a step, with a plan spoiled; returns how
 * many rounds came out as live before the first that did not, or -1. */
static int64_t find_fault(const struct world *w, struct walk *k, const struct row *row,
                          spoil_fn *spoil)
{
    int64_t good = 0;

    kit_ok(walk_load(k, row));
    for (int i = 0; i < DOCS; i++) {
        const struct doc *d = &w->doc[i];
        int64_t a = d->anchor, limit = d->anchor + d->tokens;
        for (int64_t j = 0; j < d->rounds; j++, good++) {
            int64_t v = limit - 1 - a < B ? limit - 1 - a : B;
            k->plan.anchors = 1;
            k->plan.anchor[0] = (int32_t)a;
            k->plan.accepted[0] = 0;
            if (v > 1) {
                kit_ok(walk_lay(k, &row->text, v));
                if (spoil)
                    spoil(k, w);
                kit_ok(walk_step(k));
            }
            if (k->plan.accepted[0] != d->accepted[j])
                return good;
            a += d->accepted[j] + 1;
        }
    }
    return -1;
}

static void label_of_next(struct walk *k, const struct world *w)
{
    struct walk_plan *p = &k->plan;
    for (int64_t i = 0; i < p->labelled; i++)
        p->label[i] = w->ids[p->anchor[0] + p->row[i] + 1];
}

static void see_anchor(struct walk *k, const struct world *w)
{
    (void)w;
    for (int64_t r = 0; r < k->drafter.config.block; r++)
        k->plan.hi[r]++;
}

static void see_neighbour(struct walk *k, const struct world *w)
{
    for (int64_t r = 0; r < k->drafter.config.block; r++)
        if (k->plan.lo[r] >= w->doc[1].begin)
            k->plan.lo[r]--;
}

static void position_of_next(struct walk *k, const struct world *w)
{
    (void)w;
    for (int64_t r = 0; r < k->drafter.config.block; r++)
        k->plan.at[r]++;
}

static void no_mask_tokens(struct walk *k, const struct world *w)
{
    (void)w;
    for (int64_t r = 1; r < k->drafter.config.block; r++)
        k->plan.id[r] = k->plan.id[0];
}

static const struct {
    const char *name;
    spoil_fn *spoil;
} spoiled[] = {{"labels shifted by one", label_of_next},
               {"anchor's own states visible", see_anchor},
               {"the document before visible", see_neighbour},
               {"positions shifted by one", position_of_next},
               {"anchor repeated instead of masks", no_mask_tokens}};

START_TEST(spoiled_plans_are_found)
{
    struct world w;
    struct walk k;

    world_open(&w);
    struct row row = world_row(&w);
    walk_begin(&k, &w, &w.m);
    ck_assert_int_eq(find_fault(&w, &k, &row, NULL), -1);
    for (size_t i = 0; i < sizeof spoiled / sizeof *spoiled; i++)
        ck_assert_msg(find_fault(&w, &k, &row, spoiled[i].spoil) >= 0, "not found: %s",
                      spoiled[i].name);
    walk_close(&k);
    world_close(&w);
}
END_TEST

/* A drafter whose configuration differs from the one that drafted. */
static void expect_other(const struct world *w, const struct drafter_config *c,
                         const char *what)
{
    struct drafter m;
    struct walk k;
    struct row row = world_row(w);

    drafter_make(&m, w, c);
    walk_begin(&k, w, &m);
    ck_assert_msg(find_fault(w, &k, &row, NULL) >= 0, "not found: %s", what);
    walk_close(&k);
    drafter_drop(&m);
}

START_TEST(other_configurations_are_found)
{
    struct world w;
    struct drafter_config c;

    world_open(&w);
    c = shape();
    c.rope_theta = 20000;
    expect_other(&w, &c, "another base of RoPE");
    c = shape();
    c.causal = 0;
    expect_other(&w, &c, "sliding layer bidirectional");
    c = shape();
    c.causal = 1;
    expect_other(&w, &c, "full layer causal");
    c = shape();
    c.window = 19;
    expect_other(&w, &c, "window shorter by one");
    c = shape();
    c.mask_id = MASK - 1;
    expect_other(&w, &c, "another mask token");
    world_close(&w);
}
END_TEST

START_TEST(swapped_taps_are_found)
{
    struct world w;
    struct walk k;

    world_open(&w);
    uint16_t *aux = w.aux.data;
    for (int64_t s = 0; s < S; s++)
        for (int64_t i = 0; i < H; i++) {
            uint16_t t = aux[s * K * H + i];
            aux[s * K * H + i] = aux[s * K * H + H + i];
            aux[s * K * H + H + i] = t;
        }
    struct row row = world_row(&w);
    walk_begin(&k, &w, &w.m);
    ck_assert_int_ge(find_fault(&w, &k, &row, NULL), 0);
    walk_close(&k);
    world_close(&w);
}
END_TEST

KIT_MAIN("walk", rounds_equal_live, spoiled_plans_are_found,
         other_configurations_are_found, swapped_taps_are_found)
