/* SPDX-License-Identifier: MIT */
/* budget.h - what --memory leaves for buffers, beside the program, its lists and its
 * connections. */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdint.h>

/* budget_left gives what buffers may take, with so many objects and connections;
 * E_CONFIG with the memory that would do when that is less than `least`.  All in bytes.
 */
int budget_left(int64_t *out, int64_t memory, int64_t objects, int64_t connections,
                int64_t least);

/* budget_listing ends (E_CONFIG) a listing that goes on and on: `objects` of `url` are
 * known by now, and there is no memory for more. */
int budget_listing(int64_t memory, int64_t objects, const char *url);

#endif
