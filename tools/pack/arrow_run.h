/* SPDX-License-Identifier: MIT */
/* arrow_run.h - some rows of a record batch, cut out so that they stand alone.
 *
 * A batch may be large, and its memory is needed for the next one; a run is small and
 * goes to any thread.  It is a head, then for each column that is there the lengths of
 * its rows (-1: null), then the columns' items, bits as bytes, without gaps, and where
 * items can be null a byte for each that says so.  Every part begins at a multiple of
 * 8. */
#ifndef ARROW_RUN_H
#define ARROW_RUN_H

#include "arrow_batch.h"

struct arrow_part {
    int64_t there, type, has_nulls; /* type: enum ints_type */
    int64_t length, items, nulls;   /* offsets from the head */
};

struct arrow_run {
    int64_t rows, bytes; /* head included */
    struct arrow_part part[FIELDS];
};

/* Which items of a column a row has. */
struct arrow_extent {
    int64_t first, n;
};

/* arrow_run_add appends a run of rows from `row` on, of about `want` bytes and at least
 * one row; *rows says how many.  `extents` are buffers to work in.  E_FORMAT: the row
 * behind the *rows that are in order has offsets that are not. */
int arrow_run_add(struct buf *out, const struct arrow_batch *b, int64_t row,
                  int64_t want, struct buf extents[FIELDS], int64_t *rows);

#endif
