/* SPDX-License-Identifier: MIT */
/* comm_one.c - one process: its sums are the sums. */
#include "comm.h"

int comm_open(struct comm *c)
{
    *c = (struct comm){.rank = 0, .ranks = 1};
    return 0;
}

void comm_close(struct comm *c)
{
    *c = (struct comm){0};
}

int comm_sum(struct comm *c, double *x, int64_t n)
{
    (void)c, (void)x, (void)n;
    return 0;
}

int comm_sum_tensor(struct comm *c, struct dev *d, struct tensor x)
{
    (void)c, (void)d, (void)x;
    return 0;
}
