/* SPDX-License-Identifier: MIT */
/* metrics.h - what a step or a validation learned, and the log of it.
 *
 * All sums are doubles, so that ranks can add them up.  Accuracy of slot k: share of
 * labelled slots k whose label was the argmax (marginal, teacher forced).  Acceptance
 * length: mean over blocks of the leading slots that are right, plus one for the bonus
 * token.
 *
 * The log holds one JSON record a line and nothing that depends on time or machine: a
 * run that was interrupted and went on leaves the same log as one that was not. */
#ifndef METRICS_H
#define METRICS_H

#include <stdint.h>

#include "buf.h"
#include "recipe.h"

struct metrics {
    double loss, weight; /* sums: weighted nll, weights */
    double blocks, accepted;
    double rows, tokens;
    double hit[RECIPE_BLOCK_MAX], seen[RECIPE_BLOCK_MAX]; /* by slot */
};
enum { METRICS_SUMS = sizeof(struct metrics) / sizeof(double) };

/* metrics_add adds one row's blocks: hit[i], row[i] of its labelled slots (anchor.h).
 * accepted, labelled: room for `blocks` numbers. */
void metrics_add(struct metrics *m, const int32_t *hit, const int32_t *row,
                 int64_t count, int64_t blocks, int64_t block, int32_t *accepted,
                 int32_t *labelled);

double metrics_loss(const struct metrics *m);       /* mean; NaN without blocks */
double metrics_accuracy(const struct metrics *m);   /* over all slots */
double metrics_acceptance(const struct metrics *m); /* in tokens a pass, 1 .. B */

/* metrics_say writes "loss 2.31 accuracy 0.412 acceptance 2.31". */
void metrics_say(char *out, int64_t size, const struct metrics *m);

/* ---- the log ---- */

struct metrics_log {
    int fd; /* -1: no log */
    const char *path;
    int64_t block;
};

/* One record; fields of a step are left out of a validation's. */
struct metrics_record {
    int64_t step, epoch, row; /* row: next row of the input */
    double rate, norm;
};

/* metrics_open begins a log, or cuts an old one back to what it said up to `step`, and
 * appends.  path NULL: none. */
int metrics_open(struct metrics_log *l, const char *path, int64_t step, int64_t block);
int metrics_step(struct metrics_log *l, const struct metrics_record *r,
                 const struct metrics *m);
int metrics_valid(struct metrics_log *l, int64_t step, const struct metrics *m);

/* metrics_sync makes the log durable: before a checkpoint that relies on it. */
int metrics_sync(struct metrics_log *l);
void metrics_close(struct metrics_log *l);

#endif
