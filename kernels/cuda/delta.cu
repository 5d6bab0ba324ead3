/* SPDX-License-Identifier: MIT */
/* delta.cu - Gated DeltaNet token by token: decoding, f32, heads of any width.
 *
 * Columns of a head's state never meet: a block has one value head and 32 columns of
 * its state, in registers for as long as rows come.  A column lies in 8 lanes, each
 * with every eighth run of 4 of its D entries, and a thread has two columns.  Both
 * products of a row are of the state before it,
 *     d = beta (v - e s^T k),  o = e s^T q + (k . q) d,  s = e s + k d^T,  e = exp(g),
 * so their sums over the lanes run side by side and only d waits for them.
 *
 * Documents do not meet either: part p of the grid takes those that begin in rows
 * [p RUN, (p + 1) RUN), the first also what goes on from before.  7 D E operations a
 * row and head on plain cores; with one long document the bound is the issue of a
 * warp's 200 or so instructions a row.  Sums run in one order whatever the rows around:
 * rows run again give the same bits.  Twin: cpu/delta.c. */
#include "prim.cuh"

enum {
    THREADS = 128,
    LANES = 8,   // of a column
    COLUMNS = 2, // of a thread
    SLICE = THREADS / LANES * COLUMNS,
    ROWS = 16, // brought to shared memory at a time
    RUN = 512
};

struct delta_args {
    void *o;
    float *to;         // the state before row keep
    const float *from; // the one before row 0; `to` itself when there is one part
    const void *q, *k, *v;
    const float *g, *beta;
    const int *lo;
    int64_t first;
    int rows, keep, keys, group, depth, values, width, slices;
};

template <int N> struct delta_smem {
    float k[ROWS][N * LANES], q[ROWS][N * LANES]; // zeros past D
    float v[ROWS][SLICE], decay[ROWS], beta[ROWS];
    bool fresh[ROWS];
    int begin;
};

static __device__ __forceinline__ bool begins(const struct delta_args &x, int t)
{
    return x.lo[t] >= x.first + t;
}

/* begin_of finds the first row of a part; x.rows: none. */
static __device__ __forceinline__ int begin_of(const struct delta_args &x, int part,
                                               int *begin_smem)
{
    if (part == 0)
        return 0;
    if (threadIdx.x == 0)
        *begin_smem = x.rows;
    __syncthreads();
    const int end = min((part + 1) * RUN, x.rows);
    for (int t = part * RUN + threadIdx.x; t < end; t += THREADS)
        if (begins(x, t)) {
            atomicMin(begin_smem, t);
            break;
        }
    __syncthreads();
    return *begin_smem;
}

/* stage brings rows [t, t + n). */
template <typename T, int N>
static __device__ __forceinline__ void stage(struct delta_smem<N> &y,
                                             const struct delta_args &x, int head,
                                             int column, int t, int n)
{
    const int key = head / x.group;
    for (int i = threadIdx.x; i < n * N * LANES; i += THREADS) {
        const int r = i / (N * LANES), c = i % (N * LANES);
        const int64_t at = ((int64_t)(t + r) * x.keys + key) * x.depth + c;
        y.k[r][c] = c < x.depth ? to_f32(((const T *)x.k)[at]) : 0.0f;
        y.q[r][c] = c < x.depth ? to_f32(((const T *)x.q)[at]) : 0.0f;
    }
    for (int i = threadIdx.x; i < n * SLICE; i += THREADS) {
        const int r = i / SLICE, c = i % SLICE;
        const int64_t at = ((int64_t)(t + r) * x.values + head) * x.width + column + c;
        y.v[r][c] = column + c < x.width ? to_f32(((const T *)x.v)[at]) : 0.0f;
    }
    if (threadIdx.x < n) {
        const int64_t at = (int64_t)(t + threadIdx.x) * x.values + head;
        y.decay[threadIdx.x] = expf(x.g[at]);
        y.beta[threadIdx.x] = x.beta[at];
        y.fresh[threadIdx.x] = begins(x, t + threadIdx.x);
    }
}

/* A thread's entries of its columns. */
template <int N> struct delta_state {
    float s[COLUMNS][N];
};

/* Entry i of a lane is entry entry_of(i) of a column. */
static __device__ __forceinline__ int entry_of(int lane, int i)
{
    return (i / 4 * LANES + lane) * 4 + i % 4;
}

/* recall reads a thread's part of the state, record writes it. */
template <int N>
static __device__ __forceinline__ void recall(struct delta_state<N> &y,
                                              const struct delta_args &x, int head,
                                              int column, int lane)
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int e = entry_of(lane, i);
            const int64_t at = ((int64_t)head * x.depth + e) * x.width + column + c;
            y.s[c][i] = e < x.depth && column + c < x.width ? x.from[at] : 0.0f;
        }
}

