/* SPDX-License-Identifier: MIT */
/* kit_shard.h - small runs of shards with known content, for the tests of lib/shard. */
#ifndef KIT_SHARD_H
#define KIT_SHARD_H

#include "kit.h"
#include "shard.h"

/* Columns ids [3] i32, mask [3] u8, doc (fixed) [2] i64, x [3,2] bf16; every value
 * follows from the row's index. */
struct shard_options kit_run_options(void); /* 2 rows a shard, one part */

/* kit_run_fill adds rows [from, to) to a writer. */
void kit_run_fill(struct shard_writer *w, int64_t from, int64_t to);

/* kit_run_write writes a run of `rows` rows to a folder, resuming what is there. */
void kit_run_write(const char *dir, const struct shard_options *o, int64_t rows);

/* kit_run_stream writes the same as a stream into a file. */
void kit_run_stream(const char *path, const struct shard_options *o, int64_t rows);

/* kit_run_check compares a shard with what row `first` and those behind it must hold.
 */
void kit_run_check(const struct shard_view *v, int64_t first);

/* kit_run_read reads everything from paths, checks rows from `first` on, and returns
 * what the last shard_next (or shard_open) returned; *rows counts them. */
int kit_run_read(char *const *path, int paths, int64_t first, int64_t *rows);

/* kit_packed_write and kit_hidden_write make runs like those of draft-pack (3 rows of 8
 * tokens, two shards) and draft-extract (2 rows of them, taps 1 and 3 of width 2),
 * whose bytes are kept in tests/golden/shards.  `spoil` changes one bf16 number of row
 * 1: -1 leaves all as they are. */
void kit_packed_write(const char *dir);
void kit_hidden_write(const char *dir, int spoil, uint16_t value);

/* kit_cat appends a file's bytes to another. */
void kit_cat(const char *to, const char *from);

#endif
