/* SPDX-License-Identifier: MIT */
/* deltaprep.cu - Gated DeltaNet in chunks: M and P of every chunk (delta.cuh).
 *
 * A block has the chunks that begin in 64 rows, most often one, of one key head.  Four
 * warps make k . k and q . k, 16 rows each, on and below the diagonal; these serve all
 * value heads of the key head.  For each of those, two warps invert I + B, a thread a
 * column: forward substitution in f32, since keys that repeat make the inverse the
 * difference of large numbers (powers of B, or rounding between blocks of it, do not
 * survive them).  P is two warps' work, too; the pairs of warps share these jobs
 * without waiting for one another.  k and q leave in f16.
 *
 * At 48 value and 16 key heads 2016 fused multiply-adds a column, 64 columns and 48
 * heads make 0.19 MFLOP a row, the products 0.33 on tensor cores; 1.8 KB a row and key
 * head are read and written.  That is about 0.2 ms for 32768 rows on an H200; it takes
 * 0.7, for a column waits for itself. */
#include "deltaprep.cuh"

static_assert(sizeof(struct prep_smem) <= 48 << 10,
              "four blocks on sm_90, two on sm_120");

static __device__ __forceinline__ struct prep_smem *prep_space()
{
    return (struct prep_smem *)dynamic_smem;
}

/* prep_starts notes which of 128 rows begin a chunk; rows past the end all do. */
static __device__ __forceinline__ void prep_starts(const struct delta_chunks &x, int t)
{
    const int row = t + threadIdx.x;
    bool starts = row >= x.end;
    if (!starts) {
        const int64_t begin = max((int64_t)x.begin, x.lo[row] - x.first);
        starts = (row - begin) % DELTA_CHUNK == 0;
    }
    const uint32_t mask = __ballot_sync(0xffffffffu, starts);
    if (threadIdx.x % 32 == 0)
        prep_space()->starts[threadIdx.x / 32] = mask;
    __syncthreads();
}

/* The first of those rows from row i on; there is one in any 64. */
static __device__ __forceinline__ int prep_next(int i)
{
    int word = i / 32;
    uint32_t mask = prep_space()->starts[word] & ~0u << i % 32;
    while (!mask)
        mask = prep_space()->starts[++word];
    return 32 * word + __ffs((int)mask) - 1;
}

enum {
    PREP_CHUNKS = DELTA_WIDTH / 8, // of 16 bytes, in a row
    PREP_STEP = DELTA_THREADS / PREP_CHUNKS,
    PREP_LOADS = DELTA_CHUNK / PREP_STEP // a thread's, PREP_STEP rows apart
};

/* prep_fetch reads rows [t, t + n) of a key head, zeros behind them: all loads of a
 * thread are on their way before the first is waited for. */
static __device__ __forceinline__ void prep_fetch(uint4 (&v)[PREP_LOADS],
                                                  const struct delta_chunks &x,
                                                  const bf16 *from, int key, int t,
                                                  int n)
{
    const int row = threadIdx.x / PREP_CHUNKS, c = threadIdx.x % PREP_CHUNKS;
    const size_t stride = (size_t)x.keys * PREP_CHUNKS;
    const uint4 *p = (const uint4 *)from + (size_t)(t + row) * stride +
                     (size_t)(key * PREP_CHUNKS + c);
#pragma unroll
    for (int i = 0; i < PREP_LOADS; i++)
        v[i] = row + i * PREP_STEP < n ? p[(size_t)(i * PREP_STEP) * stride]
                                       : make_uint4(0, 0, 0, 0);
}

/* prep_keep puts them as f16 to a tile and to `copy`. */
static __device__ __forceinline__ void prep_keep(const struct delta_chunks &x,
                                                 const uint4 (&v)[PREP_LOADS],
                                                 uint16_t *copy, uint32_t tile, int key,
                                                 int t, int n)
{
    const int row = threadIdx.x / PREP_CHUNKS, c = threadIdx.x % PREP_CHUNKS;
    uint4 *to = (uint4 *)copy + delta_at(x, key, t + row) * PREP_CHUNKS + c;
#pragma unroll
    for (int i = 0; i < PREP_LOADS; i++) {
        const uint32_t h[4] = {pack2_half(low_of(v[i].x), high_of(v[i].x)),
                               pack2_half(low_of(v[i].y), high_of(v[i].y)),
                               pack2_half(low_of(v[i].z), high_of(v[i].z)),
                               pack2_half(low_of(v[i].w), high_of(v[i].w))};
        st16(tile + at<DELTA_WIDTH>(row + i * PREP_STEP, c), h);
        if (row + i * PREP_STEP < n)
            to[i * PREP_STEP * PREP_CHUNKS] = make_uint4(h[0], h[1], h[2], h[3]);
    }
}

