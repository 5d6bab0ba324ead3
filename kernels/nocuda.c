/* SPDX-License-Identifier: MIT */
/* nocuda.c - what stands for the CUDA backend in a build without CUDA: a refusal. */
#include "backend.h"

#include "cuda/cuda.h"
#include "err.h"

static int refuse(struct dev *d, int index)
{
    (void)d;
    (void)index;
    return err_set(E_CONFIG, "this build has no CUDA, build with make CUDA=1");
}

/* What is planned without a card: a weight is packed as it is. */
static size_t pack_bytes(const struct dev *d, struct tensor w)
{
    (void)d;
    return tensor_bytes(&w);
}

const struct backend cuda_backend = {.name = "cuda",
                                     .act = DT_BF16,
                                     .parts = cuda_parts,
                                     .open = refuse,
                                     .pack_bytes = pack_bytes};

double cuda_mma_peak(struct dev *d, int loops)
{
    (void)loops;
    bug("mma.sync on the %s backend", d->ops->name);
}
