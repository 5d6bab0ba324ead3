/* SPDX-License-Identifier: MIT */
/* steps.h - the steps of a run, from where it stands to its end.
 *
 * A step takes --accumulate rows: forward, loss, gradients added up; then one update.
 * Records are written before the checkpoint that relies on them.  A signal lets the
 * step finish, saves, and ends with E_AGAIN; failed input after a signal (the other end
 * of a pipe was stopped, too) saves the last whole step. */
#ifndef STEPS_H
#define STEPS_H

#include "batch.h"
#include "ckpt.h"
#include "comm.h"
#include "guard.h"
#include "log.h"
#include "metrics.h"
#include "optimizer.h"
#include "recipe.h"
#include "valid.h"

struct steps {
    const struct recipe *recipe; /* resolved */
    struct intake *in;           /* stands at the first row to take */
    struct batch *batch;
    struct drafter *drafter;
    struct optimizer *optim;
    struct arena *work;
    struct guard *guard; /* begun */
    struct comm *comm;
    struct ckpt *ckpt; /* step: where the run stands */
    struct valid *valid;
    int64_t valid_every; /* steps; 0: after the last only */
    struct metrics_log *record;
    struct log *log;
    struct metrics last; /* of the last step, for the closing line */
    double tokens;       /* trained on since steps_run began */
};

int steps_run(struct steps *l);

#endif
