/* SPDX-License-Identifier: MIT */
/* norm.cu - RMSNorm and its gradient.
 *
 * Bound by memory: forward moves 2 T H elements, backward 3 T H plus the partials.  The
 * gradient of w needs a sum over all rows: each block walks a fixed run of rows, a
 * thread owns the same columns of each and keeps their sums in registers, then a second
 * kernel adds the blocks' partials in order: no atomics, the same bits every time.
 * Backward reads a row once, both sums over it (of squares, and of dy w x) cross the
 * block together.  Twin: cpu/norm.c. */
#include "launch.cuh"

enum {
    THREADS = 256,
    OWN = 4,    // runs of N columns that a thread of a wide row owns in backward
    PARTS = 528 // blocks of the backward: four for each of 132 multiprocessors
};

template <typename T, typename W, int N>
__global__ void __launch_bounds__(THREADS)
    rmsnorm_fwd_kernel(T *y, const T *x, const W *__restrict__ w, int h, float eps)
{
    __shared__ float space_smem[32];
    int64_t at = (int64_t)blockIdx.x * h;
    float sum = 0.0f;
    for (int c = threadIdx.x * N; c < h; c += THREADS * N) {
        float v[N];
        load<T, N>(v, x + at + c);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += v[i] * v[i];
    }
    float r = rsqrtf(block_sum(sum, space_smem) / (float)h + eps);
    for (int c = threadIdx.x * N; c < h; c += THREADS * N) {
        float v[N], g[N];
        load<T, N>(v, x + at + c);
        load<W, N>(g, w + c);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = v[i] * r * g[i];
        store<T, N>(y + at + c, v);
    }
}

extern "C" void cuda_rmsnorm(struct dev *d, struct tensor y, struct tensor x,
                             struct tensor w, float eps)
{
    int64_t rows = x.dim[0], h = x.dim[1];
    if (rows == 0 || h == 0)
        return;
    bool fast = wide(y.data, h) && wide(x.data, h) && wide(w.data, h);
    BY_TYPE(x, T, BY_TYPE(w, W, {
                auto kernel =
                    fast ? rmsnorm_fwd_kernel<T, W, 8> : rmsnorm_fwd_kernel<T, W, 1>;
                launch_plain(d, "rmsnorm", kernel, (unsigned)rows, THREADS, (T *)y.data,
                             (const T *)x.data, (const W *)w.data, (int)h, eps);
            }));
}

/* Threads of a block in backward, at most. */
static constexpr int bwd_threads(int runs)
{
    return runs == 1 ? 1024 : 512;
}

/* Block b owns rows [b * run, (b + 1) * run) and partial[b, :] = sum of dy n over them.
 * C runs of N columns a thread. */
template <typename T, typename W, int N, int C>
__global__ void __launch_bounds__(bwd_threads(C))
    rmsnorm_bwd_kernel(T *dx, float *__restrict__ partial, const T *dy,
                       const T *__restrict__ x, const W *__restrict__ w, int64_t rows,
                       int run, int h, float eps)
{
    __shared__ float2 space_smem[32];
    const int64_t begin = (int64_t)blockIdx.x * run, end = min(rows, begin + run);
    const int first = threadIdx.x * N, stride = blockDim.x * N;
    float sum[C][N] = {};
    for (int64_t at = begin * h; at < end * h; at += h) {
        float v[C][N], g[C][N], k[N];
        float2 total = {0.0f, 0.0f}; // of squares; of dy w x
#pragma unroll
        for (int j = 0; j < C; j++)
            if (first + j * stride < h) {
                load<T, N>(v[j], x + at + first + j * stride);
                load<T, N>(g[j], dy + at + first + j * stride);
                load<W, N>(k, w + first + j * stride);
#pragma unroll
                for (int i = 0; i < N; i++) {
                    total.x += v[j][i] * v[j][i];
                    total.y += g[j][i] * k[i] * v[j][i];
                }
            }
        total = block_sum2(total, space_smem);
        const float r = rsqrtf(total.x / (float)h + eps);
        const float mean = total.y * r / (float)h;
#pragma unroll
        for (int j = 0; j < C; j++)
            if (first + j * stride < h) {
                load<W, N>(k, w + first + j * stride);
#pragma unroll
                for (int i = 0; i < N; i++) {
                    float n = v[j][i] * r;
                    sum[j][i] += g[j][i] * n;
                    v[j][i] = r * (g[j][i] * k[i] - n * mean);
                }
                store<T, N>(dx + at + first + j * stride, v[j]);
            }
    }
#pragma unroll
    for (int j = 0; j < C; j++)
        if (first + j * stride < h)
            store<float, N>(partial + (int64_t)blockIdx.x * h + first + j * stride,
                            sum[j]);
}

extern "C" void cuda_rmsnorm_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                                 struct tensor dy, struct tensor x, struct tensor w,
                                 float eps)
{
    int64_t rows = x.dim[0], h = x.dim[1];
    if (rows == 0 || h == 0)
        return;
    int run = (int)((rows + PARTS - 1) / PARTS);
    int parts = (int)((rows + run - 1) / run);
    if ((size_t)parts * (size_t)h * sizeof(float) > CUDA_SCRATCH_BYTES)
        bug("rmsnorm_bwd: width %lld needs more scratch", (long long)h);
    float *partial = (float *)cuda_state(d)->scratch;
    bool fast =
        wide(dx.data, h) && wide(dy.data, h) && wide(x.data, h) && wide(w.data, h);
    int64_t threads = ((fast ? h / 8 : h) + 31) / 32 * 32;
    bool one = threads <= bwd_threads(1);
    if (threads > OWN * bwd_threads(OWN))
        bug("rmsnorm_bwd: rows of %lld", (long long)h);
    threads = one ? threads : bwd_threads(OWN);
    BY_TYPE(x, T, BY_TYPE(w, W, {
                auto kernel = fast  ? one ? rmsnorm_bwd_kernel<T, W, 8, 1>
                                          : rmsnorm_bwd_kernel<T, W, 8, OWN>
                               : one ? rmsnorm_bwd_kernel<T, W, 1, 1>
                                    : rmsnorm_bwd_kernel<T, W, 1, OWN>;
                launch_plain(d, "rmsnorm_bwd", kernel, (unsigned)parts, (int)threads,
                             (T *)dx.data, partial, (const T *)dy.data,
                             (const T *)x.data, (const W *)w.data, rows, run, (int)h,
                             eps);
            }));
    cuda_add_partials(d, dw, partial, parts);
}
