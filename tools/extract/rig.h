/* SPDX-License-Identifier: MIT */
/* rig.h - a target made ready for rows: looked at first, then loaded.
 *
 * What writes shards and what computes their rows again is the same: one order of
 * checks, one way to load, one pump. */
#ifndef RIG_H
#define RIG_H

#include "hash.h"
#include "log.h"
#include "pump.h"

struct rig_options {
    const char *target, *device;
    int64_t threads;
    size_t memory;  /* of passes, 0: any */
    size_t weights; /* of the target's weights, 0: what the device has */
    size_t host;    /* of rows under way, 0: a quarter of what the host has */
};

/* A rig stays where it is: its parts point to each other. */
struct rig {
    struct rig_options o;
    struct dev card;      /* an outline of the device */
    struct target *shape; /* of the target: looked at, not loaded */
    char digest[HASH_TEXT];
    struct taps taps;
    struct hidden_form form; /* length and fp8 are the caller's to set */
    struct par *compute;
    struct dev *dev;
    struct target *target;
    struct fit fit;
    struct pump pump;
};

/* rig_check finds everything that is wrong with the checkpoint, and layers (taps.h)
 * that it does not have, before a device is opened. */
int rig_check(struct rig *r, const struct rig_options *o, const char *taps, bool last);

/* rig_plan appends to `out` what the run takes, without a device: of a card whatever
 * the options allow. */
int rig_plan(struct rig *r, struct buf *out);

/* rig_open opens the device, decides how rows are computed in what it has (fit.h) and
 * only then loads the target. */
int rig_open(struct rig *r, struct log *log);
void rig_close(struct rig *r); /* in any state; zero is fine */

/* rig_run moves all rows of `ends` through the target. */
int rig_run(struct rig *r, const struct pump_ends *ends);

#endif
