/* SPDX-License-Identifier: MIT */
/* guard.h - two checks that a run takes the memory that was planned, and no more.
 *
 * Bytes that the device handed out equal the plan, and each arena is full to its end in
 * the largest step; and the card's own count of free memory does not move over steps.
 * The second sees what the first cannot: an allocation behind our back, by a library or
 * by a path that was thought to be unused.  A shape of a product that was not met
 * before may load code, once: such a step sets the mark anew and does not count. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "log.h"

enum { GUARD_STEPS = 3 }; // that must leave free memory as it was

struct guard {
    struct dev *dev;
    size_t planned;
    struct dev_memory mark; /* free memory that steps must leave */
    int64_t left;           /* steps still to check; 0: done, or not to be made */
};

/* guard_arena fails (E_DEVICE, both numbers) unless the arena was once full. */
int guard_arena(const struct arena *a);

/* guard_begin looks after a warm-up step; it says at -v what context and code take,
 * and, where another process is on the card, that free memory is not checked. */
int guard_begin(struct guard *g, struct dev *d, size_t planned, struct log *log);

/* guard_step looks after step t: E_DEVICE with both numbers when memory was allocated.
 */
int guard_step(struct guard *g, int64_t t, struct log *log);

#endif
