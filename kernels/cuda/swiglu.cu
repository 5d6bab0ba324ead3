/* SPDX-License-Identifier: MIT */
/* swiglu.cu - y = silu(g) u and its gradient, and the sum of two tensors.
 *
 * Elementwise, bound by memory: 8 elements a thread in 16-byte accesses.  silu(g) =
 * g s, s = 1 / (1 + exp(-g));  d silu / dg = s (1 + g (1 - s)).  Forward moves 3 T I
 * elements, backward 5.  Twins: cpu/swiglu.c, cpu/rows.c (add). */
#include "launch.cuh"

enum { THREADS = 256 };

template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    swiglu_fwd_kernel(T *y, const T *g, const T *u, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= n)
        return;
    float a[N], b[N];
    load<T, N>(a, g + i);
    load<T, N>(b, u + i);
#pragma unroll
    for (int k = 0; k < N; k++)
        a[k] = a[k] * sigmoid(a[k]) * b[k];
    store<T, N>(y + i, a);
}

template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    swiglu_bwd_kernel(T *dg, T *du, const T *dy, const T *g, const T *u, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= n)
        return;
    float a[N], b[N], e[N];
    load<T, N>(a, g + i);
    load<T, N>(b, u + i);
    load<T, N>(e, dy + i);
#pragma unroll
    for (int k = 0; k < N; k++) {
        float s = sigmoid(a[k]), silu = a[k] * s;
        a[k] = e[k] * b[k] * s * (1.0f + a[k] * (1.0f - s));
        b[k] = e[k] * silu;
    }
    store<T, N>(dg + i, a);
    store<T, N>(du + i, b);
}

template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    add_kernel(T *y, const T *a, const T *b, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= n)
        return;
    float p[N], q[N];
    load<T, N>(p, a + i);
    load<T, N>(q, b + i);
#pragma unroll
    for (int k = 0; k < N; k++)
        p[k] += q[k];
    store<T, N>(y + i, p);
}

extern "C" void cuda_swiglu(struct dev *d, struct tensor y, struct tensor g,
                            struct tensor u)
{
    int64_t n = tensor_count(&y);
    if (n == 0)
        return;
    bool fast = wide(y.data, n) && wide(g.data, n) && wide(u.data, n);
    BY_TYPE(y, T, {
        auto kernel = fast ? swiglu_fwd_kernel<T, 8> : swiglu_fwd_kernel<T, 1>;
        launch_plain(d, "swiglu", kernel, blocks_for(n, THREADS * (fast ? 8 : 1)),
                     THREADS, (T *)y.data, (const T *)g.data, (const T *)u.data, n);
    });
}

extern "C" void cuda_swiglu_bwd(struct dev *d, struct tensor dg, struct tensor du,
                                struct tensor dy, struct tensor g, struct tensor u)
{
    int64_t n = tensor_count(&dy);
    if (n == 0)
        return;
    bool fast = wide(dg.data, n) && wide(du.data, n) && wide(dy.data, n) &&
                wide(g.data, n) && wide(u.data, n);
    BY_TYPE(dy, T, {
        auto kernel = fast ? swiglu_bwd_kernel<T, 8> : swiglu_bwd_kernel<T, 1>;
        launch_plain(d, "swiglu_bwd", kernel, blocks_for(n, THREADS * (fast ? 8 : 1)),
                     THREADS, (T *)dg.data, (T *)du.data, (const T *)dy.data,
                     (const T *)g.data, (const T *)u.data, n);
    });
}

extern "C" void cuda_add(struct dev *d, struct tensor y, struct tensor a,
                         struct tensor b)
{
    int64_t n = tensor_count(&y);
    if (n == 0)
        return;
    bool fast = wide(y.data, n) && wide(a.data, n) && wide(b.data, n);
    BY_TYPE(y, T, {
        auto kernel = fast ? add_kernel<T, 8> : add_kernel<T, 1>;
        launch_plain(d, "add", kernel, blocks_for(n, THREADS * (fast ? 8 : 1)), THREADS,
                     (T *)y.data, (const T *)a.data, (const T *)b.data, n);
    });
}
