/* SPDX-License-Identifier: MIT */
/* intake.h - rows of hidden states in stream order, epoch after epoch.
 *
 * Rows come in the order of the shards and are never shuffled here; a folder starts
 * over when it ends, a stream does not.  Which row is next is one number, the rows
 * taken since the first epoch began, so going on after an interruption is a seek. */
#ifndef INTAKE_H
#define INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "hash.h"
#include "row.h"
#include "shard.h"

enum { INTAKE_TAPS = 8 * CONFIG_TAPS };

/* What the shards say about themselves. */
struct intake_about {
    int64_t rows;   /* of an epoch; -1 for a stream */
    int64_t length; /* S */
    int64_t hidden; /* H */
    int64_t tap[CONFIG_TAPS];
    int taps;                    /* K */
    char taps_text[INTAKE_TAPS]; /* "1,7,13", as recorded */
    bool fp8;                    /* aux is e4m3 with scales, else bf16 */
    uint64_t target;             /* digest of the model that gave the hidden states */
    char first[HASH_TEXT];       /* header_xxh3 of the first shard read */
};

struct intake {
    struct shard_reader *reader;
    struct shard_view view;
    struct intake_about about;
    uint64_t source; /* of the view's text: keys the draw of anchors */
    int64_t at;      /* next row inside the view */
    int64_t taken;   /* rows taken since the first epoch began */
    int64_t epoch;
};

/* One row; everything is borrowed until the next call. */
struct intake_row {
    struct row row;
    const char *file;
    int64_t epoch;
    uint64_t source; /* digest that the run of this row gives for its text */
};

/* intake_open opens folders and files, or "-" alone, and reads the first shard.
 * E_FORMAT for shards that are not draft-extract's, or that lack a column. */
int intake_open(struct intake *in, char *const *path, int paths);
void intake_close(struct intake *in); /* zero struct is fine */

/* intake_seek makes row `taken` the next.  A stream can only skip forward; it may begin
 * later than row 0 (draft-extract --from-row) but not later than the row sought. */
int intake_seek(struct intake *in, int64_t taken);

/* intake_next gives the next row.  E_CONFIG when a stream has ended. */
int intake_next(struct intake *in, struct intake_row *out);

/* intake_digest identifies the whole input of a folder; 0 when it is a stream. */
int intake_digest(const struct intake *in, uint64_t *out);

#endif
