/* SPDX-License-Identifier: MIT */
/* scan.h - the fast way through an ordinary JSONL record.
 *
 * It knows what records of tokens look like: an object of plain keys whose values are
 * lists of whole numbers, texts, numbers or words.  What it accepts jansson accepts
 * too, with the same result; whatever else it meets (nested values, fractions, keys
 * given twice, ids out of range, masks that do not fit ...) it leaves to jsonl_line,
 * which also finds the words for what is wrong.  tests/test_jsonl.c holds the two
 * against each other. */
#ifndef SCAN_H
#define SCAN_H

#include "document.h"

/* scan_line appends one record: 1, or 0 when it is not an ordinary one and nothing was
 * appended, or E_MEMORY.  line[n] must be there and be a line end or NUL. */
int scan_line(struct documents *out, const char *line, size_t n, int64_t record,
              int64_t vocab);

#endif
