/* SPDX-License-Identifier: MIT */
/* rows.cu - moving rows: gather, scatter, convert, tap, quantize, dequantize, argmax.
 *
 * All are bound by memory: a block of 128 threads per row, 16 bytes a thread and access
 * where widths allow it.  Twin: cpu/rows.c. */
#include "launch.cuh"

#include <cuda_fp8.h>

enum { THREADS = 128 };

/* y[r, :] = x[ids[r], :] with a change of type; an id outside [0, T) is a fault. */
template <typename Y, typename X, int N>
__global__ void __launch_bounds__(THREADS)
    gather_kernel(Y *__restrict__ y, const X *__restrict__ x,
                  const int *__restrict__ ids, int64_t t, int64_t h,
                  struct cuda_fault *fault)
{
    int64_t r = blockIdx.x;
    int id = ids[r];
    if (id < 0 || id >= t) {
        if (threadIdx.x == 0)
            note_fault(fault, FAULT_ID, r, id);
        return;
    }
    for (int64_t c = threadIdx.x * N; c < h; c += THREADS * N) {
        float v[N];
        load<X, N>(v, x + id * h + c);
        store<Y, N>(y + r * h + c, v);
    }
}

extern "C" void cuda_gather(struct dev *d, struct tensor y, struct tensor x,
                            struct tensor ids)
{
    int64_t rows = y.dim[0], h = y.dim[1];
    if (rows == 0 || h == 0)
        return;
    struct cuda_fault *fault = cuda_state(d)->device_fault;
    bool fast = wide(y.data, h) && wide(x.data, h);
    BY_TYPE(y, Y, BY_TYPE(x, X, {
                auto kernel = fast ? gather_kernel<Y, X, 8> : gather_kernel<Y, X, 1>;
                launch_plain(d, "gather", kernel, (unsigned)rows, THREADS, (Y *)y.data,
                             (const X *)x.data, (const int *)ids.data, x.dim[0], h,
                             fault);
            }));
}

/* dx[ids[r], :] = dy[r, :]; the caller has zeroed dx. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    scatter_kernel(T *__restrict__ dx, const T *__restrict__ dy,
                   const int *__restrict__ ids, int64_t t, int64_t h,
                   struct cuda_fault *fault)
{
    int64_t r = blockIdx.x;
    int id = ids[r];
    if (id < 0 || id >= t) {
        if (threadIdx.x == 0)
            note_fault(fault, FAULT_ID, r, id);
        return;
    }
    for (int64_t c = threadIdx.x * N; c < h; c += THREADS * N) {
        float v[N];
        load<T, N>(v, dy + r * h + c);
        store<T, N>(dx + id * h + c, v);
    }
}

extern "C" void cuda_scatter(struct dev *d, struct tensor dx, struct tensor dy,
                             struct tensor ids)
{
    int64_t rows = dy.dim[0], h = dx.dim[1];
    cudaMemsetAsync(dx.data, 0, tensor_bytes(&dx), stream_of(d));
    if (rows == 0 || h == 0)
        return;
    bool fast = wide(dx.data, h) && wide(dy.data, h);
    BY_TYPE(dx, T, {
        auto kernel = fast ? scatter_kernel<T, 8> : scatter_kernel<T, 1>;
        launch_plain(d, "scatter", kernel, (unsigned)rows, THREADS, (T *)dx.data,
                     (const T *)dy.data, (const int *)ids.data, dx.dim[0], h,
                     cuda_state(d)->device_fault);
    });
}

/* y = x, element by element, N at a time and a scalar tail. */
template <typename Y, typename X, int N>
__global__ void __launch_bounds__(THREADS)
    convert_kernel(Y *__restrict__ y, const X *__restrict__ x, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i + N <= n) {
        float v[N];
        load<X, N>(v, x + i);
        store<Y, N>(y + i, v);
    } else {
        for (; i < n; i++)
            y[i] = from_f32<Y>(to_f32(x[i]));
    }
}

__global__ void __launch_bounds__(THREADS)
    convert_e4m3_kernel(__nv_fp8_e4m3 *__restrict__ y, const bf16 *__restrict__ x16,
                        const float *__restrict__ x32, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i] = __nv_fp8_e4m3(x16 ? to_f32(x16[i]) : x32[i]); // saturates
}

template <typename Y>
__global__ void __launch_bounds__(THREADS)
    convert_from_e4m3_kernel(Y *__restrict__ y, const __nv_fp8_e4m3 *__restrict__ x,
                             int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i] = from_f32<Y>((float)x[i]);
}

