/* SPDX-License-Identifier: MIT */
/* row.h - one row out of a packed or hidden shard: its columns checked, typed, by name.
 *
 * shard.h knows bytes and dimensions; this knows what the columns mean.  Everything is
 * a view of the shard and lives as long as that does. */
#ifndef ROW_H
#define ROW_H

#include <stdint.h>

#include "anchor.h"
#include "shard.h"

struct row {
    struct anchor_row text; /* ids, mask, doc, source of the shard */
    int64_t index;          /* global, for messages */
    const void *aux;        /* [S, width] bf16, or e4m3 with scale; NULL when packed */
    const float *scale;     /* [S, taps], or NULL: bf16 */
    int64_t width, taps;    /* K*H; K, 0 without scale */
};

/* row_view fills `out` with row i (0 .. v->rows - 1) of a shard.  A missing column, a
 * wrong type or shape, a document beyond `source` are E_FORMAT naming shard and column.
 */
int row_view(struct row *out, const struct shard_view *v, int64_t i);

/* row_end is one behind the last token that is not padding. */
int64_t row_end(const struct anchor_row *text);

#endif