template <int N>
static __device__ __forceinline__ void record(const struct delta_state<N> &y,
                                              const struct delta_args &x, int head,
                                              int column, int lane)
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int e = entry_of(lane, i);
            const int64_t at = ((int64_t)head * x.depth + e) * x.width + column + c;
            if (e < x.depth && column + c < x.width)
                x.to[at] = y.s[c][i];
        }
}

static __device__ __forceinline__ float lanes_sum(float x)
{
#pragma unroll
    for (int m = LANES / 2; m > 0; m >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, m);
    return x;
}

/* step runs row r of the tile; out gets the columns' outputs, in every lane. */
template <int N>
static __device__ __forceinline__ void step(float (&out)[COLUMNS],
                                            struct delta_state<N> &y,
                                            const struct delta_smem<N> &tile, int r,
                                            int lane, int own)
{
    float k[N], kq = 0.0f, read[COLUMNS] = {};
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        out[c] = 0.0f;
    if (tile.fresh[r])
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int i = 0; i < N; i++)
                y.s[c][i] = 0.0f;
#pragma unroll
    for (int j = 0; j < N; j += 4) {
        float q[4];
        load<float, 4>(k + j, &tile.k[r][entry_of(lane, j)]);
        load<float, 4>(q, &tile.q[r][entry_of(lane, j)]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            kq += k[j + i] * q[i];
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                read[c] += k[j + i] * y.s[c][j + i];
                out[c] += q[i] * y.s[c][j + i];
            }
        }
    }
    kq = lanes_sum(kq);
    const float decay = tile.decay[r], beta = tile.beta[r];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        const float d = beta * (tile.v[r][own + c] - decay * lanes_sum(read[c]));
        out[c] = decay * lanes_sum(out[c]) + kq * d;
#pragma unroll
        for (int i = 0; i < N; i++)
            y.s[c][i] = decay * y.s[c][i] + k[i] * d;
    }
}

/* Grid: slices of heads, parts.  A lane has N entries of a column. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS, N <= 16 ? 3 : 2) // else fewer registers
    delta_kernel(const __grid_constant__ struct delta_args x)
{
    __shared__ struct delta_smem<N> tile_smem;
    const int head = blockIdx.x / x.slices, first = blockIdx.x % x.slices * SLICE;
    const int lane = threadIdx.x % LANES, own = threadIdx.x / LANES * COLUMNS;
    const int column = first + own, limit = (blockIdx.y + 1) * RUN;
    struct delta_state<N> y = {
    };
    int t = begin_of(x, blockIdx.y, &tile_smem.begin);
    if (t == 0)
        recall(y, x, head, column, lane);
    while (t < x.rows) {
        const int n = min(ROWS, x.rows - t);
        stage<T, N>(tile_smem, x, head, first, t, n);
        __syncthreads();
        for (int r = 0; r < n; r++) {
            if (t + r >= limit && tile_smem.fresh[r]) // the next part's
                return;
            float out[COLUMNS];
            step(out, y, tile_smem, r, lane, own);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                if (lane == c && column + c < x.width)
                    ((T *)x.o)[((int64_t)(t + r) * x.values + head) * x.width + column +
                               c] = from_f32<T>(out[c]);
            if (t + r + 1 == x.keep)
                record(y, x, head, column, lane);
        }
        __syncthreads();
        t += n;
    }
}

extern "C" void cuda_delta(struct dev *d, struct tensor o, struct tensor state,
                           struct delta_in in, struct tensor lo, int64_t first,
                           int64_t keep)
{
    struct delta_args x = {};
    x.o = o.data;
    x.to = (float *)state.data;
    x.from = x.to;
    x.q = in.q.data;
    x.k = in.k.data;
    x.v = in.v.data;
    x.g = (const float *)in.g.data;
    x.beta = (const float *)in.beta.data;
    x.lo = (const int *)lo.data;
    x.first = first;
    x.rows = (int)in.q.dim[0];
    x.keep = (int)keep;
    x.keys = (int)in.q.dim[1];
    x.depth = (int)in.q.dim[2];
    x.values = (int)in.v.dim[1];
    x.group = x.values / x.keys;
    x.width = (int)in.v.dim[2];
    x.slices = (x.width + SLICE - 1) / SLICE;
    const dim3 grid((unsigned)(x.values * x.slices), blocks_for(x.rows, RUN));
    if (grid.y > 1 && keep > 0) { // another part may write it before this one reads
        float *copy = (float *)cuda_state(d)->scratch;
        if (tensor_bytes(&state) > CUDA_SCRATCH_BYTES)
            bug("a state of %zu bytes needs more scratch", tensor_bytes(&state));
        cudaMemcpyAsync(copy, state.data, tensor_bytes(&state),
                        cudaMemcpyDeviceToDevice, stream_of(d));
        x.from = copy;
    }
    BY_TYPE(o, T, {
        auto kernel = x.depth <= 128 ? delta_kernel<T, 16> : delta_kernel<T, 32>;
        kernel<<<grid, THREADS, 0, stream_of(d)>>>(x);
    });
    cuda_launched(d, "delta");
}
