/* SPDX-License-Identifier: MIT */
/* launch.cuh - launching a kernel that takes dynamic shared memory.
 *
 * Threads and bytes come from its line in cuda_kernels (cuda.h), the table that
 * scripts/kernels.sh checks. */
#ifndef LAUNCH_CUH
#define LAUNCH_CUH

#include "prim.cuh"

template <typename K, typename A>
static inline void launch(struct dev *d, int index, K *kernel, dim3 grid, const A &args)
{
    const struct cuda_kernel *k = &cuda_kernels[index];
    const void *f = (const void *)kernel;
    void *list[] = {(void *)&args};
    if (grid.x == 0 || grid.y == 0)
        return;
    cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, k->dynamic);
    cudaFuncSetAttribute(f, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutMaxShared);
    cudaLaunchKernel(f, grid, dim3((unsigned)k->threads), list, (size_t)k->dynamic,
                     stream_of(d));
    cuda_launched(d, k->name);
}

#endif
