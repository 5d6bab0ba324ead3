/* SPDX-License-Identifier: MIT */
/* read_tar.h - tars of .json and .npy files, WebDataset's shards among them.
 *
 * Members that follow one another and whose names agree up to the first dot of the last
 * component are one record: KEY.json, with what a line of JSON lines holds, or arrays,
 * KEY.input_ids.npy (also KEY.tokens.npy or KEY.npy) and KEY.loss_mask.npy,
 * KEY.labels.npy ... (fields.h); arrays win over the JSON.  Other members of a record
 * are ignored, and so are folders, names without a dot inside, names that file_is_input
 * refuses and WebDataset's own ("__...__").
 *
 * Names are texts: nothing is written.  A record is refused when one of its names is
 * absolute or has a ".." component, when one is a link or a device, or too large. */
#ifndef READ_TAR_H
#define READ_TAR_H

#include "reader.h"

/* The functions of struct reader. */
bool tar_is(const char *bytes, size_t n);
int tar_open(void **state, struct inflow *in, const struct read_rules *rules);
void tar_close(void *state);
int tar_block(struct block *b, void *state, struct inflow *in);
int tar_parse(struct documents *out, const struct block *b,
              const struct read_rules *rules);

#endif
