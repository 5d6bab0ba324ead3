/* SPDX-License-Identifier: MIT */
/* partial.h - a large object that is not whole yet, and outlives the run.
 *
 * Its bytes lie in a temporary that place.h keeps, named by a hash of the key.  Beside
 * it a journal says which object it is (key, size, ETag or time, size of pieces) and
 * gets a line for every piece that was written, with its CRC.  Who goes on reads those
 * pieces and believes only what still has its CRC: after a loss of power the journal
 * may know more than the disk.
 *
 * With every piece the kernel is asked to write out what has come and to forget what is
 * on the disk.  So the next pieces go to memory that was in use a moment ago, the fsync
 * at the end is short, and a set that is larger than memory does not push out of it
 * what others have read. */
#ifndef PARTIAL_H
#define PARTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "object.h"
#include "place.h"

struct partial {
    char temp[PLACE_NAME];
    int fd, journal;       /* -1: none */
    int64_t piece, pieces; /* bytes of a piece; how many */
    int64_t have, bytes;   /* pieces and bytes taken over from an earlier run */
    bool reread;           /* its user will read it: it stays in memory */
    uint8_t *there;        /* 1 for those; owned */
    uint64_t *sum;         /* of each piece, CRC-64/NVME; owned */
};

/* partial_open goes on with what an earlier run has left of this object, in pieces of
 * the size it had then, or makes a file of the object's size and pieces of `piece`
 * bytes.  An object without ETag and time starts anew. */
int partial_open(struct partial *p, const struct place *place, const struct object *o,
                 int64_t piece);

/* partial_note records a piece that has been written; any thread, one at a time for
 * each piece. */
int partial_note(struct partial *p, int64_t index, uint64_t sum);

/* partial_close frees and closes and keeps the files; partial_forget removes those of
 * an object, after partial_close. */
void partial_close(struct partial *p);
void partial_forget(const struct place *place, const char *key);

/* partial_sweep removes what belongs to no object of a list that `wanted` marks and
 * that is larger than a piece. */
int partial_sweep(const struct place *place, const struct objects *list,
                  const bool *wanted, int64_t piece);

#endif
