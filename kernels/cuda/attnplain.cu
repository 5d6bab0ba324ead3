/* SPDX-License-Identifier: MIT */
/* attnplain.cu - attention without tiles: any head width, f32 or bf16.
 *
 * For what the fused kernels do not take: f32 (the mode of tests), head widths other
 * than 64, 128 and, forward, 256.  A warp has one query row, or one key, and goes
 * through what belongs to it in ascending order, lanes across the head; scores are f32
 * and exp is the exact one.  Nothing is kept between rows, so keys are read once a row:
 * slow, and simple enough to be believed.  Twins: cpu/attn.c, cpu/attnbwd.c. */
#include "attn.cuh"

enum { THREADS = 128, WARPS = THREADS / 32, PARTS = OP_HEAD_MAX / 32 };

/* A row of a head: lane l has elements l, l + 32, and so on; 0 past the width. */
template <typename T>
static __device__ __forceinline__ void read_head(float (&r)[PARTS], const T *p,
                                                 int width, int lane)
{
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        r[i] = lane + 32 * i < width ? to_f32(p[lane + 32 * i]) : 0.0f;
}

template <typename T>
static __device__ __forceinline__ void write_head(T *p, const float (&r)[PARTS],
                                                  float factor, int width, int lane)
{
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        if (lane + 32 * i < width)
            p[lane + 32 * i] = from_f32<T>(r[i] * factor);
}

static __device__ __forceinline__ float dot(const float (&a)[PARTS],
                                            const float (&b)[PARTS])
{
    float v = 0.0f;
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        v += a[i] * b[i];
    return warp_sum(v);
}

static __device__ __forceinline__ void add(float (&sum)[PARTS], float w,
                                           const float (&v)[PARTS])
{
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        sum[i] += w * v[i];
}

static __device__ __forceinline__ float lse_of(const struct attn_args &x, int64_t row)
{
    return x.lse_short ? to_f32(((const bf16 *)x.lse)[row])
                       : ((const float *)x.lse)[row];
}

