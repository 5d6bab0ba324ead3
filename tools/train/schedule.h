/* SPDX-License-Identifier: MIT */
/* schedule.h - the learning rate of a step: linear warm-up, then a cosine to zero. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdint.h>

/* schedule_lr is the rate of step t = 1 .. steps, w of them warm-up:
 *   t <= w:  peak t / w
 *   else     peak (1 + cos(pi (t - w) / (steps - w + 1))) / 2
 * The first step moves and so does the last: the ends of the usual formula, where the
 * rate is zero, are left out. */
double schedule_lr(int64_t t, int64_t steps, int64_t w, double peak);

#endif
