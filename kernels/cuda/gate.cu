/* SPDX-License-Identifier: MIT */
/* gate.cu - outputs under a gate: x sigmoid(g), and a head's RMSNorm times silu(z).
 *
 * Bound by memory: both read two tensors and write one, 8 elements a thread in 16-byte
 * accesses.  A head's norm stays within a group of lanes: 16 of them for 128 channels,
 * so that no lane idles.  Twin: cpu/gate.c. */
#include "launch.cuh"

enum { THREADS = 256 };

template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    gate_kernel(T *y, const T *x, const T *__restrict__ g, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= n)
        return;
    float a[N], b[N];
    load<T, N>(a, x + i);
    load<T, N>(b, g + i);
#pragma unroll
    for (int k = 0; k < N; k++)
        a[k] *= sigmoid(b[k]);
    store<T, N>(y + i, a);
}

extern "C" void cuda_gate(struct dev *d, struct tensor y, struct tensor x,
                          struct tensor g)
{
    int64_t n = tensor_count(&y);
    bool fast = wide(y.data, n) && wide(x.data, n) && wide(g.data, n);
    BY_TYPE(y, T, {
        auto kernel = fast ? gate_kernel<T, 8> : gate_kernel<T, 1>;
        launch_plain(d, "gate", kernel, blocks_for(n, THREADS * (fast ? 8 : 1)),
                     THREADS, (T *)y.data, (const T *)x.data, (const T *)g.data, n);
    });
}

/* A group of `lanes` lanes takes a head of `width` channels. */
template <typename T, typename W, int N>
__global__ void __launch_bounds__(THREADS)
    norm_gate_kernel(T *y, const T *x, const W *__restrict__ w, const T *__restrict__ z,
                     int64_t heads, int width, int lanes, float eps)
{
    const int64_t head = (int64_t)blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes;
    const int first = threadIdx.x % lanes * N, stride = lanes * N;
    const int64_t at = min(head, heads - 1) * width; // all lanes sum, few may store
    float sum = 0.0f;
    for (int c = first; c < width; c += stride) {
        float v[N];
        load<T, N>(v, x + at + c);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += v[i] * v[i];
    }
    for (int o = lanes / 2; o > 0; o >>= 1)
        sum += shfl_xor(sum, o);
    if (head >= heads)
        return;
    const float r = rsqrtf(sum / (float)width + eps);
    for (int c = first; c < width; c += stride) {
        float v[N], g[N], k[N];
        load<T, N>(v, x + at + c);
        load<T, N>(g, z + at + c);
        load<W, N>(k, w + c);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = v[i] * r * k[i] * (g[i] * sigmoid(g[i]));
        store<T, N>(y + at + c, v);
    }
}

extern "C" void cuda_norm_gate(struct dev *d, struct tensor y, struct tensor x,
                               struct tensor w, struct tensor z, float eps)
{
    const int64_t heads = x.dim[0] * x.dim[1], n = x.dim[2];
    bool fast =
        wide(y.data, n) && wide(x.data, n) && wide(w.data, n) && wide(z.data, n);
    const int lanes = fast && n <= 128 ? 16 : 32;
    BY_TYPE(x, T, BY_TYPE(w, W, {
                auto kernel =
                    fast ? norm_gate_kernel<T, W, 8> : norm_gate_kernel<T, W, 1>;
                launch_plain(d, "norm_gate", kernel, blocks_for(heads, THREADS / lanes),
                             THREADS, (T *)y.data, (const T *)x.data, (const W *)w.data,
                             (const T *)z.data, heads, (int)n, lanes, eps);
            }));
}