/* A warp a query row of a head: row = token * n_h + head. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    attn_plain_fwd_kernel(const __grid_constant__ struct attn_args x, int width)
{
    const int lane = threadIdx.x & 31, heads = x.kv_heads * x.group;
    const int64_t row = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (row >= (int64_t)x.tokens * heads)
        return;
    const int t = (int)(row / heads), g = (int)(row % heads) / x.group;
    float q[PARTS], k[PARTS], o[PARTS] = {}, top = -INFINITY, sum = 0.0f;
    read_head(q, (const T *)x.q + row * width, width, lane);
    for (int kind = x.kinds - 1; kind >= 0; kind--) {
        const int2 span = span_of(x, kind, t, true);
        for (int j = span.x; j < span.y; j++) {
            const int64_t at_key = ((int64_t)j * x.kv_heads + g) * width;
            read_head(k, (const T *)x.keys[kind].k + at_key, width, lane);
            const float s = dot(q, k) * x.scale, higher = fmaxf(top, s);
            const float shrink = expf(top - higher), p = expf(s - higher);
            read_head(k, (const T *)x.keys[kind].v + at_key, width, lane);
#pragma unroll
            for (int i = 0; i < PARTS; i++)
                o[i] = o[i] * shrink + p * k[i];
            sum = sum * shrink + p;
            top = higher;
        }
    }
    write_head((T *)x.o + row * width, o, sum > 0.0f ? 1.0f / sum : 0.0f, width, lane);
    if (x.lse && lane == 0) {
        const float lse = top + logf(sum);
        if (x.lse_short)
            ((bf16 *)x.lse)[row] = from_f32<bf16>(lse);
        else
            ((float *)x.lse)[row] = lse;
    }
}

/* A warp a query row of a head: dq, and delta into stat[row]. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    attn_plain_dq_kernel(const __grid_constant__ struct attn_args x, int width)
{
    const int lane = threadIdx.x & 31, heads = x.kv_heads * x.group;
    const int64_t row = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (row >= (int64_t)x.tokens * heads)
        return;
    const int t = (int)(row / heads), g = (int)(row % heads) / x.group;
    float q[PARTS], dout[PARTS], k[PARTS], dq[PARTS] = {};
    read_head(q, (const T *)x.q + row * width, width, lane);
    read_head(dout, (const T *)x.dout + row * width, width, lane);
    read_head(k, (const T *)x.o_in + row * width, width, lane);
    const float delta = dot(dout, k), lse = lse_of(x, row);
    if (lane == 0)
        x.stat[row] = delta;
    for (int kind = x.kinds - 1; kind >= 0; kind--) {
        const int2 span = span_of(x, kind, t, true);
        for (int j = span.x; j < span.y; j++) {
            const int64_t at_key = ((int64_t)j * x.kv_heads + g) * width;
            read_head(k, (const T *)x.keys[kind].v + at_key, width, lane);
            const float dp = dot(dout, k);
            read_head(k, (const T *)x.keys[kind].k + at_key, width, lane);
            const float p = expf(dot(q, k) * x.scale - lse);
            add(dq, p * (dp - delta), k);
        }
    }
    write_head((T *)x.dq + row * width, dq, x.scale, width, lane);
}

/* A warp a key of a head, after the rows: dk and dv. */
template <typename T>
__global__ void __launch_bounds__(THREADS, 4) // else fewer registers, and spills
    attn_plain_dkv_kernel(const __grid_constant__ struct attn_args x, int kind,
                          int width)
{
    const int lane = threadIdx.x & 31, heads = x.kv_heads * x.group;
    const int64_t at_key = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (at_key >= (int64_t)x.keys[kind].rows * x.kv_heads)
        return;
    const int j = (int)(at_key / x.kv_heads), g = (int)(at_key % x.kv_heads);
    float k[PARTS], v[PARTS], r[PARTS], dk[PARTS] = {}, dv[PARTS] = {};
    read_head(k, (const T *)x.keys[kind].k + at_key * width, width, lane);
    read_head(v, (const T *)x.keys[kind].v + at_key * width, width, lane);
    for (int t = 0; t < x.tokens; t++) {
        const int2 span = span_of(x, kind, t, true);
        if (j < span.x || j >= span.y)
            continue;
        for (int e = 0; e < x.group; e++) {
            const int64_t row = (int64_t)t * heads + g * x.group + e;
            read_head(r, (const T *)x.q + row * width, width, lane);
            const float p = expf(dot(r, k) * x.scale - lse_of(x, row));
            float dout[PARTS];
            read_head(dout, (const T *)x.dout + row * width, width, lane);
            add(dk, p * (dot(dout, v) - x.stat[row]), r);
            add(dv, p, dout);
        }
    }
    write_head((T *)x.keys[kind].dk + at_key * width, dk, x.scale, width, lane);
    write_head((T *)x.keys[kind].dv + at_key * width, dv, 1.0f, width, lane);
}

static void check_width(struct tensor q)
{
    if (q.dim[2] > OP_HEAD_MAX)
        bug("attention of head width %lld, at most %d", (long long)q.dim[2],
            OP_HEAD_MAX);
}

void attn_plain(struct dev *d, struct attn_args *a, struct tensor q)
{
    const int width = (int)q.dim[2];
    const unsigned blocks = blocks_for(q.dim[0] * q.dim[1], WARPS);
    check_width(q);
    BY_TYPE(q, T, {
        launch_plain(d, "attn_plain", attn_plain_fwd_kernel<T>, blocks, THREADS, *a,
                     width);
    });
}

void attn_plain_bwd(struct dev *d, struct attn_args *a, struct tensor q)
{
    const int width = (int)q.dim[2];
    const int64_t rows = q.dim[0] * q.dim[1];
    check_width(q);
    if (rows * (int64_t)sizeof(float) > CUDA_SCRATCH_BYTES)
        bug("plain attention over %lld rows needs more scratch", (long long)rows);
    a->stat = (float *)cuda_state(d)->scratch;
    BY_TYPE(q, T, {
        launch_plain(d, "attn_plain_bwd", attn_plain_dq_kernel<T>,
                     blocks_for(rows, WARPS), THREADS, *a, width);
        for (int kind = 0; kind < a->kinds; kind++) {
            const int64_t keys = (int64_t)a->keys[kind].rows * a->kv_heads;
            if (keys > 0)
                launch_plain(d, "attn_plain_bwd", attn_plain_dkv_kernel<T>,
                             blocks_for(keys, WARPS), THREADS, *a, kind, width);
        }
    });
}
