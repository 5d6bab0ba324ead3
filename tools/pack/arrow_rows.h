/* SPDX-License-Identifier: MIT */
/* arrow_rows.h - from the rows of a run (arrow_run.h) to documents. */
#ifndef ARROW_ROWS_H
#define ARROW_ROWS_H

#include "arrow_run.h"
#include "reader.h"

/* arrow_rows appends the wanted rows of a run, refused ones too; `record` and `index`
 * are those of its first row (reader.h).  E_MEMORY. */
int arrow_rows(struct documents *out, const struct arrow_run *run, int64_t record,
               int64_t index, const struct read_rules *rules);

#endif
