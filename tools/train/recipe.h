/* SPDX-License-Identifier: MIT */
/* recipe.h - what a run is: the drafter's shape and how it is trained.
 *
 * The struct holds the options as given; recipe_shape and recipe_steps put what follows
 * from the target, the shards and the block size in place of what was left open.  What
 * is recorded is thus the resolved number, never the way it was asked for, and the
 * record given back as options makes the same run. */
#ifndef RECIPE_H
#define RECIPE_H

#include <stdint.h>

#include "config.h"

enum { RECIPE_BLOCK_MAX = 64 };

struct recipe {
    /* the drafter */
    int64_t layers, inter, heads, kv_heads, head_dim; /* 0: the target's; layers 5 */
    int64_t block, mask_id;                           /* mask_id -1: not given */
    int64_t window, sliding; /* 0: none slide; sliding -1: all layers but the last */
    const char *causal;      /* "sliding", "all", "none" */
    double rope_theta;       /* 0: the target's */
    /* training */
    int64_t anchors, accumulate, seed;
    int64_t steps, epochs; /* 0: not given */
    double gamma;          /* below 0: by block */
    double lr, beta1, beta2, eps, decay, clip;
    double warmup; /* below 1: share of the steps; else steps */
};

/* recipe_check refuses values that no run can have (E_USAGE naming the option). */
int recipe_check(const struct recipe *r);

/* recipe_shape resolves the drafter's shape and writes it to c, with K taps of the
 * target's layers.  E_CONFIG when it does not fit the target. */
int recipe_shape(struct recipe *r, struct drafter_config *c,
                 const struct target_config *t, const int64_t *tap, int taps);

/* recipe_steps resolves the number of steps and warm-up steps for an epoch of `rows`
 * rows; rows -1 is a stream: one epoch, of which --steps must say how much to use.
 * Whole steps only: rows that do not fill the last one are left out. */
int recipe_steps(struct recipe *r, int64_t rows);

/* recipe_differs compares two records (opt_record's "name=value ...") and writes the
 * first option that is not the same into name; 0 when all are. */
int recipe_differs(char *name, int64_t size, const char *was, const char *now);

#endif
