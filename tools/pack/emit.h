/* SPDX-License-Identifier: MIT */
/* emit.h - rows of packed documents into a run of shards.
 *
 * A run that is there already is not written again: whole, nothing is; in part, rows
 * are counted until the first one that is missing, and those of the last shard are
 * compared with what is there, so that a run is never continued with other data. */
#ifndef EMIT_H
#define EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"

/* What a row is made of: a stretch of tokens and where it came from. */
struct piece {
    int64_t source[3]; /* file, record, first token */
    int64_t n;
    const int32_t *ids; /* [n] */
    const uint8_t *mask;
};

struct emit {
    struct shard_writer *writer; /* NULL: the run is whole, or there is none */
    bool whole;                  /* it was there before we began */
    bool streams;                /* the input's digest is known at the end only */
    int64_t length, rows;        /* tokens of a row; rows so far */
    int64_t have;                /* rows that are there from an earlier run */
    int64_t bytes;               /* written, once emit_finish has done it */
};

/* What identifies a run. */
struct emit_of {
    const char *split;   /* "train" or "valid" */
    const char *options; /* opt_record */
    const char *input;   /* digest as text, NULL while stdin's is not known */
    int64_t length;      /* tokens of a row */
    int part, parts;
};

/* emit_open begins a run in `dir`, "-" is stdout. */
int emit_open(struct emit *e, const char *dir, const struct emit_of *of);

/* emit_row adds one row of n pieces, in this order, padded to the row's length. */
int emit_row(struct emit *e, const struct piece *piece, int64_t n);

/* emit_finish writes what is left and the end file with `input` (a digest) and `files`
 * (JSON); emit_abandon keeps what is whole for another call. */
int emit_finish(struct emit *e, const char *input, const char *files);
void emit_abandon(struct emit *e);

#endif
