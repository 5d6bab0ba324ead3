/* SPDX-License-Identifier: MIT */
/* comm.h - sums over the processes that train one drafter together.
 *
 * Rank r of n takes every n-th row of a step.  Loss, weights and counts are summed as
 * doubles, gradients on the device; after a sum all ranks hold the same bits. */
#ifndef COMM_H
#define COMM_H

#include <stdint.h>

#include "dev.h"

struct comm {
    int rank, ranks;
};

int comm_open(struct comm *c);
void comm_close(struct comm *c);
int comm_sum(struct comm *c, double *x, int64_t n);
int comm_sum_tensor(struct comm *c, struct dev *d, struct tensor x);

#endif
