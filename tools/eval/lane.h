/* SPDX-License-Identifier: MIT */
/* lane.h - all that one thread needs to decode one sequence after another.
 *
 * Matrices of one sequence are too small to share among threads, so each lane decodes
 * prompts of its own: with its own device handle, caches and working memory, over
 * weights that all lanes share.  What a lane computes for a sequence depends on that
 * sequence alone. */
#ifndef LANE_H
#define LANE_H

#include <stdint.h>

#include "cache.h"
#include "drafter.h"
#include "target.h"

enum {
    LANE_ROWS = 128 /* tokens of a prompt that are computed at once */
};

struct lane {
    struct dev *dev;
    struct target *target;  /* this lane's view of the shared weights */
    struct drafter drafter; /* likewise; of whichever drafter is in use */
    struct cache cache;     /* of the target: the sequence so far */
    struct cache context;   /* of the drafter */
    int64_t block;          /* rows of a verify pass, at most; >= 1 */
    struct arena work, out;
    struct tensor aux;      /* [LANE_ROWS or block, K*H] bf16, of the last pass */
    struct tensor logits;   /* [block, V] */
    struct tensor best;     /* i32 [block] */
    struct tensor single;   /* f32 [1, V] */
    int32_t *pos, *lo, *hi; /* [LANE_ROWS or block] */
};

/* lane_open makes a lane for sequences of up to `capacity` tokens.  The drafter gives
 * taps, block and the shape of the context; NULL: plain decoding only.  par (NULL:
 * the calling thread alone) works on one sequence; all pointers are borrowed. */
int lane_open(struct lane *l, const char *device, struct par *par,
              struct target *target, const struct drafter *drafter, int64_t capacity);
void lane_close(struct lane *l);

/* lane_use makes the lane draft with another drafter of the same shape, or, NULL, keep
 * no taps. */
void lane_use(struct lane *l, const struct drafter *drafter);

/* lane_reset forgets the sequence. */
void lane_reset(struct lane *l);

/* lane_forward appends n ids to the sequence in one pass of the target, keeping their
 * taps in l->aux when a drafter is there, and the logits of the last `logits` of them
 * (0 .. block). */
int lane_forward(struct lane *l, const int32_t *ids, int64_t n, int64_t logits);

/* lane_best copies the argmax of each of the last pass's n logits to the host. */
int lane_best(struct lane *l, int32_t *best, int64_t n);

/* lane_logits copies the first of the last pass's logits to the host, [V] f32. */
int lane_logits(struct lane *l, float *logits);

/* lane_feed gives the first n taps of the last pass to the drafter's context. */
int lane_feed(struct lane *l, int64_t n);

#endif