/* prep_dots puts k . k and q . k in the place of the tiles. */
static __device__ __forceinline__ void prep_dots(uint32_t k_smem, uint32_t q_smem)
{
    const int warp = threadIdx.x / 32;
    const struct lane l = lane_of<DELTA_WIDTH>(threadIdx.x & 31);
    const uint32_t rows = 16 * warp * 2 * DELTA_WIDTH;
    float kk[DELTA_CHUNK / 8][4] = {}, qk[DELTA_CHUNK / 8][4] = {};
#pragma unroll
    for (int k = 0; k < DELTA_WIDTH / 16; k++) {
        uint32_t a[4], c[4], b[4];
        ldmatrix(a, on(k_smem + rows + l.nn, k));
        ldmatrix(c, on(q_smem + rows + l.nn, k));
#pragma unroll
        for (int n = 0; n < DELTA_CHUNK / 16; n++) {
            if (n > warp)
                continue;
            ldmatrix(b, on(k_smem + l.nt, k) + n * 32 * DELTA_WIDTH);
            mma_half(kk[2 * n], a, b[0], b[1]);
            mma_half(kk[2 * n + 1], a, b[2], b[3]);
            mma_half(qk[2 * n], c, b[0], b[1]);
            mma_half(qk[2 * n + 1], c, b[2], b[3]);
        }
    }
    __syncthreads();
    struct prep_smem *smem = prep_space();
#pragma unroll
    for (int n = 0; n < DELTA_CHUNK / 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int r = 16 * warp + l.row + 8 * h, c = 8 * n + l.col;
            *(float2 *)&smem->dot[0][r][c] =
                make_float2(kk[n][2 * h], kk[n][2 * h + 1]);
            *(float2 *)&smem->dot[1][r][c] =
                make_float2(qk[n][2 * h], qk[n][2 * h + 1]);
        }
    __syncthreads();
}

static __device__ __forceinline__ float prep_sum_to(float v, int lane)
{
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, v, o);
        v += lane >= o ? before : 0.0f;
    }
    return v;
}

/* prep_gates: G, beta and the decays of a value head, by one warp. */
static __device__ __forceinline__ void prep_gates(const struct delta_chunks &x,
                                                  struct prep_gate *gate, int head,
                                                  int t, int n)
{
    const int lane = threadIdx.x & 31;
    float g[2], beta[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int r = lane + 32 * i;
        const size_t at_row = (size_t)(t + r) * (size_t)x.values + (size_t)head;
        g[i] = prep_sum_to(r < n ? x.g[at_row] * ATTN_LOG2E : 0.0f, lane);
        beta[i] = r < n ? x.beta[at_row] : 0.0f;
    }
    g[1] += shfl(g[0], 31);
    const float last = shfl(g[1], 31); // rows past the chunk's last add nothing
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int r = lane + 32 * i;
        gate->g[r] = g[i];
        gate->beta[r] = beta[i];
        if (r < n)
            x.decay[delta_at(x, head, t + r)] =
                make_float2(exp2f(g[i]), exp2f(last - g[i]));
    }
}

