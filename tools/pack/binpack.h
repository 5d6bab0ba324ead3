/* SPDX-License-Identifier: MIT */
/* binpack.h - lengths in, bins out: best fit decreasing.
 *
 * Items are taken from the longest to the shortest, equal ones in their order, and each
 * goes into the bin with the least space that still holds it (of several the one that
 * came to that space last), or opens a new one.  Source: Johnson, "Near-optimal bin
 * packing algorithms", 1973; for documents Ding et al., arXiv 2404.10830. */
#ifndef BINPACK_H
#define BINPACK_H

#include <stdint.h>

/* binpack puts item i of `length[i]` (1 .. capacity) into bin[i], 0 .. *bins - 1, and
 * gives the space left in each bin in space[0 .. *bins - 1] (room for n).  Bins are
 * numbered in the order in which they were opened.  O(n + capacity) time and memory; a
 * length out of range is our bug. */
int binpack(int32_t *bin, int32_t *space, int32_t *bins, const int32_t *length,
            int32_t n, int32_t capacity);

#endif
