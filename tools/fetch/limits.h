/* SPDX-License-Identifier: MIT */
/* limits.h - which numbers make sense for the network. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stdint.h>

struct limits {
    int64_t connections, piece, memory, rate, retries; /* pieces, memory, rate: bytes */
    double stall;                                      /* seconds */
};

/* limits_check names the first option that is out of its range, and the range;
 * E_USAGE. */
int limits_check(const struct limits *l);

#endif
