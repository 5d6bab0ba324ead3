/* SPDX-License-Identifier: MIT */
/* trial.h - a training step on drawn numbers: no files, the shapes of a real run.
 *
 * Weights, the target's two matrices and the hidden states are normal deviates drawn on
 * the device; the row is one document of random tokens behind a prompt of three.  All
 * else is what training does, by the same code and in the same memory. */
#ifndef TRIAL_H
#define TRIAL_H

#include "room.h"

struct trial_shape {
    struct drafter_config config;
    int64_t length, anchors;
    uint64_t seed;
};

struct trial {
    struct dev *dev;
    struct room room;
    struct drafter_row row;
    struct drafter_result result; /* of the last step; hit is not kept */
    struct arena frozen;          /* embedding and head */
    int32_t *text;                /* owns the row's ids, documents and mask */
};

/* trial_published is a drafter of Qwen3.6-27B with 4 or 5 taps (1704.0M and 1730.2M
 * parameters), every layer full; trial_small has its structure at a size for CPUs. */
struct drafter_config trial_published(int taps);
struct drafter_config trial_small(int taps);

int trial_open(struct trial *t, struct dev *d, const struct trial_shape *s,
               struct log *log);
void trial_close(struct trial *t);

/* trial_forward runs a row forward to its loss; trial_step forward and backward, with
 * the gradients set to zero first.  Both wait and fill t->result. */
int trial_forward(struct trial *t);
int trial_step(struct trial *t);

/* trial_norm is the norm of the gradient of the mean loss. */
int trial_norm(struct trial *t, double *norm);

/* trial_chance is what the mean loss of a drafter that knows nothing is, and how far
 * from it such a loss may be: h has length sqrt(H), so a score is normal with variance
 * s^2 = sigma^2 H, and the mean of -z + log sum exp z is ln V + s^2 / 2.  The band is
 * five standard errors of the labels' scores, and of the sum over V scores, which all
 * rows share. */
void trial_chance(const struct trial *t, double *loss, double *band);

/* trial_flop counts the operations in the matrix products of a step, without attention:
 * what must be multiplied, slots without a label and the gradient of the hidden states
 * left out. */
double trial_flop(const struct trial *t);

#endif
