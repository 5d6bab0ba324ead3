/* SPDX-License-Identifier: MIT */
/* feed.h - packed rows one after another: all, from a row on, or one part of them.
 *
 * Wraps the reader of shards; a row's columns are views that live until the next
 * feed_next. */
#ifndef FEED_H
#define FEED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "row.h"
#include "shard.h"

struct feed {
    struct shard_reader *reader;
    struct shard_view view;
    bool loaded;             /* view holds a shard */
    int64_t next;            /* global index of the row to give next */
    int64_t stop;            /* one behind the last to give; -1: a stream, not known */
    bool parted;             /* stop is not the end of the input */
    int64_t length;          /* tokens of a row */
    char opening[HASH_TEXT]; /* xxh3 of the first shard's header: tells inputs apart
                                before a stream's own digest is known */
    char source[HASH_TEXT];  /* digest of pack's raw sources; "" when they were piped */
};

/* feed_open opens the runs and reads the first shard; waiting ends when *stop is set.
 * An input without rows, and one that has passed through draft-extract already, are
 * E_FORMAT. */
int feed_open(struct feed *f, char *const *path, int paths,
              const volatile sig_atomic_t *stop);

/* feed_part keeps rows [R*i/n, R*(i+1)/n) of R; a stream, whose R is unknown, is
 * E_USAGE.  feed_from goes to `row`: folders are sought, a stream is read and dropped
 * up to it; outside the input is E_CONFIG, for a stream when it ends. */
int feed_part(struct feed *f, int64_t i, int64_t n);
int feed_from(struct feed *f, int64_t row);

/* feed_next gives the next row (1), or 0 at the end. */
int feed_next(struct feed *f, struct row *out);
void feed_close(struct feed *f);

#endif
