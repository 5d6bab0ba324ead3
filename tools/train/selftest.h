/* SPDX-License-Identifier: MIT */
/* selftest.h - what a user runs first on a new card: training steps on drawn numbers.
 *
 * Each shape runs as training does, in the memory of its plan, and what comes out is
 * held against what it must be: parameters, bytes, free memory over steps, the loss of
 * a drafter that knows nothing, a finite gradient, the same bits twice; and once, at a
 * small shape in f32, the gradient against differences of the loss. */
#ifndef SELFTEST_H
#define SELFTEST_H

#include "log.h"
#include "recipe.h"

/* selftest_run prints to stdout.  The last shape is the recipe's own.  E_DEVICE when
 * something is not what it must be, E_CONFIG when a shape does not fit the device. */
int selftest_run(const char *device, const struct recipe *recipe, struct log *log);

#endif
