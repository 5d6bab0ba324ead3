/* SPDX-License-Identifier: MIT */
/* report.h - the results as one JSON object and as a table for people. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "log.h"
#include "models.h"
#include "tally.h"

struct report {
    const char *mode;    /* "live", "plain" or "walk" */
    const char *made_of; /* digests of inputs and the options that count */
    const struct tally *drafter, *untrained, *lookup, *plain; /* NULL: not run */
    bool identical; /* every sequence equals plain decoding; live only */
    int64_t ties;   /* sequences that part from it at a tie of the target's scores */
    int lanes;
};

void report_json(struct buf *to, const struct report *r);
void report_table(struct buf *to, const struct report *r);

/* report_origin appends what results depend on: version, digests of the models and of
 * the input, and the options of eval_table that count. */
int report_origin(struct buf *to, const struct models *m, uint64_t input);

/* report_done is 1 when `path` holds a report of the same origin and the other files
 * (NULL-terminated, "" not wanted) exist: nothing is to be done. */
int report_done(const char *path, const char *made_of, const char *const *files);

/* report_put writes both: JSON to `output` and the table to stdout, or, when output is
 * "-", JSON to stdout and the table to the log's stream. */
int report_put(const struct report *r, const char *output, const struct log *log);

#endif
