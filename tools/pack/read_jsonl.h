/* SPDX-License-Identifier: MIT */
/* read_jsonl.h - one JSON object a line: input_ids, and which of them are supervised.
 *
 *     {"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1]}
 *
 * The mask is, in this order of preference, loss_mask, assistant_mask or
 * assistant_masks (0, 1, false, true), or labels (-100: not supervised, otherwise the
 * token itself); without any of them every token is supervised.  attention_mask may be
 * there when it is all ones.  A list that is null is absent.  Other keys are ignored.
 * A record's number is that of its line; blank lines count and are no records. */
#ifndef READ_JSONL_H
#define READ_JSONL_H

#include "reader.h"

/* The functions of struct reader. */
bool jsonl_is(const char *bytes, size_t n);
int jsonl_open(void **state, struct inflow *in, const struct read_rules *rules);
int jsonl_block(struct block *b, void *state, struct inflow *in);
int jsonl_parse(struct documents *out, const struct block *b,
                const struct read_rules *rules);

/* jsonl_line appends one record, taking the strict way through jansson: what is
 * accepted, and why not, is decided here.  scan_line (scan.h) is the fast way for
 * ordinary records.  What is too large for jansson in bounded memory is refused. */
int jsonl_line(struct documents *out, const char *line, size_t n, int64_t record,
               int64_t vocab);

#endif
