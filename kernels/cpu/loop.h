/* SPDX-License-Identifier: MIT */
/* loop.h - parallel loops over rows, and rows of any type as rows of `real`. */
#ifndef LOOP_H
#define LOOP_H

#include "cpu.h"

enum { LOOP_PIECE = 512 }; // elements converted at once, on the stack

/* loop_rows runs fn over [0, rows) in pieces worth a thread's while: each row costs
 * about `cost` elementary steps.  A failure in fn sticks to the device.  How rows are
 * cut must not show in the result. */
void loop_rows(struct dev *d, int64_t rows, int64_t cost, par_fn *fn, void *ctx);

/* loop_parts runs fn over a fixed number of parts of [0, rows), one call each: begin
 * and end are parts; loop_part_row gives a part's first row.  For sums over rows: one
 * partial sum per part, added up in order, is the same for any number of threads. */
enum { LOOP_PARTS = 32 };
void loop_parts(struct dev *d, par_fn *fn, void *ctx);

static inline int64_t loop_part_row(int64_t rows, int64_t part)
{
    return rows / LOOP_PARTS * part +
           (part < rows % LOOP_PARTS ? part : rows % LOOP_PARTS);
}

/* loop_add_parts: dw[i] += sum of part[p][i] over parts p in order. */
void loop_add_parts(const struct tensor *dw, const double *part);

/* loop_reals gives elements [at, at + n) of t as reals: in place when that is t's type,
 * else converted into buf, which holds n. */
const real *loop_reals(const struct tensor *t, int64_t at, int64_t n, real *buf);

/* loop_store rounds n reals to t's type (nearest even; e4m3 saturates) at [at, at + n).
 * v may be t's own memory. */
void loop_store(const struct tensor *t, int64_t at, int64_t n, const real *v);

#endif
