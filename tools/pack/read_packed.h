/* SPDX-License-Identifier: MIT */
/* read_packed.h - rows that draft-pack has packed, to be packed anew (docs/shard.md).
 *
 * Every stretch of a row that came from one place is a document again, with its mask,
 * and padding is gone.  Pieces of a document that was cut stay apart, because the
 * tokens between them may be anywhere, unless they stand side by side in a row.  The
 * record of a document is its entry in `source` of the shard that it is read from (in a
 * stream the entries of all shards are counted on), so it can be traced further back.
 */
#ifndef READ_PACKED_H
#define READ_PACKED_H

#include "reader.h"

/* The functions of struct reader. */
bool packed_is(const char *bytes, size_t n);
int packed_open(void **state, struct inflow *in, const struct read_rules *rules);
void packed_close(void *state);
int packed_block(struct block *b, void *state, struct inflow *in);
int packed_parse(struct documents *out, const struct block *b,
                 const struct read_rules *rules);

/* packed_names tells whether a file's name is that of a shard or an end file;
 * packed_whole checks that the runs in a folder of them are whole. */
bool packed_names(const char *name);
int packed_whole(const char *dir);

#endif
