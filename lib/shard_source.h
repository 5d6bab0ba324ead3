/* SPDX-License-Identifier: MIT */
/* shard_source.h - where shards come from: a part of a run in a folder, one file, or a
 * stream of whole runs.
 *
 * Private to the reader.  A source gives its shards in order, each verified, and checks
 * the end file when it comes to it. */
#ifndef SHARD_SOURCE_H
#define SHARD_SOURCE_H

#include "shard_head.h"

/* One shard in memory; the same slot is filled again and again. */
struct shard_slot {
    struct shard_head head;
    const void *data;
    char *label;         /* file, or stream and shard: for messages */
    struct file_map map; /* where the data lie, of a file ... */
    struct buf raw;      /* ... or, of a stream, header and ... */
    void *room;          /* ... data, cap bytes */
    size_t cap;
};
void shard_slot_clear(struct shard_slot *s); /* keeps the room for the next shard */
void shard_slot_drop(struct shard_slot *s);

enum shard_kind { SHARD_FOLDER, SHARD_FILE, SHARD_STREAM };

struct shard_source {
    enum shard_kind kind;
    char *path;            /* folder, file, or "stdin" */
    int fd, wake;          /* stream: input; readable when reading must stop */
    struct shard_head end; /* of the folder's run, or of the stream's last one */
    int64_t first_row;     /* of the run as it is stored */
    int64_t rows;          /* -1: a stream */
    struct buf digests;    /* header_xxh3 of the runs that ended, 8 bytes each */

    /* The run being read and the place in it. */
    char *name;
    int64_t part, parts;
    bool inside;        /* stream: its end file is still to come */
    int64_t shard, row; /* what must come next */
    struct buf sums;
};

struct shard_sources {
    struct shard_source *at;
    int64_t n;
};

/* shard_source_add appends what a path stands for: one source, or one for each part of
 * the run in a folder.  A stream stops with E_AGAIN once `wake` is readable. */
int shard_source_add(struct shard_sources *list, const char *path, int wake);
void shard_source_drop(struct shard_sources *list);

/* shard_source_next fills a slot with the next shard (1), or says that the source has
 * ended well (0).  Without `verify` the data are not looked at. */
int shard_source_next(struct shard_source *s, struct shard_slot *slot, bool verify);

/* shard_source_rewind goes back to the start, shard_source_unread one shard back; not
 * for streams. */
void shard_source_rewind(struct shard_source *s);
void shard_source_unread(struct shard_source *s, const struct shard_head *h);

#endif
