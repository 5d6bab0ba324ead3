/* SPDX-License-Identifier: MIT */
/* shard.h - what flows between the stages: rows of tensors in a run of safetensors
 * files.
 *
 * A run is NAME-00000.safetensors, NAME-00001 ... and, written last,
 * NAME-end.safetensors (no tensors; counts and a digest over the shards' headers in its
 * metadata).  The pipe form is the same bytes, concatenated.  Part i of n calls its
 * files NAME-i-of-n-00000... and NAME-i-of-n-end (i as wide as n - 1, so that names
 * sort).  Format, limits and metadata keys:
 * docs/shard.md.
 *
 * All per-row tensors have the row as first dimension; `fixed` tensors (pack's
 * `source`) belong to the shard as a whole and may differ in length from shard to
 * shard.  A shard is complete in memory before its first byte is written.  Nothing here
 * knows a model. */
#ifndef SHARD_H
#define SHARD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "safetensors.h"

#define SHARD_FORMAT "1"

enum {
    SHARD_COLUMNS = 8,
    SHARD_BYTES = 256 << 20 /* rows per shard = max(1, SHARD_BYTES / bytes per row) */
};

/* A column: its name, type and the shape of one row of it.  In the file one dimension
 * stands in front: the rows of the shard or, for a `fixed` column, which is not per
 * row, the entries given with shard_fixed (pack's source: rank 1, dim {3}, fixed). */
struct shard_column {
    const char *name;
    enum st_type type;
    int rank; /* 0 .. ST_RANK - 1 */
    int64_t dim[ST_RANK - 1];
    bool fixed;
};

/* ---- writing ---- */

struct shard_options {
    const char *name;  /* "packed" or "hidden" */
    const char *stage; /* "pack", "extract": the tool that writes */
    int part, parts;   /* 0, 1 when not split */
    struct shard_column column[SHARD_COLUMNS];
    int columns;
    const char *const *meta; /* key, value ...: digests of inputs, options that change
                                content; repeated in every shard and the end file */
    int64_t metas;
    const char *input;      /* digest of the input, NULL while a stream's is not known:
                               a whole run with another `input` in its end file is
                               refused */
    int64_t rows_per_shard; /* 0: SHARD_BYTES rule */
    int64_t first_row; /* index of the first row (draft-extract --from-row, --part) */
};

struct shard_writer;
struct shard_view; /* below */

/* shard_create starts a run in folder `dir` (made when absent), or on stdout when dir
 * is "-".  A folder that already holds a whole run of the same content (same stage,
 * part, columns and metadata) returns 1 and *out is NULL: nothing to do.  A partial run
 * of the same content is resumed: *have_rows tells how many rows are there, in full
 * shards without a gap, and the caller goes on with the next.  All headers are
 * verified, and the data of the last shard; readers verify all.  A run of other content
 * is refused (E_CONFIG), and so is a damaged file (E_FORMAT): once it is removed, it
 * and what follows are made again.  Until the writer ends it holds the folder's lock
 * (DIR/.NAME.lock, see lock.h): another one of the same run or part is E_AGAIN. */
int shard_create(struct shard_writer **out, const char *dir,
                 const struct shard_options *o, int64_t *have_rows);

/* shard_resumed is the last full shard of the partial run that was resumed, valid until
 * the first shard_row; NULL when nothing was there.  What it copied from its input can
 * be compared with the input that is there now. */
const struct shard_view *shard_resumed(const struct shard_writer *w);

/* shard_row returns where the next row's columns go (fixed columns: NULL): pointers
 * into the shard being filled, in column order, valid until the next call.  Every byte
 * is to be filled. */
int shard_row(struct shard_writer *w, void *column[SHARD_COLUMNS]);

/* shard_fixed adds n entries of `fixed` column c to the shard being filled, after the
 * shard_row of the row that speaks of them (which may begin a shard).  Returns the
 * index of the first of them in that shard, or E_MEMORY. */
int64_t shard_fixed(struct shard_writer *w, int c, const void *entries, int64_t n);

/* shard_end_meta adds a pair to the end file alone: what is known only when the input
 * has ended (a stream's digest), so that folder and stream stay the same bytes. */
int shard_end_meta(struct shard_writer *w, const char *key, const char *value);

/* shard_flush writes the shard being filled, whole, if it has rows; called by shard_row
 * when it is full. */
int shard_flush(struct shard_writer *w);

/* shard_written is how many bytes of shards the writer has put in place or on stdout;
 * what an earlier run left does not count. */
int64_t shard_written(const struct shard_writer *w);

/* shard_finish flushes and writes the end file; shard_abandon leaves a partial run that
 * can be resumed.  One of the two ends a writer. */
int shard_finish(struct shard_writer *w);
void shard_abandon(struct shard_writer *w);

/* ---- reading ---- */

struct shard_reader;

/* One shard's worth of rows, verified: every tensor's xxh3 and the header's own. */
struct shard_view {
    const char *name; /* file, or "stdin" with the shard's number: for messages */
    struct st_header header; /* owned by the reader */
    int64_t first_row, rows; /* index of its first row and how many; rows are numbered
                                through all inputs, from the first run's first row */
    const void *data;        /* 64-byte aligned; borrowed until the next call */
};

/* shard_open reads runs from the given paths in order: folders (parts in order, a
 * missing one refused), single shards, files that hold a whole stream, or "-" for
 * stdin. All must be of the same stage and the same column shapes, else E_CONFIG.  A
 * folder run without its end file is E_FORMAT "incomplete".
 *
 * A thread of the reader's own reads and verifies the next shard while the caller works
 * on this one, so that both ends of a pipe are busy; two shards are in memory at once.
 * shard_open waits for the first. */
int shard_open(struct shard_reader **out, char *const *path, int paths);

/* shard_next gives the next shard (1), or 0 after the last end file.  Checksum
 * failures, cut streams, rows out of sequence are E_FORMAT naming file and tensor. */
int shard_next(struct shard_reader *r, struct shard_view *v);

/* shard_watch makes a waiting shard_next return E_AGAIN soon after *stop (tool_stop)
 * has become non-zero. */
void shard_watch(struct shard_reader *r, const volatile sig_atomic_t *stop);

/* shard_seek goes to the shard that holds `row` (or to the end, for the row behind the
 * last); E_CONFIG outside the input or when some of it is a stream. */
int shard_seek(struct shard_reader *r, int64_t row);

/* shard_meta is the metadata of the run that the current shard belongs to (before the
 * first shard_next: the first run), or NULL.  What only an end file holds (see
 * shard_end_meta) is there for folders and, in a stream, after its end. */
const char *shard_meta(const struct shard_reader *r, const char *key);
const void *shard_column(const struct shard_view *v, const char *name,
                         const struct st_tensor **out); /* NULL when absent */
int64_t shard_total_rows(const struct shard_reader *r); /* -1 for a stream */

/* shard_digest identifies the whole input: the end file's header_xxh3, or, of several,
 * xxh3-64 over them (8 bytes each, little-endian).  A single shard counts with its own.
 * For a stream it is known once shard_next has returned 0; before that E_AGAIN. */
int shard_digest(const struct shard_reader *r, uint64_t *out);
void shard_close(struct shard_reader *r);

#endif
