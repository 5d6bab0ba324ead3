/* SPDX-License-Identifier: MIT */
/* schedule.c - the learning rate as a function of the step alone: nothing to save. */
#include "schedule.h"

#include <math.h>

double schedule_lr(int64_t t, int64_t steps, int64_t w, double peak)
{
    if (t <= w)
        return peak * (double)t / (double)w;
    const double pi = 3.14159265358979323846;
    double share = (double)(t - w) / (double)(steps - w + 1);
    return peak * 0.5 * (1 + cos(pi * share));
}
