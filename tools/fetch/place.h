/* SPDX-License-Identifier: MIT */
/* place.h - fetched bytes under their final names, never a name before its bytes are
 * durable.
 *
 * Objects are written to temporaries in DEST/.draft-fetch/tmp, collected into a group,
 * and put in place together: files of LARGE bytes and more have been fsynced one by one
 * (in parallel, by who wrote them), all smaller ones take one syncfs; then come the
 * renames, and one fsync of each folder that received a name.
 *
 * Temporaries whose name ends in PLACE_KEPT outlive the run, so that a later one can go
 * on with them (partial.h); all others are removed by the next run at the latest. */
#ifndef PLACE_H
#define PLACE_H

#include <stdint.h>

#include "lock.h"
#include "lock.h"
#include "manifest.h"

enum {
    PLACE_LARGE = 8 << 20,
    PLACE_CACHED = 256 << 10, /* up to so many bytes stay in the kernel's memory */
    PLACE_GROUP = 1000,
    PLACE_GROUP_BYTES = 256 << 20,
    PLACE_NAME = 32 /* bytes of a temporary's name, NUL included */
};
#define PLACE_KEPT ".part"

/* What has been written and waits for its name. */
struct placed {
    struct entry entry; /* of the manifest; its texts are borrowed until the flush */
    char temp[PLACE_NAME];
    int64_t number; /* of the object, for whoever flushes */
    int code;       /* after the flush: not 0, it could not be put in place: */
    char *why;      /* owned by the group */
};

struct place {
    char *dest, *tmp; /* DEST and DEST/.draft-fetch/tmp...; owned */
    int dest_fd, tmp_fd;
    struct lock lock;
    struct placed *at; /* PLACE_GROUP of them */
    int n, small;
    int64_t bytes;
    double since; /* when the first one of the group came */
};

/* place_open makes the folders and takes the lock: one process a destination and part,
 * another one is E_AGAIN.  Temporaries that a kill left over are removed, by a whole
 * run those of parts, too. */
int place_open(struct place *p, const char *dest, int part, int parts);

/* place_temp writes the name of the temporary of object `number`.  place_create opens a
 * temporary for writing, empty; returns the descriptor.  The writer ends it with
 * place_written (time of the source set, fsynced if it is large, closed) or
 * place_discard.  Any thread. */
char *place_temp(char out[PLACE_NAME], int64_t number);
int place_create(const struct place *p, const char *temp);
int place_written(const struct place *p, const char *temp, int fd, int64_t size,
                  int64_t mtime_ns);
void place_discard(const struct place *p, const char *temp, int fd);

/* place_add puts a written temporary into the group; 1 when the group is full or old
 * and must be flushed.  place_due: is it old by now? */
int place_add(struct place *p, const struct placed *what);
bool place_due(const struct place *p);

/* place_flush puts the group in place and records it in the manifest.  Objects that
 * fail carry their code and reason in at[0 .. n-1]; a negative result is a failure of
 * all.  place_clear then empties the group. */
int place_flush(struct place *p, struct manifest *m);
void place_clear(struct place *p);

/* place_close removes the temporaries and gives the lock back. */
void place_close(struct place *p);

#endif
