/* SPDX-License-Identifier: MIT */
/* manifest.h - what lies whole in a destination, and how its source looked then.
 *
 * DEST/.draft-fetch/manifest.json lists objects sorted by key, one a line: key, size,
 * mtime_ns (of the file here, which is the source's where that has one), the source's
 * ETag if it has one, and the CRC-64/NVME of the content, which is what S3 itself keeps
 * and what the CRCs of pieces add up to.  Part i of n keeps manifest-i-of-n.json beside
 * it, so that parts on different machines never write the same file; all are read.
 * While a run goes on, what has been put in place is appended to a journal (the same
 * lines), which is read and folded in by the next run: a killed run loses nothing that
 * was durable.
 *
 * An entry is a claim; whoever uses it compares it with the file that is there. */
#ifndef MANIFEST_H
#define MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "texts.h"

struct entry {
    const char *key, *etag; /* owned by the manifest; etag NULL: none */
    int64_t size, mtime_ns;
    uint64_t sum;
    int64_t age; /* ascending in the order of reading and adding */
    bool own;    /* of this run's manifest, not of another part's */
};

struct manifest {
    char *dir;     /* DEST/.draft-fetch; owned */
    char name[48]; /* of this run's manifest, without ".json" */
    bool whole;    /* not a part */
    struct entry *at;
    int64_t n, cap, sorted; /* the first `sorted` are in order of key and age */
    struct texts texts;
    int journal;        /* descriptor, -1: not begun */
    struct buf waiting; /* lines that the journal has not got yet */
    bool changed;       /* the file does not say what this says */
};

/* manifest_load reads all manifests and journals below `dest`; what is damaged is left
 * out and counted in *damaged (its objects are fetched again).  A folder without any is
 * an empty manifest.  Nothing is written. */
int manifest_load(struct manifest *m, const char *dest, int part, int parts,
                  int64_t *damaged);

/* manifest_find gives the first of the entries with a key and how many there are: one
 * for each manifest that knows it.  *first is NULL when there is none. */
int64_t manifest_find(const struct manifest *m, const char *key,
                      const struct entry **first);

/* manifest_add remembers an entry (age and own are the manifest's own matter) and
 * manifest_flush brings what was added to the journal, with one write, which makes it
 * survive a kill.  New entries are not found until the next load. */
int manifest_add(struct manifest *m, const struct entry *e);
int manifest_flush(struct manifest *m);

/* manifest_save writes this run's manifest, durable, if something was added or a
 * journal was left over, and then removes the journal; a run that is not a part also
 * removes the parts' manifests, which it has read. */
int manifest_save(struct manifest *m);

void manifest_drop(struct manifest *m);

#endif
