/* SPDX-License-Identifier: MIT */
/* param.h - the drafter's parameters: one table of names and shapes over flat memory.
 *
 * Weights, gradients and each moment are one allocation with the same layout, so the
 * optimizer is a loop over flat memory and a checkpoint a list of views.  Names are
 * those of z-lab's safetensors files: fc.weight, hidden_norm.weight, layers.{i}...,
 * norm.weight; 11 tensors a layer and 3 globals. */
#ifndef PARAM_H
#define PARAM_H

#include <stdint.h>

#include "config.h"
#include "tensor.h"

struct param {
    char name[64];
    int rank;
    int64_t dim[2];
    int64_t offset; /* elements from the start of the flat memory; 64-element aligned */
};

struct param_table {
    struct param *param; /* owned */
    int64_t params;
    int64_t trained; /* elements of all tensors, without alignment gaps */
    int64_t count;   /* elements of the flat memory */
};

int param_table(struct param_table *t, const struct drafter_config *c);
void param_drop(struct param_table *t);

/* param_view is parameter i inside flat memory `flat` [count] of any type. */
struct tensor param_view(const struct param_table *t, int64_t i, struct tensor flat);

/* param_init fills host memory: matrices normal(0, 0.02), norms 1, keyed by (seed,
 * name); gaps 0. */
void param_init(float *flat, const struct param_table *t, uint64_t seed);

#endif
