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
#include "par.h"
#include "tensor.h"

/* Places in the table: layer l's tensor j is param_layer(l) + j; the final norm is
 * last. */
enum { PARAM_FC, PARAM_HIDDEN_NORM, PARAM_GLOBALS };
enum {
    PARAM_INPUT_NORM,
    PARAM_Q,
    PARAM_K,
    PARAM_V,
    PARAM_O,
    PARAM_Q_NORM,
    PARAM_K_NORM,
    PARAM_POST_NORM,
    PARAM_GATE,
    PARAM_UP,
    PARAM_DOWN,
    PARAM_PER_LAYER
};

struct param {
    char name[64];
    int rank; /* 1: a norm's gain, 2: a matrix [out, in] */
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

/* param_layer is the place of layer l's first tensor. */
int64_t param_layer(int64_t l);

/* param_view is parameter i inside flat memory `flat` [count] of any type; data NULL
 * stays NULL. */
struct tensor param_view(const struct param_table *t, int64_t i, struct tensor flat);

/* param_init fills host memory [count]: matrices normal(0, 0.02), norms 1, gaps 0.
 * Each tensor draws from a key of (seed, name), so that it does not depend on the
 * others, and a normal is one block of its counter, so that the pool (NULL: the caller
 * alone) does not change a bit. */
void param_init(float *flat, const struct param_table *t, uint64_t seed,
                struct par *par);

#endif
