/* SPDX-License-Identifier: MIT */
/* piece.h - an object in pieces: where they are, and whether an answer is the piece
 * that was asked for. */
#ifndef PIECE_H
#define PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "head.h"
#include "object.h"

enum piece_kind {
    PIECE_HEAD,  /* no bytes: what the object is */
    PIECE_PART,  /* no bytes: what the first part of its upload is */
    PIECE_WHOLE, /* the object, asked for without a range */
    PIECE_RANGE  /* bytes [begin, end) of it */
};

struct piece {
    const struct object *object;
    enum piece_kind kind;
    int64_t begin, end; /* end -1: not known before the answer */
};

/* piece_count is how many pieces of up to `size` bytes an object is fetched in: 1 for
 * what fits, and for what cannot be cut because its size is not known or its server has
 * no ranges.  piece_of is number i of them. */
int64_t piece_count(const struct object *o, int64_t size);
struct piece piece_of(const struct object *o, int64_t size, int64_t i);

/* piece_bytes is how many bytes a piece has, 0 when that is not known. */
int64_t piece_bytes(const struct piece *p);

/* piece_range writes "bytes=BEGIN-LAST". */
void piece_range(char out[64], const struct piece *p);

/* piece_check holds the head of a 2xx reply against what was asked for: for a range
 * status 206 with exactly this Content-Range and total, else 200; the length, if said;
 * the ETag of the listing.  E_AGAIN: the object has changed; E_REMOTE: the server, or
 * something before it, answers wrongly, or with an error in the place of the object. */
int piece_check(const struct piece *p, const struct head *h);

#endif
