/* SPDX-License-Identifier: MIT */
/* read_arrow.h - Arrow IPC streams and files, as datasets.save_to_disk writes them.
 *
 * The columns are those of JSON lines (read_jsonl.h) and mean the same: input_ids,
 * lists of whole numbers of any width, and a mask, labels or neither, lists of whole
 * numbers or bits.  A list may be null, which is "absent" for a mask, and then the next
 * one counts.  Other columns are passed over.  A record's number is that of its row in
 * the file.
 *
 * A stream must end with its mark: without it, one that was cut behind a batch could
 * not be told from a whole one.  Several streams may follow one another. */
#ifndef READ_ARROW_H
#define READ_ARROW_H

#include "reader.h"

/* The functions of struct reader. */
bool arrow_is(const char *bytes, size_t n);
int arrow_open(void **state, struct inflow *in, const struct read_rules *rules);
void arrow_close(void *state);
int arrow_block(struct block *b, void *state, struct inflow *in);
int arrow_parse(struct documents *out, const struct block *b,
                const struct read_rules *rules);

#endif
