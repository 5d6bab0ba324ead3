/* SPDX-License-Identifier: MIT */
/* device.h - the words and functions of device code, in C++ for a CPU.
 *
 * Included before everything else in an emulated kernel file.  It also stands for
 * mma.cuh, the one header of kernels/cuda with instructions of the card. */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "emu.h"
#include <cuda_runtime.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __shared__   static __attribute__((section("emu_smem")))

static const struct emu_size &threadIdx = emu_here.thread, &blockIdx = emu_here.block;
static const struct emu_size &blockDim = emu_here.block_size,
                             &gridDim = emu_here.grid_size;

/* ---- vectors ---- */

#define EMU_VECTOR2(T, name, bytes)                                                    \
    struct alignas(bytes) name {                                                       \
        T x, y;                                                                        \
    };                                                                                 \
    static inline name make_##name(T x, T y)                                           \
    {                                                                                  \
        return {x, y};                                                                 \
    }
#define EMU_VECTOR4(T, name)                                                           \
    struct alignas(16) name {                                                          \
        T x, y, z, w;                                                                  \
    };                                                                                 \
    static inline name make_##name(T x, T y, T z, T w)                                 \
    {                                                                                  \
        return {x, y, z, w};                                                           \
    }
EMU_VECTOR2(int, int2, 8)
EMU_VECTOR2(unsigned, uint2, 8)
EMU_VECTOR2(float, float2, 8)
EMU_VECTOR2(double, double2, 16)
EMU_VECTOR4(int, int4)
EMU_VECTOR4(unsigned, uint4)
EMU_VECTOR4(float, float4)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

/* ---- launches ---- */

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};

template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c,
                                             void (*kernel)(P...), A &&...args)
{
    auto call = [&](P... as) {
        auto body = [&] { kernel(as...); };
        const dim3 &g = c->gridDim, &b = c->blockDim;
        emu_launch((const void *)kernel, {g.x, g.y, g.z}, {b.x, b.y, b.z},
                   c->dynamicSmemBytes, [](void *f) { (*(decltype(body) *)f)(); },
                   &body);
    };
    call(args...);
    return cudaSuccess;
}

/* ---- arithmetic ---- */

template <typename A, typename B>
static constexpr std::common_type_t<A, B> min(A a, B b)
{
    return b < a ? b : a;
}

template <typename A, typename B>
static constexpr std::common_type_t<A, B> max(A a, B b)
{
    return a < b ? b : a;
}

static inline float __uint_as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t __float_as_uint(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

#define __expf expf // libm has its own functions of these names
#define __logf logf

static inline float __fdividef(float a, float b)
{
    return a / b;
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

static inline double cospi(double x)
{
    return cos(M_PI * (x - 2 * rint(x / 2)));
}

static inline void sincospif(float x, float *s, float *c)
{
    *s = (float)sin(M_PI * (double)x);
    *c = (float)cos(M_PI * (double)x);
}

template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}

/* One thread of the program runs at a time: nothing comes between. */
static inline int atomicCAS_system(int *p, int expected, int value)
{
    int was = *p;
    if (was == expected)
        *p = value;
    return was;
}

/* ---- threads together ---- */

static inline void __syncthreads()
{
    emu_barrier(0, 0, true);
}

static inline void __syncwarp(uint32_t lanes = 0xffffffffu)
{
    emu_meet("__syncwarp", lanes, nullptr, 0, nullptr);
}

template <typename T>
static inline T emu_from(const char *what, uint32_t lanes, T v, int lane)
{
    static_assert(sizeof v <= sizeof(struct emu_slot), "fits in a slot");
    const struct emu_slot *slot = emu_meet(what, lanes, &v, sizeof v, nullptr);
    memcpy(&v, slot[lane & (EMU_LANES - 1)].bytes, sizeof v);
    return v;
}

template <typename T>
static inline T __shfl_xor_sync(uint32_t lanes, T v, int mask, int width = 32)
{
    (void)width;
    return emu_from("__shfl_xor_sync", lanes, v, emu_here.lane ^ mask);
}

template <typename T>
static inline T __shfl_sync(uint32_t lanes, T v, int lane, int width = 32)
{
    return emu_from("__shfl_sync", lanes, v,
                    (emu_here.lane & ~(width - 1)) | (lane & (width - 1)));
}

template <typename T>
static inline T __shfl_up_sync(uint32_t lanes, T v, unsigned by, int width = 32)
{
    int at = emu_here.lane, from = at - (int)by;
    return emu_from("__shfl_up_sync", lanes, v, from < (at & ~(width - 1)) ? at : from);
}

template <typename T>
static inline T __shfl_down_sync(uint32_t lanes, T v, unsigned by, int width = 32)
{
    int at = emu_here.lane, from = at + (int)by;
    return emu_from("__shfl_down_sync", lanes, v,
                    from > (at | (width - 1)) ? at : from);
}

/* emu_all folds what the lanes bring. */
template <typename T, typename F>
static inline T emu_all(const char *what, uint32_t lanes, T v, F fold)
{
    const struct emu_slot *slot = emu_meet(what, lanes, &v, sizeof v, nullptr);
    bool first = true;
    for (int i = 0; i < EMU_LANES; i++)
        if (lanes >> i & 1) {
            T other;
            memcpy(&other, slot[i].bytes, sizeof other);
            v = first ? other : fold(v, other);
            first = false;
        }
    return v;
}

static inline int __any_sync(uint32_t lanes, int p)
{
    return emu_all("__any_sync", lanes, p != 0, [](bool a, bool b) { return a || b; });
}

static inline int __all_sync(uint32_t lanes, int p)
{
    return emu_all("__all_sync", lanes, p != 0, [](bool a, bool b) { return a && b; });
}

static inline uint32_t __ballot_sync(uint32_t lanes, int p)
{
    return emu_all("__ballot_sync", lanes, p ? 1u << emu_here.lane : 0u,
                   [](uint32_t a, uint32_t b) { return a | b; });
}

template <typename T> static inline T __reduce_min_sync(uint32_t lanes, T v)
{
    return emu_all("__reduce_min_sync", lanes, v, [](T a, T b) { return min(a, b); });
}

template <typename T> static inline T __reduce_max_sync(uint32_t lanes, T v)
{
    return emu_all("__reduce_max_sync", lanes, v, [](T a, T b) { return max(a, b); });
}

template <typename T> static inline T __reduce_add_sync(uint32_t lanes, T v)
{
    return emu_all("__reduce_add_sync", lanes, v, [](T a, T b) { return a + b; });
}

#include <cuda_bf16.h>

#include "emumma.h"

#endif
