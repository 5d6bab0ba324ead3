/* SPDX-License-Identifier: MIT */
/* headloss.cu - the fused head: logits, softmax cross-entropy, accuracy and dH by
 * chunks.
 *
 * Logits of all labelled slots would be gigabytes (7,680 x 248,320), so a chunk of rows
 * at a time goes h w^T -> softmax -> dz -> dz w through one buffer: cuBLASLt writes f32
 * logits, one block a row finds maximum, sum and label score, and then writes dz in
 * bf16 over the row's own first half, so nothing is computed twice and no second buffer
 * is needed.  Overwriting in place is safe because a tile is read by the whole block
 * before it is written, and element i of dz (byte 2 i) lies on elements at or before i
 * of z. The f32 mode of tests keeps dz in f32 at z's place.
 *
 * The last chunk is as large as the others and does some rows again: the number of
 * labelled slots changes with every step, the shapes of the products do not.
 *
 * Work: 4 R V H operations through cuBLASLt; the softmax reads a chunk twice and writes
 * half of it.  The loss is summed over rows in a fixed order.  Twin: cpu/headloss.c. */
#include "launch.cuh"

enum { THREADS = 512, PER_THREAD = 8, TILE = THREADS * PER_THREAD };

/* The running softmax of a part of a row: maximum, sum of exp(z - maximum), first index
 * of the maximum. */
struct top {
    float max, sum;
    int at;
};

static __device__ __forceinline__ struct top join(struct top a, struct top b)
{
    bool keep = a.max > b.max || (a.max == b.max && a.at < b.at);
    float m = keep ? a.max : b.max;
    float sum =
        m == -INFINITY ? 0.0f : a.sum * __expf(a.max - m) + b.sum * __expf(b.max - m);
    return {m, sum, keep ? a.at : b.at};
}

static __device__ struct top block_top(struct top t, struct top *space_smem)
{
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        struct top other = {__shfl_xor_sync(0xffffffffu, t.max, o),
                            __shfl_xor_sync(0xffffffffu, t.sum, o),
                            __shfl_xor_sync(0xffffffffu, t.at, o)};
        /* the lower lane first, so that both lanes compute the same bits */
        t = threadIdx.x & o ? join(other, t) : join(t, other);
    }
    if ((threadIdx.x & 31) == 0)
        space_smem[threadIdx.x >> 5] = t;
    __syncthreads();
    t = space_smem[0];
    for (int w = 1; w < THREADS / 32; w++)
        t = join(t, space_smem[w]);
    return t;
}

/* A row's softmax; loss_row[r] = weight nll, hit[r]; dz over z when `grad`. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    softmax_kernel(float *z, double *__restrict__ loss_row, int *__restrict__ hit,
                   const int *__restrict__ label, const float *__restrict__ weight,
                   int vocab, bool grad, struct cuda_fault *fault)
{
    __shared__ struct top space_smem[THREADS / 32];
    int64_t r = blockIdx.x;
    float *row = z + r * vocab;
    int want = label[r];
    if (want < 0 || want >= vocab) {
        if (threadIdx.x == 0)
            note_fault(fault, FAULT_LABEL, r, want);
        return;
    }
    struct top t = {-INFINITY, 0.0f, 0x7fffffff};
    for (int i = threadIdx.x; i < vocab; i += THREADS) {
        float v = row[i];
        if (v > t.max) {
            t.sum = t.sum * __expf(t.max - v) + 1.0f;
            t.max = v;
            t.at = i;
        } else {
            t.sum += __expf(v - t.max);
        }
    }
    t = block_top(t, space_smem);
    if (threadIdx.x == 0) {
        double nll = (double)t.max + log((double)t.sum) - (double)row[want];
        loss_row[r] = (double)weight[r] * nll;
        hit[r] = t.at == want;
        if (isnan(nll))
            note_fault(fault, FAULT_NAN, r, 0);
    }
    if (!grad)
        return;
    float w = weight[r], scale = w / t.sum;
    T *out = (T *)row;
    for (int base = 0; base < vocab; base += TILE) {
        float v[PER_THREAD];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            int i = base + k * THREADS + threadIdx.x;
            v[k] = i < vocab ? __expf(row[i] - t.max) * scale - (i == want ? w : 0.0f)
                             : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            int i = base + k * THREADS + threadIdx.x;
            if (i < vocab)
                out[i] = from_f32<T>(v[k]);
        }
    }
}

/* loss[0] += sum of loss_row[0 .. n): each thread every THREADS-th row, then a tree. */
__global__ void __launch_bounds__(THREADS)
    sum_loss_kernel(double *loss, const double *__restrict__ loss_row, int64_t n)
{
    __shared__ double sum_smem[THREADS];
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < n; i += THREADS)
        sum += loss_row[i];
    sum_smem[threadIdx.x] = sum;
    for (int o = THREADS / 2; o > 0; o >>= 1) {
        __syncthreads();
        if ((int)threadIdx.x < o)
            sum_smem[threadIdx.x] += sum_smem[threadIdx.x + o];
    }
    if (threadIdx.x == 0)
        *loss += sum_smem[0];
}

