/* SPDX-License-Identifier: MIT */
/* normrope.cu - head norm and rotary embedding in one pass, and the gradient.
 *
 * A block takes one token at a time: its cos and sin are computed once into shared
 * memory, then each of 8 warps takes heads in turn, a lane holding the pairs (i, i +
 * D/2) for i = lane, lane + 32, ...  An angle is the f32 product pos * freq, up to
 * 2^18: it is reduced to half turns in f64, since sincosf's own reduction spills to the
 * stack.  Backward turns the gradient back (the transpose of a rotation), then applies
 * RMSNorm's; a lane sums its columns of dw over its warp's heads and its block's run of
 * tokens, warps are added in order, blocks by cuda_add_partials. Moves 2 T n D elements
 * forward, 3 backward.  Twin: cpu/normrope.c. */
#include "launch.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    PAIRS = OP_HEAD_MAX / 64, /* pairs a lane */
    HALF_MAX = OP_HEAD_MAX / 2,
    PARTS = 264
};

/* The token's angles; the caller synchronises. */
static __device__ void turn(float *cos_smem, float *sin_smem, int pos,
                            const float *__restrict__ freq, int half)
{
    for (int i = threadIdx.x; i < half; i += THREADS) {
        double turns =
            (double)((float)pos * freq[i]) * 0.31830988618379067154; // 1 / pi
        turns -= 2.0 * rint(0.5 * turns);
        sincospif((float)turns, &sin_smem[i], &cos_smem[i]);
    }
}

template <typename T, typename W>
__global__ void __launch_bounds__(THREADS)
    norm_rope_fwd_kernel(T *y, const T *x, const W *__restrict__ w,
                         const int *__restrict__ pos, const float *__restrict__ freq,
                         int heads, int width, float eps)
{
    __shared__ float cos_smem[HALF_MAX], sin_smem[HALF_MAX];
    int half = width / 2, lane = threadIdx.x & 31;
    turn(cos_smem, sin_smem, pos[blockIdx.x], freq, half);
    __syncthreads();
    for (int head = threadIdx.x >> 5; head < heads; head += WARPS) {
        int64_t at = ((int64_t)blockIdx.x * heads + head) * width;
        float a[PAIRS], b[PAIRS], sum = 0.0f;
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            int i = lane + 32 * j;
            a[j] = i < half ? to_f32(x[at + i]) : 0.0f;
            b[j] = i < half ? to_f32(x[at + i + half]) : 0.0f;
            sum += a[j] * a[j] + b[j] * b[j];
        }
        float r = w ? rsqrtf(warp_sum(sum) / (float)width + eps) : 1.0f;
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            int i = lane + 32 * j;
            if (i >= half)
                break;
            float p = a[j] * r * (w ? to_f32(w[i]) : 1.0f);
            float q = b[j] * r * (w ? to_f32(w[i + half]) : 1.0f);
            y[at + i] = from_f32<T>(p * cos_smem[i] - q * sin_smem[i]);
            y[at + i + half] = from_f32<T>(q * cos_smem[i] + p * sin_smem[i]);
        }
    }
}

extern "C" void cuda_norm_rope(struct dev *d, struct tensor y, struct tensor x,
                               struct tensor w, struct tensor pos, struct tensor freq,
                               float eps)
{
    int64_t rows = x.dim[0];
    if (rows == 0)
        return;
    BY_TYPE(x, T, {
        if (w.data && w.type == DT_F32)
            launch_plain(d, "norm_rope", norm_rope_fwd_kernel<T, float>, (unsigned)rows,
                         THREADS, (T *)y.data, (const T *)x.data, (const float *)w.data,
                         (const int *)pos.data, (const float *)freq.data, (int)x.dim[1],
                         (int)x.dim[2], eps);
        else
            launch_plain(d, "norm_rope", norm_rope_fwd_kernel<T, bf16>, (unsigned)rows,
                         THREADS, (T *)y.data, (const T *)x.data, (const bf16 *)w.data,
                         (const int *)pos.data, (const float *)freq.data, (int)x.dim[1],
                         (int)x.dim[2], eps);
    });
}

