/* SPDX-License-Identifier: MIT */
/* room.h - all that training holds on a device, taken at once and tried out.
 *
 * The memory is that of the plan.  Before any weight is set, one step runs on zeros at
 * the largest shape there can be: it fills every arena to its end, loads what code it
 * needs, and leaves nothing behind.  From then on nothing is allocated (guard.h). */
#ifndef ROOM_H
#define ROOM_H

#include "batch.h"
#include "guard.h"
#include "optimizer.h"
#include "plan.h"

struct room {
    struct plan plan;
    struct drafter drafter;
    struct optimizer optim;
    struct batch batch;
    struct arena work; /* activations */
    struct guard guard;
};

/* room_open takes the memory on f->dev, where the target's embedding and head lie
 * already and nothing else does.  Moments and gradients are zero, weights are not yet
 * what they should be (optimizer_start, ckpt_load).  E_CONFIG naming the option that
 * would fit when the card is too small; E_DEVICE when plan and use differ. */
int room_open(struct room *r, const struct plan_for *f, struct tensor embed,
              struct tensor head, const struct adamw *base, double clip,
              struct log *log);
void room_close(struct room *r); /* zero struct is fine */

#endif
