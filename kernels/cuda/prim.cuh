/* SPDX-License-Identifier: MIT */
/* prim.cuh - what kernels are made of: vectors of elements, warp and block sums.
 *
 * One function per idea, nothing that knows a model.  A vec<T> is 16 bytes of elements,
 * read and written in one access; kernels work on 8 bf16 or 4 f32 at a time where
 * widths and pointers allow it, else on one. */
#ifndef PRIM_CUH
#define PRIM_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda.h"

using bf16 = __nv_bfloat16;

static __device__ __forceinline__ float to_f32(float x)
{
    return x;
}
static __device__ __forceinline__ float to_f32(bf16 x)
{
    return __bfloat162float(x);
}
static __device__ __forceinline__ float to_f32(double x)
{
    return (float)x;
}

template <typename T> static __device__ __forceinline__ T from_f32(float x);
template <> __device__ __forceinline__ float from_f32<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ bf16 from_f32<bf16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* N elements of T as floats in registers; N * sizeof(T) is 16, or N is 1. */
template <typename T, int N>
static __device__ __forceinline__ void load(float out[N], const T *p)
{
    if constexpr (N == 1) {
        out[0] = to_f32(*p);
    } else {
        static_assert(N * sizeof(T) % 16 == 0, "whole 16-byte accesses");
        uint4 raw[N * sizeof(T) / 16];
#pragma unroll
        for (int i = 0; i < (int)(N * sizeof(T) / 16); i++)
            raw[i] = reinterpret_cast<const uint4 *>(p)[i];
        const T *e = reinterpret_cast<const T *>(raw);
#pragma unroll
        for (int i = 0; i < N; i++)
            out[i] = to_f32(e[i]);
    }
}

template <typename T, int N>
static __device__ __forceinline__ void store(T *p, const float in[N])
{
    if constexpr (N == 1) {
        *p = from_f32<T>(in[0]);
    } else {
        uint4 raw[N * sizeof(T) / 16];
        T *e = reinterpret_cast<T *>(raw);
#pragma unroll
        for (int i = 0; i < N; i++)
            e[i] = from_f32<T>(in[i]);
#pragma unroll
        for (int i = 0; i < (int)(N * sizeof(T) / 16); i++)
            reinterpret_cast<uint4 *>(p)[i] = raw[i];
    }
}

static __device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + __expf(-x));
}

static __device__ __forceinline__ float shfl_xor(float v, int mask)
{
    return __shfl_xor_sync(0xffffffffu, v, mask);
}

static __device__ __forceinline__ float shfl(float v, int lane)
{
    return __shfl_sync(0xffffffffu, v, lane);
}

static __device__ __forceinline__ bool vote(bool p)
{
    return __any_sync(0xffffffffu, p);
}

static __device__ __forceinline__ int warp_least(int v)
{
    return __reduce_min_sync(0xffffffffu, v);
}

static __device__ __forceinline__ int warp_most(int v)
{
    return __reduce_max_sync(0xffffffffu, v);
}

static __device__ __forceinline__ int warp_total(int v)
{
    return __reduce_add_sync(0xffffffffu, v);
}

static __device__ __forceinline__ float low_of(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}

static __device__ __forceinline__ float high_of(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

static __device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, o);
    return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, o));
    return x;
}

/* block_sum gives every thread the sum over a block of up to 1024 threads, in the same
 * order whatever happens; space_smem holds 32 floats and may be reused after the call.
 */
static __device__ __forceinline__ float block_sum(float x, float *space_smem)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5,
        warps = (blockDim.x + 31) >> 5;
    x = warp_sum(x);
    if (lane == 0)
        space_smem[warp] = x;
    __syncthreads();
    x = lane < warps ? space_smem[lane] : 0.0f;
    x = warp_sum(x);
    __syncthreads();
    return x;
}

/* block_sum2 sums two numbers at once, with one barrier before the result and one
 * after; space_smem holds 32. */
static __device__ __forceinline__ float2 block_sum2(float2 x, float2 *space_smem)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5,
        warps = (blockDim.x + 31) >> 5;
    x = make_float2(warp_sum(x.x), warp_sum(x.y));
    if (lane == 0)
        space_smem[warp] = x;
    __syncthreads();
    x = lane < warps ? space_smem[lane] : make_float2(0.0f, 0.0f);
    x = make_float2(warp_sum(x.x), warp_sum(x.y));
    __syncthreads();
    return x;
}

/* note_fault keeps the first thing a kernel finds wrong. */
static __device__ __forceinline__ void note_fault(struct cuda_fault *f, int kind,
                                                  long long position, int value,
                                                  const char *what = nullptr)
{
    if (atomicCAS_system(&f->kind, FAULT_NONE, kind) == FAULT_NONE) {
        f->position = position;
        f->value = value;
        f->what = what;
    }
}

static inline cudaStream_t stream_of(const struct dev *d)
{
    return (cudaStream_t)cuda_state(d)->stream;
}

/* Can rows of h elements be read 8 at a time?  True for a null pointer. */
static inline bool wide(const void *p, int64_t h)
{
    return h % 8 == 0 && (uintptr_t)p % 16 == 0;
}

static inline unsigned blocks_for(int64_t items, int per_block)
{
    return (unsigned)((items + per_block - 1) / per_block);
}

/* BY_TYPE runs `call` with T standing for the element type of a tensor: bf16 or float.
 */
#define BY_TYPE(tensor, T, ...)                                                        \
    do {                                                                               \
        if ((tensor).type == DT_BF16) {                                                \
            using T = bf16;                                                            \
            __VA_ARGS__;                                                               \
        } else if ((tensor).type == DT_F32) {                                          \
            using T = float;                                                           \
            __VA_ARGS__;                                                               \
        } else {                                                                       \
            bug("element type %s in a CUDA kernel", dtype_name((tensor).type));        \
        }                                                                              \
    } while (0)

#endif
