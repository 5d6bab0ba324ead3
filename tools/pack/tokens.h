/* SPDX-License-Identifier: MIT */
/* tokens.h - files that are nothing but numbers one behind another: how documents are
 * cut off them.  What read_npy.c, read_raw.c and read_megatron.c have in common.
 *
 * A document is a row of a matrix, or ends behind each separator, which belongs to it,
 * or is the whole file, or is as long as an index says.  All tokens are supervised. */
#ifndef TOKENS_H
#define TOKENS_H

#include <stdbool.h>

#include "ints.h"
#include "reader.h"

enum { TOKENS_MAX = 256 << 20 /* bytes of one document */ };

/* Where reading a file stands. */
struct tokens {
    enum ints_type type;
    int64_t left;      /* numbers still to come; -1: until the file ends */
    int64_t row;       /* numbers of a document; 0: known by the separator */
    bool whole;        /* the file is one document */
    int64_t separator; /* id */
    int64_t seen;      /* numbers of `have` that hold no separator */
};

/* tokens_ends says what ends the documents of a file without rows; E_USAGE when the
 * call does not say. */
int tokens_ends(struct tokens *t, const struct read_rules *rules, const char *file);

/* tokens_block is the block of struct reader, with a struct tokens as its state. */
int tokens_block(struct block *b, void *state, struct inflow *in);

/* tokens_pass makes a block of n documents of these many numbers, which stand at the
 * front of `have`. */
int tokens_pass(struct block *b, struct inflow *in, const int64_t *length, int64_t n,
                enum ints_type type);

/* tokens_parse is the parse of struct reader for these blocks. */
int tokens_parse(struct documents *out, const struct block *b,
                 const struct read_rules *rules);

#endif
