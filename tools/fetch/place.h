/* SPDX-License-Identifier: MIT */
/* place.h - fetched bytes under their final names, never a name before its bytes are
 * durable.
 *
 * Objects are written to temporaries in DEST/.draft-fetch/tmp, collected into a group,
 * and put in place together: files of LARGE bytes and more have been fsynced one by one
 * (in parallel, by who wrote them), all smaller ones take one syncfs; then come the
 * renames, and one fsync of each folder that received a name. */
#ifndef PLACE_H
#define PLACE_H

#include <stdint.h>

#include "lock.h"
#include "manifest.h"

enum { PLACE_LARGE = 8 << 20, PLACE_GROUP = 1000, PLACE_GROUP_BYTES = 256 << 20 };

/* What has been written and waits for its name. */
struct placed {
    const char *key; /* borrowed until the group is flushed */
    int64_t size, mtime_ns;
    uint64_t xxh3;
    int64_t number; /* of its temporary */
    int code;       /* after the flush: not 0, it could not be put in place: */
    char *why;      /* owned by the group */
};

struct place {
    char *dest, *tmp; /* DEST and DEST/.draft-fetch/tmp...; owned */
    int dest_fd;
    struct lock lock;
    struct placed *at; /* PLACE_GROUP of them */
    int n, small;
    int64_t bytes;
};

/* place_open makes the folders and takes the lock: one process a destination and part,
 * another one is E_AGAIN.  Temporaries that a kill left over are removed. */
int place_open(struct place *p, const char *dest, int part, int parts);

/* place_create opens temporary `number` for writing; returns the descriptor.  The
 * writer ends it with place_written (time of the source set, fsynced if it is large,
 * closed) or place_discard.  Any thread. */
int place_create(const struct place *p, int64_t number);
int place_written(const struct place *p, int64_t number, int fd, int64_t size,
                  int64_t mtime_ns);
void place_discard(const struct place *p, int64_t number, int fd);

/* place_add puts a written temporary into the group; 1 when the group is full and must
 * be flushed. */
int place_add(struct place *p, const struct placed *what);

/* place_flush puts the group in place and records it in the manifest.  Objects that
 * fail carry their code and reason in at[0 .. n-1]; a negative result is a failure of
 * all.  place_clear then empties the group. */
int place_flush(struct place *p, struct manifest *m);
void place_clear(struct place *p);

/* place_close removes the temporaries and gives the lock back. */
void place_close(struct place *p);

#endif
