/* SPDX-License-Identifier: MIT */
/* mma.cuh - one function per instruction that C++ has no name for: ldmatrix, mma,
 * cp.async, mbarrier, shared memory by address, ex2.
 *
 * No other file of this folder has inline assembly: tests replace this one, and run the
 * rest on a CPU (tests/emu).
 * Addresses in shared memory are 32-bit numbers, from smem_base() on.  All of it exists
 * from sm_90 on. */
#ifndef MMA_CUH
#define MMA_CUH

#include "prim.cuh"

extern __shared__ __align__(1024) unsigned char dynamic_smem[];

static __device__ __forceinline__ uint32_t smem_base()
{
    return (uint32_t)__cvta_generic_to_shared(dynamic_smem);
}

/* ---- copies from global to shared memory; zero when not `real` ---- */

static __device__ __forceinline__ void cp16(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to),
                 "l"(from));
}

static __device__ __forceinline__ void cp16(uint32_t to, const void *from, bool real)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(real ? 16 : 0));
}

static __device__ __forceinline__ void cp8(uint32_t to, const void *from, bool real)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
                 "r"(real ? 8 : 0));
}

static __device__ __forceinline__ void cp4(uint32_t to, const void *from, bool real)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(real ? 4 : 0));
}

/* ---- tensor cores ---- */

/* Four 8 x 8 pieces of 16-bit elements; lane l gives the address of row l % 8 of piece
 * l / 8. */
static __device__ __forceinline__ void ldmatrix(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

static __device__ __forceinline__ void ldmatrix_trans(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

/* d[16 x 8] += a[16 x 16] b[16 x 8], bf16 with f32 sums. */
static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4],
                                           uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two floats, rounded to bf16, in one word. */
static __device__ __forceinline__ uint32_t pack2(float low, float high)
{
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* The same in f16: three more bits, but nothing beyond 65504. */
static __device__ __forceinline__ void mma_half(float (&d)[4], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t pack2_half(float low, float high)
{
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

static __device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* threadIdx.x read anew, so that what follows from it is not kept in registers. */
static __device__ __forceinline__ int fresh_thread()
{
    int t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

/* ---- named barriers: one warp arrives, another waits for it ---- */

static __device__ __forceinline__ void pair_arrive(int id)
{
    asm volatile("barrier.cta.arrive %0, 64;" ::"r"(id) : "memory");
}

static __device__ __forceinline__ void pair_wait(int id)
{
    asm volatile("barrier.cta.sync %0, 64;" ::"r"(id) : "memory");
}

/* ---- barriers in shared memory ---- */

static __device__ __forceinline__ void bar_init(uint32_t bar, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count)
                 : "memory");
}

static __device__ __forceinline__ void bar_arrive(uint32_t bar)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(bar)
                 : "memory");
}

/* Arrives once all copies that this thread has begun are there. */
static __device__ __forceinline__ void bar_arrive_copied(uint32_t bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar)
                 : "memory");
}

static __device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity)
{
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; "
                 "@p bra.uni E; bra.uni W; E: }" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

/* ---- shared memory by address; never kept in registers or moved over a barrier ----
 */

static __device__ __forceinline__ void st16(uint32_t at, const uint32_t (&v)[4])
{
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(v[0]),
                 "r"(v[1]), "r"(v[2]), "r"(v[3])
                 : "memory");
}

static __device__ __forceinline__ void ld16(uint32_t (&v)[4], uint32_t at)
{
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
}

static __device__ __forceinline__ void st4(uint32_t at, uint32_t v)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}

static __device__ __forceinline__ void ld_float2(float &x, float &y, uint32_t at)
{
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                 : "=f"(x), "=f"(y)
                 : "r"(at)
                 : "memory");
}

static __device__ __forceinline__ int4 ld_int4(uint32_t at)
{
    int4 v;
    asm volatile("ld.shared.v4.s32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

static __device__ __forceinline__ int2 ld_int2(uint32_t at)
{
    int2 v;
    asm volatile("ld.shared.v2.s32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "r"(at)
                 : "memory");
    return v;
}

#endif
