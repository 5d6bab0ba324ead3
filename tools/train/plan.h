/* SPDX-License-Identifier: MIT */
/* plan.h - the device memory of a run, before any of it is asked for.
 *
 * One line per arena, counted by the code that carves it.  Training checks that what
 * the device handed out is the plan, to the byte. */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>

#include "batch.h"
#include "buf.h"
#include "recipe.h"

enum { PLAN_LINES = 8 };

struct plan {
    struct plan_line {
        const char *name, *what;
        size_t bytes;
    } line[PLAN_LINES];
    int lines;
    size_t total;
    size_t work;     /* bytes of the arena for activations */
    int64_t trained; /* parameters */
};

/* plan_make counts for a drafter of shape s->config on device d; `held` is what the
 * target's embedding and head take there already. */
int plan_make(struct plan *p, struct dev *d, const struct batch_shape *s,
              bool accumulate, size_t held);

/* plan_print appends the table. */
void plan_print(struct buf *out, const struct plan *p);

#endif
