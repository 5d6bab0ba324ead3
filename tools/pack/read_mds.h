/* SPDX-License-Identifier: MIT */
/* read_mds.h - the shards that MosaicML's streaming writes, and the index of a folder
 * of them.
 *
 *     shard:   n u32, offsets u32[n + 1] of the samples in the file, a JSON object with
 *              column_names, column_encodings and column_sizes, samples
 *     sample:  a size u32 for each column that has none in the header, then the columns
 *
 * Columns are named as in fields.h, and are ndarray (with or without type and shape in
 * the header), or bytes, whose type --dtype says.  Other columns are passed over: of
 * what they hold nothing is decoded. */
#ifndef READ_MDS_H
#define READ_MDS_H

#include "reader.h"

/* The functions of struct reader. */
bool mds_is(const char *bytes, size_t n);
int mds_open(void **state, struct inflow *in, const struct read_rules *rules);
void mds_close(void *state);
int mds_block(struct block *b, void *state, struct inflow *in);
int mds_parse(struct documents *out, const struct block *b,
              const struct read_rules *rules);

#endif
