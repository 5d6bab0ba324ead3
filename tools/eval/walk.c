/* SPDX-License-Identifier: MIT */
/* walk.c - waves of blocks over all documents of a row at once.
 *
 * A drafter step pays for the context of the whole row, so every unfinished run puts
 * its next AHEAD positions into the same step as anchors; the walk then goes through
 * what is known.  Near a run's end live decoding drafts shorter blocks, and in a
 * bidirectional block the missing masks change every slot: those anchors are computed
 * by themselves, with blocks of just that length, longest first. */
#include "walk.h"

#include <string.h>

#include "anchor.h"
#include "decode.h"
#include "err.h"
#include "mem.h"
#include "op.h"
#include "span.h"

enum { AHEAD = 4, UNKNOWN = -1 };

/* A run on its way: rows [begin, end) are its tokens, `at` the anchor reached. */
struct run {
    int64_t begin, end, limit, at;
    int64_t rounds;
};

/* ---- memory ---- */

static int open_plan(struct walk_plan *p, int64_t block)
{
    size_t n = (size_t)(WALK_ANCHORS * block) * sizeof(int32_t);
    int32_t **array[] = {&p->id, &p->at,  &p->lo,    &p->slide,
                         &p->hi, &p->row, &p->label, &p->hit};

    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        if (!(*array[i] = mem_alloc(n)))
            return E_MEMORY;
    p->weight = mem_alloc(n);
    return p->weight ? 0 : E_MEMORY;
}

static int open_arrays(struct walk *w)
{
    size_t n = (size_t)w->length * sizeof(int32_t);
    int32_t **array[] = {&w->pos, &w->lo, &w->hi, &w->known, &w->accepted};

    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        if (!(*array[i] = mem_alloc(n)))
            return E_MEMORY;
    return open_plan(&w->plan, w->block);
}

static int open_arenas(struct walk *w, bool fp8)
{
    struct dev *d = w->drafter.dev;
    int64_t s = w->length, k = w->drafter.config.taps, h = w->drafter.config.hidden;
    int64_t rows = WALK_ANCHORS * w->block;
    size_t in = arena_bytes(DT_BF16, T2(s, k * h));

    if (fp8)
        in += arena_bytes(DT_E4M3, T3(s, k, h)) + arena_bytes(DT_F32, T2(s, k));
    TRY(arena_open(&w->in, d, "aux", in));
    w->aux = arena_tensor(&w->in, DT_BF16, T2(s, k * h));
    if (fp8) {
        w->quant = arena_tensor(&w->in, DT_E4M3, T3(s, k, h));
        w->scale = arena_tensor(&w->in, DT_F32, T2(s, k));
    }
    return arena_open(&w->work, d, "step",
                      drafter_bytes(&w->drafter, s, rows, rows, false));
}

int walk_open(struct walk *w, const struct drafter *m, const struct target_config *t,
              int64_t length, bool fp8)
{
    *w = (struct walk){
        .drafter = *m, .block = m->config.block, .length = length, .target = t};
    int rc = open_arrays(w);
    if (rc == 0)
        rc = open_arenas(w, fp8);
    if (rc < 0)
        walk_close(w);
    return rc;
}

void walk_close(struct walk *w)
{
    struct walk_plan *p = &w->plan;
    void *owned[] = {p->id,  p->at,     p->lo,  p->slide, p->hi, p->row,   p->label,
                     p->hit, p->weight, w->pos, w->lo,    w->hi, w->known, w->accepted};

    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        mem_free(owned[i]);
    arena_close(&w->work);
    arena_close(&w->in);
    *w = (struct walk){0};
}

/* ---- one step ---- */

int walk_load(struct walk *w, const struct row *r)
{
    struct dev *d = w->drafter.dev;

    span_docs(w->pos, w->lo, w->hi, r->text.doc, w->length);
    if (!r->scale)
        return dev_put(d, w->aux.data, r->aux, tensor_bytes(&w->aux));
    TRY(dev_put(d, w->quant.data, r->aux, tensor_bytes(&w->quant)));
    TRY(dev_put(d, w->scale.data, r->scale, tensor_bytes(&w->scale)));
    int64_t k = r->taps, h = r->width / r->taps;
    op_dequant(d, tensor_view(w->aux, T3(w->length, k, h)), w->quant, w->scale);
    return dev_sync(d);
}

int walk_lay(struct walk *w, const struct anchor_row *text, int64_t block)
{
    struct walk_plan *p = &w->plan;
    const struct drafter_config *c = &w->drafter.config;

    w->drafter.config.block = block;
    for (int64_t r = 0; r < p->anchors * block; r++)
        p->id[r] = r % block ? (int32_t)c->mask_id : text->ids[p->anchor[r / block]];
    span_blocks(p->at, p->lo, p->slide, p->hi, p->anchor, p->anchors, block, c->window,
                w->pos);
    p->labelled = anchor_labels(p->row, p->label, p->weight, p->anchor, p->anchors,
                                block, 0, text);
    return p->labelled < 0 ? (int)p->labelled : 0;
}