/* Block b owns tokens [b * run, (b + 1) * run); partial[b, D] is its share of dw. */
template <typename T, typename W>
__global__ void __launch_bounds__(THREADS)
    norm_rope_bwd_kernel(T *dx, float *__restrict__ partial, const T *dy,
                         const T *__restrict__ x, const W *__restrict__ w,
                         const int *__restrict__ pos, const float *__restrict__ freq,
                         int64_t rows, int run, int heads, int width, float eps)
{
    __shared__ float cos_smem[HALF_MAX], sin_smem[HALF_MAX];
    __shared__ float sum_smem[WARPS][2 * HALF_MAX];
    int half = width / 2, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float da[PAIRS] = {}, db[PAIRS] = {}; // this lane's columns of dw
    int64_t end = min(rows, (int64_t)(blockIdx.x + 1) * run);
    for (int64_t t = (int64_t)blockIdx.x * run; t < end; t++) {
        __syncthreads();
        turn(cos_smem, sin_smem, pos[t], freq, half);
        __syncthreads();
        for (int head = warp; head < heads; head += WARPS) {
            int64_t at = (t * heads + head) * width;
            float a[PAIRS], b[PAIRS], ga[PAIRS], gb[PAIRS], square = 0.0f, dot = 0.0f;
#pragma unroll
            for (int j = 0; j < PAIRS; j++) {
                int i = lane + 32 * j;
                bool in = i < half;
                a[j] = in ? to_f32(x[at + i]) : 0.0f;
                b[j] = in ? to_f32(x[at + i + half]) : 0.0f;
                float u = in ? to_f32(dy[at + i]) : 0.0f;
                float v = in ? to_f32(dy[at + i + half]) : 0.0f;
                float c = in ? cos_smem[i] : 0.0f, s = in ? sin_smem[i] : 0.0f;
                ga[j] = u * c + v * s;
                gb[j] = v * c - u * s;
                square += a[j] * a[j] + b[j] * b[j];
            }
            float r = w ? rsqrtf(warp_sum(square) / (float)width + eps) : 1.0f;
            if (w) {
#pragma unroll
                for (int j = 0; j < PAIRS; j++) {
                    int i = lane + 32 * j;
                    a[j] *= r, b[j] *= r;
                    da[j] += ga[j] * a[j];
                    db[j] += gb[j] * b[j];
                    ga[j] *= i < half ? to_f32(w[i]) : 0.0f;
                    gb[j] *= i < half ? to_f32(w[i + half]) : 0.0f;
                    dot += ga[j] * a[j] + gb[j] * b[j];
                }
                float mean = warp_sum(dot) / (float)width;
#pragma unroll
                for (int j = 0; j < PAIRS; j++) {
                    ga[j] = r * (ga[j] - a[j] * mean);
                    gb[j] = r * (gb[j] - b[j] * mean);
                }
            }
#pragma unroll
            for (int j = 0; j < PAIRS; j++) {
                int i = lane + 32 * j;
                if (i < half) {
                    dx[at + i] = from_f32<T>(ga[j]);
                    dx[at + i + half] = from_f32<T>(gb[j]);
                }
            }
        }
    }
    if (!w)
        return;
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        int i = lane + 32 * j;
        if (i < half) {
            sum_smem[warp][i] = da[j];
            sum_smem[warp][i + half] = db[j];
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < width; c += THREADS) {
        float sum = 0.0f;
        for (int k = 0; k < WARPS; k++)
            sum += sum_smem[k][c];
        partial[(int64_t)blockIdx.x * width + c] = sum;
    }
}

extern "C" void cuda_norm_rope_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                                   struct tensor dy, struct tensor x, struct tensor w,
                                   struct tensor pos, struct tensor freq, float eps)
{
    int64_t rows = x.dim[0], width = x.dim[2];
    if (rows == 0)
        return;
    int run = (int)((rows + PARTS - 1) / PARTS);
    int parts = (int)((rows + run - 1) / run);
    float *partial = (float *)cuda_state(d)->scratch;
    BY_TYPE(x, T, {
        if (w.data && w.type == DT_F32)
            launch_plain(d, "norm_rope_bwd", norm_rope_bwd_kernel<T, float>, parts,
                         THREADS, (T *)dx.data, partial, (const T *)dy.data,
                         (const T *)x.data, (const float *)w.data,
                         (const int *)pos.data, (const float *)freq.data, rows, run,
                         (int)x.dim[1], (int)width, eps);
        else
            launch_plain(d, "norm_rope_bwd", norm_rope_bwd_kernel<T, bf16>, parts,
                         THREADS, (T *)dx.data, partial, (const T *)dy.data,
                         (const T *)x.data, (const bf16 *)w.data, (const int *)pos.data,
                         (const float *)freq.data, rows, run, (int)x.dim[1], (int)width,
                         eps);
    });
    if (w.data)
        cuda_add_partials(d, dw, partial, parts);
}
