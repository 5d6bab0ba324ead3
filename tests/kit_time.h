/* SPDX-License-Identifier: MIT */
/* kit_time.h - what the benches share: a clock, order, and the ceiling of mma.sync. */
#ifndef KIT_TIME_H
#define KIT_TIME_H

#include "dev.h"

/* kit_now is a steady time in seconds. */
double kit_now(void);

/* kit_sort puts numbers in ascending order; kit_median does so and gives the middle. */
void kit_sort(double *v, int n);
double kit_median(double *v, int n);

/* kit_mma_peak is what mma.sync alone reaches on a GPU, in operations a second: the
 * best of five; NaN when the device fails. */
double kit_mma_peak(struct dev *d);

/* kit_bench is the main of a bench: opens a device with `threads` threads (0: one a
 * core), runs it line by line, says what failed and returns the exit status. */
int kit_bench(const char *name, const char *device, int threads,
              int (*run)(struct dev *d));

#endif
