/* SPDX-License-Identifier: MIT */
/* shard_head.h - the header of a shard or end file, and the names of their files.
 *
 * Private to shard*.c and draft-inspect.  A header's first bytes are fixed, so that a
 * file of ours is known by them and the header's own checksum lies at a fixed place:
 *
 *     bytes 0-7    n, u64 little-endian; 8 + n is a multiple of 4096
 *     bytes 8-39   {"__metadata__":{"header_xxh3":"
 *     bytes 40-55  16 hex digits: xxh3-64 of bytes 0 .. 8 + n with these as '0'
 *
 * Keys: docs/shard.md. */
#ifndef SHARD_HEAD_H
#define SHARD_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "safetensors.h"

enum {
    SHARD_ALIGN = 4096,      /* of the data within a file */
    SHARD_NAME_MAX = 40,     /* bytes of a tensor's or a run's name */
    SHARD_SHARDS_MAX = 99999 /* of a run in a folder: names have five digits */
};

/* Which file of which run. */
struct shard_id {
    const char *stage, *name;
    int64_t part, parts;
    bool end;                /* the end file */
    int64_t index;           /* number of the shard; end file: how many there are */
    int64_t first_row, rows; /* of the shard; end file: of the run */
};

struct shard_head {
    struct st_header st; /* owned */
    struct shard_id id;  /* texts are views of st */
    const char *fixed;   /* names of fixed tensors, separated by spaces */
    uint64_t xxh3;       /* header_xxh3 */
    uint64_t digest;     /* end file: over the shards' header_xxh3 */
};

/* shard_head_is tells whether bytes begin like a file of ours. */
bool shard_head_is(const void *bytes, size_t size);

/* shard_head_parse reads length and header (size = 8 + n bytes in all), checksum first.
 * The caller compares st.data_bytes with what follows. */
int shard_head_parse(struct shard_head *h, const void *bytes, size_t size);
void shard_head_drop(struct shard_head *h);

/* shard_head_map maps a file that holds one header and exactly its data; *data is a
 * view of the mapping.  Messages name the path. */
int shard_head_map(struct shard_head *h, struct file_map *m, const void **data,
                   const char *path);

/* shard_head_check compares every tensor with its checksum. */
int shard_head_check(const struct shard_head *h, const void *data);

/* shard_head_is_fixed tells whether `name` is one of `list`, separated by spaces. */
bool shard_head_is_fixed(const char *list, const char *name);

/* A header to be written.  data[i] are the bytes of tensor i; metas count pairs. */
struct shard_head_new {
    struct shard_id id;
    struct st_tensor *tensor;
    const void *const *data;
    int64_t tensors;
    const char *fixed;
    uint64_t digest; /* end file */
    const char *const *meta;
    int64_t metas;
    const char *const *end_meta; /* end file */
    int64_t end_metas;
};

/* shard_head_write puts length and header into `out` (cleared first) and its checksum
 * into *xxh3. */
int shard_head_write(struct buf *out, const struct shard_head_new *n, uint64_t *xxh3);

/* shard_head_reserved tells whether a metadata key is the format's own. */
bool shard_head_reserved(const char *key);

/* shard_head_sum adds a shard's header_xxh3 to a run's: 8 bytes each, little-endian.
 * xxh3-64 over them is the run's digest. */
void shard_head_sum(struct buf *sums, uint64_t xxh3);

/* shard_name_add appends a file's name: NAME-00000.safetensors, NAME-end...,
 * NAME-1-of-3-00000 ...; the part is as wide as the largest, so that names sort. */
void shard_name_add(struct buf *out, const struct shard_id *id);

/* shard_name_parse reads a file's name: false when it is not one of ours, else the
 * run's name is the first *name_len bytes of `file`. */
bool shard_name_parse(struct shard_id *id, size_t *name_len, const char *file);

#endif