/* prep_invert: column j of (I + B)^-1, then of M. */
static __device__ __forceinline__ void prep_invert(const struct delta_chunks &x,
                                                   const struct prep_gate *gate,
                                                   int head, int t, int n, int j)
{
    const struct prep_smem *smem = prep_space();
    float column[DELTA_CHUNK];
#pragma unroll
    for (int i = 0; i < DELTA_CHUNK; i++) {
        float sum[4] = {};
#pragma unroll
        for (int l = 0; l < i; l += 4) {
            const float4 k = *(const float4 *)&smem->dot[0][i][l];
            sum[0] += k.x * column[l];
            if (l + 1 < i)
                sum[1] += k.y * column[l + 1];
            if (l + 2 < i)
                sum[2] += k.z * column[l + 2];
            if (l + 3 < i)
                sum[3] += k.w * column[l + 3];
        }
        column[i] = (i == j ? 1.0f : 0.0f) -
                    gate->beta[i] * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    const float g = gate->g[j], beta = gate->beta[j];
    uint16_t *out = x.m + delta_at(x, head, t) * DELTA_CHUNK + j;
#pragma unroll
    for (int i = 0; i < DELTA_CHUNK; i++) {
        const float m = i >= j ? column[i] * ex2(gate->g[i] - g) * beta : 0.0f;
        if (i < n)
            out[i * DELTA_CHUNK] = (uint16_t)pack2_half(m, 0.0f);
    }
}

/* prep_near: P, by 64 threads of which this is number j. */
static __device__ __forceinline__ void prep_near(const struct delta_chunks &x,
                                                 const struct prep_gate *gate, int head,
                                                 int t, int n, int j)
{
    const struct prep_smem *smem = prep_space();
    const int c = j % 8 * 8;
    for (int r = j / 8; r < n; r += 8) {
        const float g = gate->g[r];
        uint32_t h[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int s = c + 2 * i;
            const float low = s <= r ? smem->dot[1][r][s] * ex2(g - gate->g[s]) : 0.0f;
            const float high =
                s + 1 <= r ? smem->dot[1][r][s + 1] * ex2(g - gate->g[s + 1]) : 0.0f;
            h[i] = pack2_half(low, high);
        }
        *(uint4 *)(x.p + delta_at(x, head, t + r) * DELTA_CHUNK + c) =
            make_uint4(h[0], h[1], h[2], h[3]);
    }
}

/* prep_heads makes M and P of some value heads of a key head.  A pair of warps takes
 * every other of these jobs, the inversions first, since they are the longer ones. */
static __device__ __forceinline__ void prep_heads(const struct delta_chunks &x,
                                                  int first, int heads, int t, int n)
{
    struct prep_smem *smem = prep_space();
    const int warp = threadIdx.x / 32, j = threadIdx.x % DELTA_CHUNK;
    if (warp < heads)
        prep_gates(x, &smem->gate[warp], first + warp, t, n);
    __syncthreads(); // the gates are there
    for (int i = warp / 2; i < 2 * heads; i += 2)
        if (i < heads)
            prep_invert(x, &smem->gate[i], first + i, t, n, j);
        else
            prep_near(x, &smem->gate[i - heads], first + i - heads, t, n, j);
    __syncthreads();
}

/* Grid: 64 rows, key heads. */
__global__ void __launch_bounds__(DELTA_THREADS, 4)
    delta_prep_kernel(const __grid_constant__ struct delta_chunks x)
{
    const int window = x.begin + blockIdx.x * DELTA_CHUNK, key = blockIdx.y;
    const uint32_t k_smem = smem_base() + offsetof(struct prep_smem, tile);
    const uint32_t q_smem = k_smem + 2 * DELTA_TILE;
    prep_starts(x, window);
    for (int i = prep_next(0); i < DELTA_CHUNK && window + i < x.end;) {
        const int t = window + i, next = prep_next(i + 1), n = next - i;
        if (key == 0 && threadIdx.x == 0)
            x.length[t - x.begin] = n;
        uint4 k[PREP_LOADS], q[PREP_LOADS];
        prep_fetch(k, x, x.k, key, t, n);
        prep_fetch(q, x, x.q, key, t, n);
        prep_keep(x, k, x.k16, k_smem, key, t, n);
        prep_keep(x, q, x.q16, q_smem, key, t, n);
        __syncthreads();
        prep_dots(k_smem, q_smem);
        for (int h = 0; h < x.group; h += PREP_HEADS)
            prep_heads(x, key * x.group + h, min(x.group - h, (int)PREP_HEADS), t, n);
        i = next;
    }
}

void delta_prep(struct dev *d, const struct delta_chunks *x)
{
    dim3 grid(blocks_for(x->end - x->begin, DELTA_CHUNK), (unsigned)x->keys);
    launch(d, KERNEL_DELTA_PREP, delta_prep_kernel, grid, *x);
}
