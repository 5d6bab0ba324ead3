/* SPDX-License-Identifier: MIT */
/* norm.cu - RMSNorm and its gradient.
 *
 * Bound by memory: a row is read once into registers (up to 8,192 elements by 256
 * threads of 32), reduced, and written once.  The gradient of w needs a sum over all
 * rows: each block walks a fixed run of rows and keeps its columns' partial sums in
 * registers, then a second kernel adds the partials in order: no atomics, the same bits
 * every time. Forward moves 2 T H elements, backward 3 T H plus the partials.  Twin:
 * cpu/norm.c. */
#include "prim.cuh"

enum {
    THREADS = 256,
    PARTS = 264 /* blocks of the backward: two for each of 132 multiprocessors */
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
                kernel<<<(unsigned)rows, THREADS, 0, stream_of(d)>>>(
                    (T *)y.data, (const T *)x.data, (const W *)w.data, (int)h, eps);
            }));
    cuda_launched(d, "rmsnorm");
}

/* Block b owns rows [b * run, (b + 1) * run) and partial[b, :] = sum of dy n over them.
 */
template <typename T, typename W, int N>
__global__ void __launch_bounds__(THREADS)
    rmsnorm_bwd_kernel(T *dx, float *__restrict__ partial, const T *dy,
                       const T *__restrict__ x, const W *__restrict__ w, int64_t rows,
                       int run, int h, float eps)
{
    __shared__ float space_smem[32];
    float *mine = partial + (int64_t)blockIdx.x * h;
    for (int c = threadIdx.x; c < h; c += THREADS)
        mine[c] = 0.0f;
    __syncthreads();
    int64_t end = min(rows, (int64_t)(blockIdx.x + 1) * run);
    for (int64_t t = (int64_t)blockIdx.x * run; t < end; t++) {
        int64_t at = t * h;
        float square = 0.0f, dot = 0.0f;
        for (int c = threadIdx.x * N; c < h; c += THREADS * N) {
            float v[N], g[N], k[N];
            load<T, N>(v, x + at + c);
            load<T, N>(g, dy + at + c);
            load<W, N>(k, w + c);
#pragma unroll
            for (int i = 0; i < N; i++) {
                square += v[i] * v[i];
                dot += g[i] * k[i] * v[i];
            }
        }
        float r = rsqrtf(block_sum(square, space_smem) / (float)h + eps);
        float mean = block_sum(dot, space_smem) * r / (float)h;
        for (int c = threadIdx.x * N; c < h; c += THREADS * N) {
            float v[N], g[N], k[N];
            load<T, N>(v, x + at + c);
            load<T, N>(g, dy + at + c);
            load<W, N>(k, w + c);
#pragma unroll
            for (int i = 0; i < N; i++) {
                float n = v[i] * r;
                mine[c + i] += g[i] * n;
                v[i] = r * (g[i] * k[i] - n * mean);
            }
            store<T, N>(dx + at + c, v);
        }
    }
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
    cudaStream_t s = stream_of(d);
    bool fast =
        wide(dx.data, h) && wide(dy.data, h) && wide(x.data, h) && wide(w.data, h);
    BY_TYPE(x, T, BY_TYPE(w, W, {
                auto kernel =
                    fast ? rmsnorm_bwd_kernel<T, W, 8> : rmsnorm_bwd_kernel<T, W, 1>;
                kernel<<<(unsigned)parts, THREADS, 0, s>>>(
                    (T *)dx.data, partial, (const T *)dy.data, (const T *)x.data,
                    (const W *)w.data, rows, run, (int)h, eps);
            }));
    cuda_launched(d, "rmsnorm_bwd");
    cuda_add_partials(d, dw, partial, parts);
}
