/* SPDX-License-Identifier: MIT */
/* optim.cu - over flat memory: AdamW, sum of squares, fill, scale, finite; partial
 * sums.
 *
 * AdamW reads a gradient, a master weight and two moments and writes three of them and
 * the rounded weight: 2 + 12 read, 12 + 2 written for bf16 gradients and weights,
 * so 1.7 G parameters are 48 GB, 11 ms at 4.3 TB/s.  The sum of squares goes through
 * PARTS partial f64 sums, added in order by one thread block.  Twin: cpu/optim.c. */
#include "launch.cuh"

#include <math.h>

enum { THREADS = 256, PARTS = 1024 };

struct adamw_terms {
    float lr, beta1, beta2, eps, decay, scale;
    float fix1, fix2; /* 1 / (1 - beta^t) */
};

template <typename W, typename G>
__global__ void __launch_bounds__(THREADS)
    adamw_kernel(W *w, float *master, float *__restrict__ m, float *__restrict__ v,
                 const G *__restrict__ grad, int64_t n, struct adamw_terms p)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float g = to_f32(grad[i]) * p.scale;
    float first = p.beta1 * m[i] + (1.0f - p.beta1) * g;
    float second = p.beta2 * v[i] + (1.0f - p.beta2) * g * g;
    float step = first * p.fix1 / (sqrtf(second * p.fix2) + p.eps);
    float next = master[i] - p.lr * (step + p.decay * master[i]);
    m[i] = first;
    v[i] = second;
    master[i] = next;
    w[i] = from_f32<W>(next);
}

extern "C" void cuda_adamw(struct dev *d, struct tensor w, struct tensor master,
                           struct tensor m, struct tensor v, struct tensor grad,
                           struct adamw p)
{
    int64_t n = tensor_count(&master);
    if (n == 0)
        return;
    struct adamw_terms terms = {p.lr,
                                p.beta1,
                                p.beta2,
                                p.eps,
                                p.decay,
                                p.scale,
                                (float)(1.0 / (1.0 - pow(p.beta1, (double)p.step))),
                                (float)(1.0 / (1.0 - pow(p.beta2, (double)p.step)))};
    BY_TYPE(w, W, BY_TYPE(grad, G, {
                launch_plain(d, "adamw", adamw_kernel<W, G>, blocks_for(n, THREADS),
                             THREADS, (W *)w.data, (float *)master.data,
                             (float *)m.data, (float *)v.data, (const G *)grad.data, n,
                             terms);
            }));
}

/* Part b sums elements [b * run, (b + 1) * run), each thread every THREADS-th, then the
 * threads as a tree of fixed shape. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    sumsq_parts_kernel(double *__restrict__ partial, const T *__restrict__ x, int64_t n,
                       int64_t run)
{
    __shared__ double sum_smem[THREADS];
    int64_t end = min(n, (int64_t)(blockIdx.x + 1) * run);
    double sum = 0.0;
    for (int64_t i = (int64_t)blockIdx.x * run + threadIdx.x; i < end; i += THREADS) {
        float v = to_f32(x[i]);
        sum += (double)(v * v);
    }
    sum_smem[threadIdx.x] = sum;
    for (int o = THREADS / 2; o > 0; o >>= 1) {
        __syncthreads();
        if ((int)threadIdx.x < o)
            sum_smem[threadIdx.x] += sum_smem[threadIdx.x + o];
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum_smem[0];
}

__global__ void sumsq_total_kernel(double *sum, const double *__restrict__ partial,
                                   int parts)
{
    double total = *sum;
    for (int b = 0; b < parts; b++)
        total += partial[b];
    *sum = total;
}

extern "C" void cuda_sumsq(struct dev *d, struct tensor sum, struct tensor x)
{
    int64_t n = tensor_count(&x);
    if (n == 0)
        return;
    int64_t run = (n + PARTS - 1) / PARTS;
    int parts = (int)((n + run - 1) / run);
    double *partial = (double *)cuda_state(d)->scratch;
    BY_TYPE(x, T, {
        launch_plain(d, "sumsq", sumsq_parts_kernel<T>, parts, THREADS, partial,
                     (const T *)x.data, n, run);
    });
    launch_plain(d, "sumsq", sumsq_total_kernel, 1, 1, (double *)sum.data, partial,
                 parts);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) fill_kernel(T *x, int64_t n, float value)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        x[i] = (T)value;
}

extern "C" void cuda_fill(struct dev *d, struct tensor x, float value)
{
    int64_t n = tensor_count(&x);
    cudaStream_t s = stream_of(d);
    if (n == 0)
        return;
    if (value == 0.0f)
        cudaMemsetAsync(x.data, 0, tensor_bytes(&x), s);
    else if (x.type == DT_F64)
        launch_plain(d, "fill", fill_kernel<double>, blocks_for(n, THREADS), THREADS,
                     (double *)x.data, n, value);
    else
        BY_TYPE(x, T, {
            launch_plain(d, "fill", fill_kernel<T>, blocks_for(n, THREADS), THREADS,
                         (T *)x.data, n, value);
        });
    cuda_launched(d, "fill");
}

template <typename T>
__global__ void __launch_bounds__(THREADS) scale_kernel(T *x, int64_t n, float value)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        x[i] = from_f32<T>(to_f32(x[i]) * value);
}

extern "C" void cuda_scale(struct dev *d, struct tensor x, float value)
{
    int64_t n = tensor_count(&x);
    if (n == 0)
        return;
    BY_TYPE(x, T, {
        launch_plain(d, "scale", scale_kernel<T>, blocks_for(n, THREADS), THREADS,
                     (T *)x.data, n, value);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    finite_kernel(const T *__restrict__ x, int64_t n, int64_t width, const char *what,
                  struct cuda_fault *fault)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n && !isfinite(to_f32(x[i])))
        note_fault(fault, FAULT_FINITE, i / width, 0, what);
}

extern "C" void cuda_finite(struct dev *d, struct tensor x, const char *what)
{
    int64_t n = tensor_count(&x);
    if (n == 0)
        return;
    BY_TYPE(x, T, {
        launch_plain(d, "finite", finite_kernel<T>, blocks_for(n, THREADS), THREADS,
                     (const T *)x.data, n, n / x.dim[0], what,
                     cuda_state(d)->device_fault);
    });
}

template <typename W>
__global__ void __launch_bounds__(THREADS)
    add_partials_kernel(W *w, const float *__restrict__ partial, int parts, int width)
{
    int c = blockIdx.x * THREADS + threadIdx.x;
    if (c >= width)
        return;
    float sum = to_f32(w[c]);
    for (int b = 0; b < parts; b++)
        sum += partial[(int64_t)b * width + c];
    w[c] = from_f32<W>(sum);
}

extern "C" void cuda_add_partials(struct dev *d, struct tensor w, const float *partial,
                                  int parts)
{
    int64_t width = tensor_count(&w);
    BY_TYPE(w, W, {
        launch_plain(d, "add_partials", add_partials_kernel<W>,
                     blocks_for(width, THREADS), THREADS, (W *)w.data, partial, parts,
                     (int)width);
    });
}