/* chunk_rows: as many rows as the buffer holds, in whole tiles of the product if it
 * can; of a small vocabulary an eighth of all rows, so that there are chunks and the
 * products keep their shape when the rows do not. */
static int64_t chunk_rows(int64_t rows, int64_t vocab, int64_t bytes)
{
    int64_t n = bytes / (vocab * (int64_t)sizeof(float));
    int64_t part = rows / 8 < 256 ? 256 : rows / 8;
    if (n == 0)
        bug("head_loss: a row of %lld logits exceeds the workspace", (long long)vocab);
    n = n < part ? n : part;
    return n >= 256 ? n / 256 * 256 : n;
}

extern "C" void cuda_head_loss(struct dev *d, struct tensor loss, struct tensor hit,
                               struct tensor dh, struct tensor h, struct tensor w,
                               struct tensor label, struct tensor weight)
{
    int64_t rows = h.dim[0], width = h.dim[1], vocab = w.dim[0];
    if (rows == 0)
        return;
    struct cuda_state *s = cuda_state(d);
    size_t expanded = w.type == h.type ? 0 : (size_t)(vocab * width) * sizeof(float);
    w = cuda_same_type(d, w, h.type, s->logits, CUDA_LOGITS_BYTES / 2);
    char *space = s->logits + (expanded + 255) / 256 * 256;
    int64_t step = chunk_rows(rows, vocab, s->logits + CUDA_LOGITS_BYTES - space);
    double *loss_row = (double *)s->scratch;
    if ((size_t)rows * sizeof(double) > CUDA_SCRATCH_BYTES)
        bug("head_loss: %lld rows exceed the scratch", (long long)rows);
    bool half = h.type == DT_BF16;
    const int64_t n = rows < step ? rows : step, shape[] = {n, vocab};
    for (int64_t begun = 0; begun < rows; begun += n) {
        int64_t at = begun + n <= rows ? begun : rows - n;
        struct tensor z = tensor_of(space, DT_F32, 2, shape), x = tensor_rows(h, at, n);
        cuda_product(d, z, {w, true, width}, {x, false, width}, vocab, n, width, false);
        auto kernel = half ? softmax_kernel<bf16> : softmax_kernel<float>;
        launch_plain(d, "head_loss", kernel, (unsigned)n, THREADS, (float *)space,
                     loss_row + at, (int *)hit.data + at, (const int *)label.data + at,
                     (const float *)weight.data + at, (int)vocab, dh.data != NULL,
                     s->device_fault);
        if (dh.data) {
            struct tensor dz = tensor_of(space, half ? DT_BF16 : DT_F32, 2, shape);
            cuda_product(d, tensor_rows(dh, at, n), {w, false, width},
                         {dz, false, half ? 2 * vocab : vocab}, width, n, vocab, false);
        }
    }
    launch_plain(d, "sum_loss", sum_loss_kernel, 1, THREADS, (double *)loss.data,
                 loss_row, rows);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    argmax_kernel(int *__restrict__ idx, const T *__restrict__ x, int vocab,
                  struct cuda_fault *fault)
{
    __shared__ struct top space_smem[THREADS / 32];
    const T *row = x + (int64_t)blockIdx.x * vocab;
    struct top t = {-INFINITY, 0.0f, 0x7fffffff};
    for (int i = threadIdx.x; i < vocab; i += THREADS) {
        float v = to_f32(row[i]);
        if (isnan(v))
            note_fault(fault, FAULT_NAN, blockIdx.x, i);
        if (v > t.max || t.at == 0x7fffffff) {
            t.max = v;
            t.at = i;
        }
    }
    t = block_top(t, space_smem);
    if (threadIdx.x == 0)
        idx[blockIdx.x] = t.at;
}

extern "C" void cuda_argmax(struct dev *d, struct tensor idx, struct tensor x)
{
    int64_t rows = x.dim[0];
    if (rows == 0)
        return;
    BY_TYPE(x, T, {
        launch_plain(d, "argmax", argmax_kernel<T>, (unsigned)rows, THREADS,
                     (int *)idx.data, (const T *)x.data, (int)x.dim[1],
                     cuda_state(d)->device_fault);
    });
}
