/* SPDX-License-Identifier: MIT */
/* plan.h - the device memory of a run, before any of it is asked for.
 *
 * One line per arena, counted by the code that carves it, and one for each part that
 * the device takes for itself.  Nothing else is ever allocated on the device: training
 * checks that to the byte (guard.h). */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>

#include "batch.h"
#include "bill.h"

struct plan {
    struct bill bill;
    size_t own;      /* of it, what the device takes when it is opened */
    size_t work;     /* bytes of the arena for activations */
    int64_t trained; /* parameters */
};

/* What is planned for; dev_outline is enough of a device. */
struct plan_for {
    struct dev *dev;
    struct batch_shape shape;
    bool accumulate;
    size_t vocabulary; /* bytes of the target's embedding and head */
};

int plan_make(struct plan *p, const struct plan_for *f);

/* plan_fits is 0 when the plan fits in `available` bytes, in all; else E_CONFIG with a
 * message that names the option which would make it fit: fewer --anchors, or where one
 * anchor is too much fewer --layers. */
int plan_fits(const struct plan *p, const struct plan_for *f, size_t available);

/* plan_print appends the table. */
void plan_print(struct buf *out, const struct plan *p);

#endif
