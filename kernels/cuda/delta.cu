/* SPDX-License-Identifier: MIT */
/* delta.cu - Gated DeltaNet: in chunks where there are enough rows, else token by token
 * (decoding, f32, heads of other widths than 128).
 *
 * What follows is token by token; delta.cuh has the other.
 *
 * Columns of a head's state never meet: a block has one value head and 32 columns of
 * its state, in registers for as long as rows come.  A column lies in 8 lanes, each
 * with every eighth run of 4 of its D entries, and a thread has two columns.  Both
 * products of a row are of the state before it,
 *     d = beta (v - e s^T k),  o = e s^T q + (k . q) d,  s = e s + k d^T,  e = exp(g),
 * so their sums over the lanes run side by side and only d waits for them.
 *
 * Documents do not meet either: part p of the grid takes those that begin in rows
 * [p DELTA_RUN, (p + 1) DELTA_RUN), the first also what goes on from before.  7 D E
 * operations a row and head on plain cores; with one long document the bound is the
 * issue of a warp's 200 or so instructions a row.  Sums run in one order whatever the
 * rows around: rows run again give the same bits.  Twin: cpu/delta.c. */
#include "delta.cuh"

enum {
    THREADS = 128,
    LANES = 8,   // of a column
    COLUMNS = 2, // of a thread
    SLICE = THREADS / LANES * COLUMNS,
    ROWS = 16 // brought to shared memory at a time
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
};

