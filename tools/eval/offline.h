/* SPDX-License-Identifier: MIT */
/* offline.h - acceptance from hidden shards, without running the target (walk.h). */
#ifndef OFFLINE_H
#define OFFLINE_H

#include "eval.h"

/* offline_run walks every supervised run of the shards.  Shards of another target are
 * E_FORMAT, taps other than the drafter's E_CONFIG. */
int offline_run(struct tool *tool, const struct eval_options *o);

#endif
