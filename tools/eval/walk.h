/* SPDX-License-Identifier: MIT */
/* walk.h - live decoding replayed from stored hidden states, without the target.
 *
 * Over text that the target itself chose greedily, the rounds of speculative decoding
 * are known without running the target: from anchor a the drafter's leading right slots
 * are accepted, the next token of the text is the target's own, and a + accepted + 1 is
 * the next anchor.  The walk computes them with the very code of training (spans,
 * anchors, labels, drafter_step on packed rows), decode.c with that of serving
 * (caches): the counts agree round by round, or labels, taps, positions or masks are
 * wrong in one of the two. */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "drafter.h"
#include "row.h"
#include "target.h"

enum {
    WALK_ANCHORS = 64 /* of one step, at most */
};

/* What one step asks: blocks of a row, as training lays them out. */
struct walk_plan {
    int64_t anchors;
    int32_t anchor[WALK_ANCHORS];       /* ascending rows; set by the caller */
    int32_t accepted[WALK_ANCHORS];     /* result */
    int32_t *id, *at, *lo, *slide, *hi; /* [anchors * block] */
    int64_t labelled;
    int32_t *row, *label, *hit; /* [anchors * (block - 1)] */
    float *weight;
};

struct walk {
    struct drafter drafter; /* a view; config.block is that of the step */
    int64_t block;          /* B */
    int64_t length;         /* S */
    int64_t tokens;         /* the live run's limit of new tokens, and whether it ... */
    bool ignore_stop; /* ... went on behind stop tokens: they cut the last blocks */
    const struct target_config *target;
    struct arena work, in;
    struct tensor aux, quant, scale;
    struct walk_plan plan;
    int32_t *pos, *lo, *hi, *known; /* [S] */
    int32_t *accepted;              /* [S] */
};

/* walk_open makes room for rows of `length` tokens, with e4m3 states when fp8. */
int walk_open(struct walk *w, const struct drafter *m, const struct target_config *t,
              int64_t length, bool fp8);
void walk_close(struct walk *w);

/* walk_load brings a row's states to the device and its positions to w->pos. */
int walk_load(struct walk *w, const struct row *r);

/* walk_lay fills the plan for its anchors and blocks of `block` slots; walk_step runs
 * the drafter over it and fills plan.accepted. */
int walk_lay(struct walk *w, const struct anchor_row *text, int64_t block);
int walk_step(struct walk *w);

/* One supervised run of tokens: what live decoding would have emitted.  Borrowed. */
struct walk_run {
    int64_t file, record; /* of the source */
    int64_t anchor;       /* the first anchor, counted in the record's tokens */
    const int32_t *ids;   /* [n] the run */
    int64_t n;
    const int32_t *accepted; /* [rounds] */
    int64_t rounds;
};
typedef int walk_give(void *ctx, const struct walk_run *run);

/* walk_row walks all supervised runs of a row, in order, and gives each. */
int walk_row(struct walk *w, const struct row *r, walk_give *give, void *ctx);

#endif