/* delta_start finds the first row of a part; x.rows: none. */
static __device__ __forceinline__ int delta_start(const struct delta_args &x, int part)
{
    if (part == 0)
        return 0;
    const int end = min((part + 1) * DELTA_RUN, x.rows);
    const int t = delta_first(x.lo, x.first, part * DELTA_RUN, end);
    return t < end ? t : x.rows;
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
        y.fresh[threadIdx.x] = delta_begins(x.lo, x.first, t + (int)threadIdx.x);
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
        x += shfl_xor(x, m);
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
    const int column = first + own, limit = (blockIdx.y + 1) * DELTA_RUN;
    struct delta_state<N> y = {
    };
    int t = delta_start(x, blockIdx.y);
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

/* ---- the host's side ---- */

/* A call's tensors, or some of its rows. */
struct delta_call {
    struct dev *d;
    struct tensor o, state;
    struct delta_in x;
    struct tensor lo;
    int64_t first;
};

static struct delta_call delta_rows(const struct delta_call *c, int64_t at, int64_t n)
{
    struct delta_call r = *c;
    struct tensor *const all[] = {&r.o,   &r.x.q,    &r.x.k, &r.x.v,
                                  &r.x.g, &r.x.beta, &r.lo};
    for (struct tensor *t : all)
        *t = tensor_rows(*t, at, n);
    r.first += at;
    return r;
}

static size_t delta_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* delta_by_rows goes token by token. */
static void delta_by_rows(const struct delta_call *c, int64_t keep)
{
    const struct delta_in *in = &c->x;
    struct delta_args x = {};
    x.o = c->o.data;
    x.to = (float *)c->state.data;
    x.from = x.to;
    x.q = in->q.data;
    x.k = in->k.data;
    x.v = in->v.data;
    x.g = (const float *)in->g.data;
    x.beta = (const float *)in->beta.data;
    x.lo = (const int *)c->lo.data;
    x.first = c->first;
    x.rows = (int)in->q.dim[0];
    x.keep = (int)keep;
    x.keys = (int)in->q.dim[1];
    x.depth = (int)in->q.dim[2];
    x.values = (int)in->v.dim[1];
    x.group = x.values / x.keys;
    x.width = (int)in->v.dim[2];
    x.slices = (x.width + SLICE - 1) / SLICE;
    const dim3 grid((unsigned)(x.values * x.slices), blocks_for(x.rows, DELTA_RUN));
    if (grid.y > 1 && keep > 0) { // another part may write it before this one reads
        float *copy = (float *)cuda_state(c->d)->scratch;
        cudaMemcpyAsync(copy, x.to, tensor_bytes(&c->state), cudaMemcpyDeviceToDevice,
                        stream_of(c->d));
        x.from = copy;
    }
    BY_TYPE(c->o, T, {
        auto kernel = x.depth <= 128 ? delta_kernel<T, 16> : delta_kernel<T, 32>;
        launch_plain(c->d, "delta", kernel, grid, THREADS, x);
    });
}

/* delta_take cuts scratch for as many rows as fit behind two states; x.room says how
 * many. */
static void delta_take(struct delta_chunks *x, char *scratch, size_t state)
{
    const size_t values = (size_t)x->values, keys = (size_t)x->keys;
    const size_t row = values * (2 * DELTA_CHUNK * sizeof(uint16_t) + sizeof(float2)) +
                       keys * 2 * DELTA_WIDTH * sizeof(uint16_t) + sizeof(int);
    const size_t space = CUDA_SCRATCH_BYTES - 2 * delta_up(state) - 6 * 256;
    const size_t rows = space / row / DELTA_CHUNK * DELTA_CHUNK;
    x->room = (int)rows;
    scratch += 2 * delta_up(state);
    x->m = (uint16_t *)scratch;
    x->p = x->m + values * rows * DELTA_CHUNK;
    x->k16 = x->p + values * rows * DELTA_CHUNK;
    x->q16 = x->k16 + keys * rows * DELTA_WIDTH;
    x->decay = (float2 *)(x->q16 + keys * rows * DELTA_WIDTH);
    x->length = (int *)(x->decay + values * rows);
}

/* delta_by_chunks goes chunk by chunk, as many rows in a launch as scratch has room
 * for.  No launch writes the state
 * that it reads, since blocks of one may read it while others are done. */
static void delta_by_chunks(const struct delta_call *c, bool keep)
{
    struct dev *d = c->d;
    struct delta_chunks x = {};
    const size_t state = tensor_bytes(&c->state);
    char *const scratch = cuda_state(d)->scratch;
    float *const carry[] = {(float *)scratch, (float *)(scratch + delta_up(state))};
    const int rows = (int)c->x.q.dim[0];
    x.o = (bf16 *)c->o.data;
    x.q = (const bf16 *)c->x.q.data;
    x.k = (const bf16 *)c->x.k.data;
    x.v = (const bf16 *)c->x.v.data;
    x.g = (const float *)c->x.g.data;
    x.beta = (const float *)c->x.beta.data;
    x.lo = (const int *)c->lo.data;
    x.first = c->first;
    x.keys = (int)c->x.q.dim[1];
    x.values = (int)c->x.v.dim[1];
    x.group = x.values / x.keys;
    delta_take(&x, scratch, state);
    const int launches = (rows + x.room - 1) / x.room;
    const int chunks = (rows + DELTA_CHUNK * launches - 1) / (DELTA_CHUNK * launches);
    x.from = (const float *)c->state.data;
    if (keep && launches == 1) {
        cudaMemcpyAsync(carry[1], x.from, state, cudaMemcpyDeviceToDevice,
                        stream_of(d));
        x.from = carry[1];
    }
    for (int i = 0; x.begin < rows; i++) {
        x.end = min(rows, x.begin + chunks * DELTA_CHUNK);
        x.to = x.end < rows ? carry[i & 1] : keep ? (float *)c->state.data : NULL;
        delta_prep(d, &x);
        delta_scan(d, &x);
        x.from = x.to;
        x.begin = x.end;
    }
}

/* delta_run: all rows, of which the state keeps all or none. */
static void delta_run(const struct delta_call *c, bool keep)
{
    const int64_t rows = c->x.q.dim[0];
    if (rows >= DELTA_CHUNK)
        delta_by_chunks(c, keep);
    else if (rows > 0)
        delta_by_rows(c, keep ? rows : 0);
}

extern "C" void cuda_delta(struct dev *d, struct tensor o, struct tensor state,
                           struct delta_in in, struct tensor lo, int64_t first,
                           int64_t keep)
{
    const struct delta_call all = {d, o, state, in, lo, first};
    const int64_t rows = in.q.dim[0];
    if (tensor_bytes(&state) > CUDA_SCRATCH_BYTES / 4)
        bug("a state of %zu bytes needs more scratch", tensor_bytes(&state));
    if (rows < DELTA_CHUNK || o.type != DT_BF16 || in.q.dim[2] != DELTA_WIDTH ||
        in.v.dim[2] != DELTA_WIDTH) {
        delta_by_rows(&all, keep);
        return;
    }
    const struct delta_call kept = delta_rows(&all, 0, keep);
    const struct delta_call tried = delta_rows(&all, keep, rows - keep);
    delta_run(&kept, true);
    delta_run(&tried, false);
}