extern "C" void cuda_convert(struct dev *d, struct tensor y, struct tensor x)
{
    int64_t n = tensor_count(&y);
    if (n == 0)
        return;
    cudaStream_t s = stream_of(d);
    if (y.type == DT_E4M3) {
        launch_plain(d, "convert", convert_e4m3_kernel, blocks_for(n, THREADS), THREADS,
                     (__nv_fp8_e4m3 *)y.data,
                     x.type == DT_BF16 ? (const bf16 *)x.data : NULL,
                     x.type == DT_F32 ? (const float *)x.data : NULL, n);
    } else if (x.type == DT_E4M3) {
        BY_TYPE(y, Y, {
            launch_plain(d, "convert", convert_from_e4m3_kernel<Y>,
                         blocks_for(n, THREADS), THREADS, (Y *)y.data,
                         (const __nv_fp8_e4m3 *)x.data, n);
        });
    } else if (y.type == x.type) {
        cudaMemcpyAsync(y.data, x.data, tensor_bytes(&y), cudaMemcpyDeviceToDevice, s);
    } else {
        bool fast = wide(y.data, 8) && wide(x.data, 8);
        BY_TYPE(y, Y, BY_TYPE(x, X, {
                    auto kernel =
                        fast ? convert_kernel<Y, X, 8> : convert_kernel<Y, X, 1>;
                    launch_plain(d, "convert", kernel,
                                 blocks_for(n, THREADS * (fast ? 8 : 1)), THREADS,
                                 (Y *)y.data, (const X *)x.data, n);
                }));
    }
    cuda_launched(d, "convert");
}

/* y[t, k*H + c] = x[t, c]: one tap of K. */
template <typename Y, typename X, int N>
__global__ void __launch_bounds__(THREADS)
    tap_kernel(Y *__restrict__ y, const X *__restrict__ x, int64_t h, int64_t width,
               int64_t at)
{
    int64_t t = blockIdx.x;
    for (int64_t c = threadIdx.x * N; c < h; c += THREADS * N) {
        float v[N];
        load<X, N>(v, x + t * h + c);
        store<Y, N>(y + t * width + at + c, v);
    }
}

extern "C" void cuda_tap(struct dev *d, struct tensor y, struct tensor x, int k)
{
    int64_t rows = x.dim[0], h = x.dim[1];
    if (rows == 0 || h == 0)
        return;
    bool fast = wide(y.data, h) && wide(x.data, h);
    BY_TYPE(y, Y, BY_TYPE(x, X, {
                auto kernel = fast ? tap_kernel<Y, X, 8> : tap_kernel<Y, X, 1>;
                launch_plain(d, "tap", kernel, (unsigned)rows, THREADS, (Y *)y.data,
                             (const X *)x.data, h, y.dim[1], (int64_t)k * h);
            }));
}

/* One block per (row, tap): the largest magnitude, the scale, the rounded values. */
template <typename X>
__global__ void __launch_bounds__(THREADS)
    quant_kernel(__nv_fp8_e4m3 *__restrict__ q, float *__restrict__ scale,
                 const X *__restrict__ x, int64_t h)
{
    __shared__ float space_smem[32];
    int64_t at = (int64_t)blockIdx.x * h;
    float top = 0.0f;
    for (int64_t c = threadIdx.x; c < h; c += THREADS)
        top = fmaxf(top, fabsf(to_f32(x[at + c])));
    top = warp_max(top);
    if ((threadIdx.x & 31) == 0)
        space_smem[threadIdx.x >> 5] = top;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        top = fmaxf(top, space_smem[i]);
    float s = top > 0.0f ? top / 448.0f : 1.0f;
    if (threadIdx.x == 0)
        scale[blockIdx.x] = s;
    for (int64_t c = threadIdx.x; c < h; c += THREADS)
        q[at + c] = __nv_fp8_e4m3(to_f32(x[at + c]) / s);
}

extern "C" void cuda_quant(struct dev *d, struct tensor q, struct tensor scale,
                           struct tensor x)
{
    int64_t n = tensor_count(&scale);
    if (n == 0)
        return;
    BY_TYPE(x, X, {
        launch_plain(d, "quant", quant_kernel<X>, (unsigned)n, THREADS,
                     (__nv_fp8_e4m3 *)q.data, (float *)scale.data, (const X *)x.data,
                     tensor_count(&x) / n);
    });
}

template <typename Y>
__global__ void __launch_bounds__(THREADS)
    dequant_kernel(Y *__restrict__ y, const __nv_fp8_e4m3 *__restrict__ q,
                   const float *__restrict__ scale, int64_t h)
{
    int64_t at = (int64_t)blockIdx.x * h;
    float s = scale[blockIdx.x];
    for (int64_t c = threadIdx.x; c < h; c += THREADS)
        y[at + c] = from_f32<Y>((float)q[at + c] * s);
}

extern "C" void cuda_dequant(struct dev *d, struct tensor y, struct tensor q,
                             struct tensor scale)
{
    int64_t n = tensor_count(&scale);
    if (n == 0)
        return;
    BY_TYPE(y, Y, {
        launch_plain(d, "dequant", dequant_kernel<Y>, (unsigned)n, THREADS, (Y *)y.data,
                     (const __nv_fp8_e4m3 *)q.data, (const float *)scale.data,
                     tensor_count(&y) / n);
    });
}
