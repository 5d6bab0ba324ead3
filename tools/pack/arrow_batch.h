/* SPDX-License-Identifier: MIT */
/* arrow_batch.h - one record batch: where the lists of each column lie in its body.
 *
 * All lengths and offsets are checked against the body before anything is read through
 * them; row by row where they are given by row. */
#ifndef ARROW_BATCH_H
#define ARROW_BATCH_H

#include "arrow_schema.h"
#include "buf.h"

/* A column of the batch; its pointers go into the body or into `room`. */
struct arrow_list {
    const struct arrow_column *as;
    const uint8_t *valid;      /* a bit a row; NULL: none is null */
    const uint8_t *offsets;    /* of rows into items */
    const uint8_t *item_valid; /* a bit an item; NULL: none is null */
    const uint8_t *items;
    int64_t count; /* items */
};

enum { ARROW_PARTS = 4 }; /* buffers of a list of numbers */

struct arrow_batch {
    int64_t rows;
    struct arrow_list list[FIELDS];
    struct buf room[FIELDS][ARROW_PARTS]; /* what was compressed */
};

/* arrow_batch_open looks at a RecordBatch table and its body, which must stay where it
 * is; `b` is zero or what an earlier call left.  E_FORMAT, E_MEMORY. */
int arrow_batch_open(struct arrow_batch *b, const struct arrow_schema *s,
                     const struct flat_table *table, const uint8_t *body, size_t size);

/* arrow_batch_row finds the items of a row: first and how many, -1 when it is null. */
int arrow_batch_row(const struct arrow_batch *b, int column, int64_t row,
                    int64_t *first, int64_t *n);

void arrow_batch_drop(struct arrow_batch *b);

#endif
