/* SPDX-License-Identifier: MIT */
/* optimizer.h - AdamW on fp32 masters, over flat memory.
 *
 * Gradients arrive as the gradient of the SUM of weighted losses over all rows of a
 * step and all ranks; one number then divides by the sum of the weights and clips, and
 * is applied inside the update.  Where weights are f32 themselves they are their own
 * masters. */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "op.h"

struct optimizer {
    struct adamw base;     /* betas, eps, decay; rate, scale and step are set by step */
    double clip;           /* of the mean gradient's norm; 0: none */
    struct tensor weights; /* the drafter's, borrowed [count] */
    struct tensor grads;   /* act, f32 when rows are accumulated [count] */
    struct tensor master, m, v;    /* f32 [count] */
    struct tensor sum;             /* f64 [1] */
    struct arena gradients, state; /* own the tensors above */
    bool shared;                   /* master is weights */
};

/* optimizer_bytes tells what optimizer_open takes: gradients, and state. */
void optimizer_bytes(const struct dev *d, int64_t count, bool accumulate,
                     size_t *gradients, size_t *state);

/* optimizer_open makes room beside the weights [count]; gradients and moments are zero,
 * and master is not set (optimizer_start). */
int optimizer_open(struct optimizer *o, struct dev *d, struct tensor weights,
                   bool accumulate);
void optimizer_close(struct optimizer *o);

/* optimizer_start sets weights from host masters [count]. */
int optimizer_start(struct optimizer *o, const float *master);

/* optimizer_round brings the weights in line with masters that were put on the device.
 */
void optimizer_round(struct optimizer *o);

/* optimizer_step takes step t (from 1) with rate lr from the gradients of losses whose
 * weights sum to `weight`, and zeroes them.  *norm receives the norm of the mean
 * gradient before clipping.  E_FORMAT when that is not finite; weights and moments are
 * then as they were. */
int optimizer_step(struct optimizer *o, double weight, double lr, int64_t t,
                   double *norm);

#endif