int walk_step(struct walk *w)
{
    struct walk_plan *p = &w->plan;
    struct tensor none = {0};
    struct drafter_result result = {.hit = p->hit};
    int32_t length[WALK_ANCHORS];
    struct drafter_row row = {.aux = w->aux,
                              .context = w->length,
                              .pos = w->pos,
                              .blocks = p->anchors,
                              .id = p->id,
                              .at = p->at,
                              .lo = p->lo,
                              .slide = p->slide,
                              .hi = p->hi,
                              .labelled = p->labelled,
                              .row = p->row,
                              .label = p->label,
                              .weight = p->weight};

    TRY(drafter_step(&w->drafter, &row, none, none, &result, &w->work));
    anchor_accepted(p->accepted, length, p->hit, p->row, p->labelled, p->anchors,
                    w->drafter.config.block);
    return 0;
}

/* ---- the walk ---- */

/* live_limit is where live decoding would have had to end: a run that ends with a stop
 * token was cut by it, any other by the limit of new tokens. */
static int64_t live_limit(const struct walk *w, const struct anchor_row *x,
                          const struct run *r)
{
    bool stopped = !w->ignore_stop && decode_stops(w->target, x->ids[r->end - 1]);
    int64_t n = r->end - r->begin;
    return r->begin + (stopped && w->tokens > n ? w->tokens : n);
}

/* find_runs lists the supervised runs; returns how many. */
static int64_t find_runs(const struct walk *w, const struct anchor_row *x,
                         struct run *run)
{
    int64_t runs = 0, s = 0;

    while (s < x->length) {
        if (x->doc[s] < 0 || !x->mask[s]) {
            s++;
            continue;
        }
        struct run r = {.begin = s, .at = s};
        while (s < x->length && x->doc[s] == x->doc[r.begin] && x->mask[s])
            s++;
        r.end = s;
        r.limit = live_limit(w, x, &r);
        run[runs++] = r;
    }
    return runs;
}

/* left is how many tokens live decoding would still emit behind an anchor. */
static int64_t left(const struct run *r, int64_t at)
{
    return at + 1 < r->end ? r->limit - 1 - at : 0;
}

static void advance(struct walk *w, struct run *r)
{
    while (left(r, r->at) > 0) {
        int32_t known = left(r, r->at) == 1 ? 0 : w->known[r->at];
        if (known == UNKNOWN)
            return;
        w->accepted[r->begin + r->rounds++] = known;
        r->at += known + 1;
    }
}

/* enlist adds anchors of a run whose blocks have exactly `block` slots. */
static void enlist(const struct walk *w, struct walk_plan *p, const struct run *r,
                   int64_t block)
{
    for (int64_t a = r->at; a < r->at + AHEAD && p->anchors < WALK_ANCHORS; a++) {
        int64_t n = left(r, a);
        if ((n < w->block ? n : w->block) != block)
            return;
        if (w->known[a] == UNKNOWN)
            p->anchor[p->anchors++] = (int32_t)a;
    }
}

/* walk_blocks goes on until no run waits for a block of this length. */
static int walk_blocks(struct walk *w, const struct anchor_row *x, struct run *run,
                       int64_t runs, int64_t block)
{
    struct walk_plan *p = &w->plan;

    for (;;) {
        p->anchors = 0;
        for (int64_t i = 0; i < runs; i++) {
            advance(w, &run[i]);
            enlist(w, p, &run[i], block);
        }
        if (p->anchors == 0)
            return 0;
        TRY(walk_lay(w, x, block));
        TRY(walk_step(w));
        for (int64_t j = 0; j < p->anchors; j++)
            w->known[p->anchor[j]] = p->accepted[j];
    }
}

static int give_runs(const struct walk *w, const struct anchor_row *x,
                     const struct run *run, int64_t runs, walk_give *give, void *ctx)
{
    for (int64_t i = 0; i < runs; i++) {
        const struct run *r = &run[i];
        const int64_t *source = x->source + (int64_t)x->doc[r->begin] * 3;
        struct walk_run out = {.file = source[0],
                               .record = source[1],
                               .anchor = source[2] + w->pos[r->begin],
                               .ids = x->ids + r->begin,
                               .n = r->end - r->begin,
                               .accepted = w->accepted + r->begin,
                               .rounds = r->rounds};
        TRY(give(ctx, &out));
    }
    return 0;
}

int walk_row(struct walk *w, const struct row *r, walk_give *give, void *ctx)
{
    const struct anchor_row *x = &r->text;
    struct run *run = mem_alloc((size_t)x->length * sizeof *run);
    int rc = run ? 0 : E_MEMORY;

    if (rc == 0)
        rc = walk_load(w, r);
    int64_t runs = rc == 0 ? find_runs(w, x, run) : 0;
    for (int64_t s = 0; s < x->length; s++)
        w->known[s] = UNKNOWN;
    for (int64_t block = w->block; rc == 0 && block > 1; block--)
        rc = walk_blocks(w, x, run, runs, block);
    for (int64_t i = 0; i < runs; i++)
        advance(w, &run[i]);
    if (rc == 0)
        rc = give_runs(w, x, run, runs, give, ctx);
    mem_free(run);
    return rc;
}
