/* SPDX-License-Identifier: MIT */
/* hidden.h - what a row of a hidden shard holds, and how it gets there.
 *
 * The packed columns are copied through; aux has the tapped states, `last` the residual
 * stream before the final norm where it was asked for (docs/shard.md).  A hidden_row is
 * a row on its way from the target to the shard, so that one can be written while the
 * next is computed. */
#ifndef HIDDEN_H
#define HIDDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "row.h"
#include "shard.h"

/* Which columns there are, and how wide. */
struct hidden_form {
    int64_t length, width; /* S tokens, H */
    int taps;              /* K */
    bool fp8;              /* aux e4m3 with a scale per token and tap, else bf16 */
    bool last;
};

struct hidden_row {
    int64_t index; /* global */
    int32_t *ids;  /* [S] */
    uint8_t *mask; /* [S] */
    int32_t *doc;  /* [S] index into source, -1 padding */
    int64_t (*source)[3];
    int64_t docs;    /* entries of source: the row's own, in order */
    void *aux;       /* [S, K*H] bf16 or e4m3 */
    float *scale;    /* [S, K], NULL without fp8 */
    void *last;      /* [S, H] bf16, or NULL */
    struct dev *dev; /* borrowed; NULL, or aux, scale and last are its dev_host_alloc */
    int set;         /* where on the device its states are left, see capture.h */
    bool there;      /* and still are */
};

/* hidden_columns fills o->column; the order is that of the files. */
void hidden_columns(struct shard_options *o, const struct hidden_form *f);

/* hidden_row_bytes is what the states of a row take. */
size_t hidden_row_bytes(const struct hidden_form *f);

/* hidden_row_new makes room for a row; its states in memory that d copies to by itself
 * (NULL: in ordinary memory).  The device must be open until hidden_row_free. */
int hidden_row_new(struct hidden_row *r, const struct hidden_form *f, struct dev *d);
void hidden_row_free(struct hidden_row *r); /* zero struct is fine */

/* hidden_row_text copies the packed columns, with doc counting from the row's first
 * document and source cut down to the documents of this row. */
void hidden_row_text(struct hidden_row *r, const struct row *from);

/* hidden_row_write puts a row into the shards. */
int hidden_row_write(struct shard_writer *w, const struct hidden_row *r,
                     const struct hidden_form *f);

#endif
