/* SPDX-License-Identifier: MIT */
/* look_parts.h - what the look_*.c files share among themselves. */
#ifndef LOOK_PARTS_H
#define LOOK_PARTS_H

#include "look.h"
#include "row.h"

/* look_meta lists metadata but for the format's own keys. */
void look_meta(struct facts *f, const struct st_header *h);

/* Counts over rows of tokens. */
struct look_tokens {
    int64_t rows, length, filled, supervised, documents;
};
int look_tokens_add(struct look_tokens *t, const struct row *row);
void look_tokens_tell(struct facts *f, const struct look_tokens *t);

/* Numbers of one group: a tapped layer, or a tensor. */
struct look_numbers {
    double squares, largest;
    int64_t n;
};
void look_numbers_tell(struct facts *f, const struct look_numbers *s);

/* look_numbers_add adds n values of a floating type times scale; returns the index of
 * the first that is not finite, or -1. */
int64_t look_numbers_add(struct look_numbers *s, const void *p, enum st_type type,
                         int64_t n, float scale);

/* The tapped layers of hidden shards, each with its numbers. */
enum { LOOK_TAPS = 64 };
struct look_taps {
    struct look_numbers tap[LOOK_TAPS], last;
    int64_t taps, zeros;      /* zeros: tokens whose vector is all zero in some tap */
    char list[8 * LOOK_TAPS]; /* numbers of the layers, as in the metadata */
};
int look_taps_add(struct look_taps *t, const struct row *row,
                  const struct shard_view *v);
void look_taps_tell(struct facts *f, const struct look_taps *t);

/* look_row shows one row: documents, where they are from, tokens. */
int look_row(struct look *l, const struct row *row, const char *files);

#endif
