/* SPDX-License-Identifier: MIT */
/* launch.cuh - launching a kernel on the device's stream.
 *
 *     launch_plain   grid and threads from the caller, static shared memory alone
 *     launch         threads and bytes of dynamic shared memory from the kernel's line
 *                    in cuda_kernels (cuda.h), the table that scripts/kernels.sh checks
 *     launch_alone   as launch, with all the shared memory that a block may have: one
 *                    block a multiprocessor, for few blocks that would else share one
 *                    while others idle
 *
 * Arguments become the kernel's parameter types; a launch that fails is the device's
 * error.  A grid of nothing is no launch. */
#ifndef LAUNCH_CUH
#define LAUNCH_CUH

#include "prim.cuh"

template <typename... P, typename... A>
static inline void launch_sized(struct dev *d, const char *name, void (*kernel)(P...),
                                dim3 grid, int threads, int dynamic, const A &...args)
{
    cudaLaunchConfig_t c = {};
    c.gridDim = grid;
    c.blockDim = dim3((unsigned)threads);
    c.dynamicSmemBytes = (size_t)dynamic;
    c.stream = stream_of(d);
    if (grid.x == 0 || grid.y == 0)
        return;
    cudaLaunchKernelEx(&c, kernel, args...);
    cuda_launched(d, name);
}

template <typename... P, typename... A>
static inline void launch_plain(struct dev *d, const char *name, void (*kernel)(P...),
                                dim3 grid, int threads, const A &...args)
{
    launch_sized(d, name, kernel, grid, threads, 0, args...);
}

template <typename... P, typename... A>
static inline void launch_listed(struct dev *d, int index, int dynamic,
                                 void (*kernel)(P...), dim3 grid, const A &...args)
{
    const struct cuda_kernel *k = &cuda_kernels[index];
    const void *f = (const void *)kernel;
    cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic);
    cudaFuncSetAttribute(f, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutMaxShared);
    launch_sized(d, k->name, kernel, grid, k->threads, dynamic, args...);
}

template <typename... P, typename... A>
static inline void launch(struct dev *d, int index, void (*kernel)(P...), dim3 grid,
                          const A &...args)
{
    launch_listed(d, index, cuda_kernels[index].dynamic, kernel, grid, args...);
}

template <typename... P, typename... A>
static inline void launch_alone(struct dev *d, int index, void (*kernel)(P...),
                                dim3 grid, const A &...args)
{
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                           cuda_state(d)->index);
    launch_listed(d, index, most, kernel, grid, args...);
}

#endif
