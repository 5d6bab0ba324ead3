/* SPDX-License-Identifier: MIT */
/* workspace.h - the memory that a GPU's work takes beside its tensors: sizes and
 * reasons.
 *
 * One allocation when the device is opened, so that no step allocates.  The sizes do
 * not depend on the recipe; a shape that needs more is refused by the kernel that needs
 * it. Builds without CUDA print them, too: plans need no card. */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include "dev.h"

enum {
    CUDA_SCRATCH_BYTES = 64 << 20,
    CUDA_LT_BYTES = 32 << 20,
    CUDA_LOGITS_BYTES = 512 << 20,
    CUDA_WORKSPACE_BYTES = CUDA_SCRATCH_BYTES + CUDA_LT_BYTES + CUDA_LOGITS_BYTES
};

static const struct dev_part cuda_parts[] = {
    {"scratch",
     "attention: order of work, delta, sums of pieces; partial sums of norms; "
     "chunks of DeltaNet",
     CUDA_SCRATCH_BYTES},
    {"products", "what cuBLASLt may use inside a product", CUDA_LT_BYTES},
    {"logits", "one chunk of scores over the vocabulary", CUDA_LOGITS_BYTES},
    {0}};

#endif
