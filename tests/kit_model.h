/* SPDX-License-Identifier: MIT */
/* kit_model.h - what the tests of networks share: checkpoints, golden files, memory.
 *
 * On the CPU device memory is host memory, so tests look into tensors directly. */
#ifndef KIT_MODEL_H
#define KIT_MODEL_H

#include "dev.h"
#include "safetensors.h"

/* A tensor of a checkpoint that a test writes; data is borrowed. */
struct kit_tensor {
    const char *name;
    enum st_type type;
    int rank;
    int64_t dim[ST_RANK];
    const void *data;
};

/* kit_st_write writes a safetensors file. */
void kit_st_write(const char *path, const struct kit_tensor *t, int64_t n);

/* kit_golden is the data of a tensor of an open file, which must have `type`; its
 * element count goes to n unless NULL. */
const void *kit_golden(const struct st_file *f, const char *name, enum st_type type,
                       int64_t *n);

/* kit_bf16 rounds to bf16 and back, in place. */
void kit_bf16(float *x, int64_t n);

/* kit_tensor_new makes a tensor in memory of its own, freed by kit_tensor_free. */
struct tensor kit_tensor_new(enum dtype type, int rank, const int64_t *dim);
void kit_tensor_free(struct tensor *t);

/* kit_arena opens a working arena of exactly `bytes`, full of NaN, so that what is read
 * before it was written shows; kit_arena_spent closes it and
 * demands that all of it was used at some time and none is in use now. */
void kit_arena(struct arena *a, struct dev *d, size_t bytes);
void kit_arena_spent(struct arena *a);

#endif
