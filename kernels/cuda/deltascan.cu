/* SPDX-License-Identifier: MIT */
/* deltascan.cu - Gated DeltaNet in chunks: along a document (delta.cuh).
 *
 * A warp owns 16 columns of a head's state for as long as the document lasts, and needs
 * no other warp: it keeps S^T [16][128] as the f32 sums of its products.  Rounded to
 * f16 those registers are the left operand of S^T K^T and, as they are, the right one
 * of Q S; so are the rows' D^T of D^T K and of P D.  Nothing but K, Q, V, M, P and
 * decays comes from shared memory, copied ahead: M and P one chunk, the others two.
 *
 * A block has 64 columns of one value head, and a multiprocessor for itself: 96 blocks
 * for one long document at 48 heads, a warp on every scheduler of 96 multiprocessors.
 * A chunk's 232 mma.sync, 2.1 MFLOP for 16 columns' 64 rows, are about 1500 cycles of
 * the some 4600 that a warp takes for it; the rest is latency, and two warps on a
 * scheduler take nearly twice as long for a chunk.  Bytes: 99 KB a row are
 * read and written, of 45 KB that there are.
 *
 * Documents do not meet: part p of the grid takes those that begin in rows [p
 * DELTA_RUN, (p + 1) DELTA_RUN) of the launch, the first also what goes on from before.
 */
#include "deltascan.cuh"

enum { ROW_TILES = DELTA_CHUNK / 8, STATE_TILES = DELTA_WIDTH / 8 };

static_assert(sizeof(struct scan_smem) <= ATTN_SMEM_MAX, "fits sm_120");

struct scan_chunk {
    int t, n; // n = 0: there is none
    bool fresh;
};

/* What memory says of a chunk at row t: loads that nothing waits for until
 * scan_chunk_of. */
struct scan_look {
    int t, n, lo;
};

static __device__ __forceinline__ struct scan_look scan_look_at(
    const struct delta_chunks &x, int t)
{
    struct scan_look l = {t, 0, 0};
    if (t < x.end) {
        l.n = x.length[t - x.begin];
        l.lo = x.lo[t];
    }
    return l;
}

/* scan_chunk_of is that chunk in a walk that ends with the documents that begin before
 * `limit`. */
static __device__ __forceinline__ struct scan_chunk scan_chunk_of(
    const struct delta_chunks &x, const struct scan_look &l, int limit)
{
    const bool fresh = l.lo >= x.first + l.t;
    return {l.t, fresh && l.t >= limit ? 0 : l.n, fresh};
}

/* ---- copies ---- */

/* 64 rows of BYTES, zeros from row n on. */
template <int BYTES>
static __device__ __forceinline__ void scan_copy(uint32_t to, const void *from,
                                                 size_t stride, int n)
{
    constexpr int CHUNKS = BYTES / 16, STEP = DELTA_THREADS / CHUNKS;
    const int row = threadIdx.x / CHUNKS, c = threadIdx.x % CHUNKS;
    const char *p = (const char *)from + (size_t)row * stride + c * 16;
    to += at<BYTES / 2>(row, c);
#pragma unroll
    for (int i = 0; i < DELTA_CHUNK / STEP; i++)
        cp16(to + i * STEP * BYTES, p + (size_t)(i * STEP) * stride,
             row + i * STEP < n);
}

static __device__ __forceinline__ uint32_t scan_address(const void *member)
{
    return smem_base() + (uint32_t)((const unsigned char *)member - dynamic_smem);
}

static __device__ __forceinline__ void scan_copy_first(const struct delta_chunks &x,
                                                       const struct scan_chunk &c,
                                                       struct scan_smem *smem, int b,
                                                       int key, int head, int column)
{
    const size_t at_key = delta_at(x, key, c.t) * DELTA_WIDTH;
    const size_t stride = (size_t)x.values * 256;
    scan_copy<256>(scan_address(smem->k[b]), x.k16 + at_key, 256, c.n);
    scan_copy<256>(scan_address(smem->q[b]), x.q16 + at_key, 256, c.n);
    scan_copy<128>(scan_address(smem->v[b]),
                   (const char *)x.v + (size_t)c.t * stride +
                       (size_t)(head * DELTA_WIDTH + column) * sizeof(bf16),
                   stride, c.n);
    if (threadIdx.x < DELTA_CHUNK)
        cp8(scan_address(&smem->decay[b][threadIdx.x]),
            x.decay + delta_at(x, head, c.t) + threadIdx.x, (int)threadIdx.x < c.n);
    bar_arrive_copied(scan_address(&smem->full[b]));
}

static __device__ __forceinline__ void scan_copy_late(const struct delta_chunks &x,
                                                      const struct scan_chunk &c,
                                                      struct scan_smem *smem, int head)
{
    const size_t at_row = delta_at(x, head, c.t) * DELTA_CHUNK;
    scan_copy<128>(scan_address(smem->m), x.m + at_row, 128, c.n);
    scan_copy<128>(scan_address(smem->p), x.p + at_row, 128, c.n);
    bar_arrive_copied(scan_address(&smem->full_late));
}

/* ---- a warp's 16 columns ---- */

/* scan_left rounds N tiles of sums to left operands of products in f16. */
template <int N>
static __device__ __forceinline__ void scan_left(uint32_t (&a)[N / 2][4],
                                                 const float (&s)[N][4])
{
#pragma unroll
    for (int k = 0; k < N / 2; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[k][i] = pack2_half(s[2 * k + (i >> 1)][2 * (i & 1)],
                                 s[2 * k + (i >> 1)][2 * (i & 1) + 1]);
}

template <int N> static __device__ __forceinline__ void scan_zero(float (&s)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] = 0.0f;
}

template <int N>
static __device__ __forceinline__ void scan_scale(float (&s)[N][4], float by)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] *= by;
}

template <int N>
static __device__ __forceinline__ float scan_squares(const float (&s)[N][4])
{
    float sum[4] = {};
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] += s[n][i] * s[n][i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* scan_center scales a warp's state and rows to about 2^4 where they are too large or
 * too small for f16.  Below 2^9 at this place nothing that a chunk makes of them is
 * beyond 2^16.  True when it did. */
static __device__ __forceinline__ bool scan_center(float (&state)[STATE_TILES][4],
                                                   float (&rows)[ROW_TILES][4],
                                                   float &scale)
{
    float most = scan_squares(state) + scan_squares(rows);
    if (!vote(most > 0x1p18f) && vote(most > 0x1p-12f))
        return false;
    most = warp_max(most);
    const int exponent = (int)(__float_as_uint(most) >> 23) - 127;
    if (exponent < -126) // nothing there
        return false;
    const float by = __uint_as_float((uint32_t)(127 + 4 - (exponent >> 1)) << 23);
    scan_scale(state, by);
    scan_scale(rows, by);
    scale *= by;
    return true;
}

/* scan_recall reads S^T from a state [128][128], scan_record writes it. */
static __device__ __forceinline__ void scan_recall(float (&s)[STATE_TILES][4],
                                                   const float *from,
                                                   const struct lane &l)
{
#pragma unroll
    for (int n = 0; n < STATE_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] =
                from[(8 * n + l.col + (i & 1)) * DELTA_WIDTH + l.row + 8 * (i >> 1)];
}

static __device__ __forceinline__ void scan_record(float *to,
                                                   const float (&s)[STATE_TILES][4],
                                                   float by, const struct lane &l)
{
#pragma unroll
    for (int n = 0; n < STATE_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[(8 * n + l.col + (i & 1)) * DELTA_WIDTH + l.row + 8 * (i >> 1)] =
                s[n][i] * by;
}

/* ---- the steps of a chunk ---- */

/* rows^T = (K S)^T, o = Q S.  The right operands of the latter are the left ones of the
 * former, as they lie; side by side neither waits for its own sums. */
static __device__ __forceinline__ void scan_read(float (&rows)[ROW_TILES][4],
                                                 float (&o)[4][2][4],
                                                 const uint32_t (&state)[8][4],
                                                 uint32_t k_smem, uint32_t q_smem)
{
    scan_zero(rows);
    zero(o);
#pragma unroll
    for (int k = 0; k < DELTA_WIDTH / 16; k++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            uint32_t b[4], a[4];
            ldmatrix(b, on(k_smem, k) + n * 32 * DELTA_WIDTH);
            mma_half(rows[2 * n], state[k], b[0], b[1]);
            mma_half(rows[2 * n + 1], state[k], b[2], b[3]);
            ldmatrix(a, on(q_smem, k) + n * 32 * DELTA_WIDTH);
            mma_half(o[n][0], a, state[k][0], state[k][2]);
            mma_half(o[n][1], a, state[k][1], state[k][3]);
        }
}

/* o = Q S alone. */
static __device__ __forceinline__ void scan_query(float (&o)[4][2][4],
                                                  const uint32_t (&state)[8][4],
                                                  uint32_t q_smem)
{
    zero(o);
#pragma unroll
    for (int k = 0; k < DELTA_WIDTH / 16; k++)
#pragma unroll
        for (int m = 0; m < 4; m++) {
            uint32_t a[4];
            ldmatrix(a, on(q_smem, k) + m * 32 * DELTA_WIDTH);
            mma_half(o[m][0], a, state[k][0], state[k][2]);
            mma_half(o[m][1], a, state[k][1], state[k][3]);
        }
}

/* rows^T = V^T - rows^T diag(exp G): what M makes D of. */
static __device__ __forceinline__ void scan_rows(float (&rows)[ROW_TILES][4],
                                                 uint32_t v_smem,
                                                 const float2 *decay_smem, float scale,
                                                 int col)
{
#pragma unroll
    for (int n = 0; n < ROW_TILES; n += 2) {
        uint32_t v[4];
        ldmatrix_trans(v, v_smem + n * 8 * 2 * SCAN_COLUMNS);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float4 e = *(const float4 *)&decay_smem[8 * (n + j) + col];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float *r = rows[n + j] + 2 * h;
                r[0] = scale * low_of(v[2 * j + h]) - e.x * r[0];
                r[1] = scale * high_of(v[2 * j + h]) - e.z * r[1];
            }
        }
    }
}

/* d^T = rows^T M^T; M has nothing above its diagonal. */
static __device__ __forceinline__ void scan_written(float (&d)[ROW_TILES][4],
                                                    const uint32_t (&rows)[4][4],
                                                    uint32_t m_smem)
{
    scan_zero(d);
#pragma unroll
    for (int k = 0; k < DELTA_CHUNK / 16; k++)
#pragma unroll
        for (int n = k; n < ROW_TILES / 2; n++) {
            uint32_t b[4];
            ldmatrix(b, on(m_smem, k) + n * 32 * DELTA_CHUNK);
            mma_half(d[2 * n], rows[k], b[0], b[1]);
            mma_half(d[2 * n + 1], rows[k], b[2], b[3]);
        }
}

/* o = diag(exp G) o + P D, the right operand again as D^T lies. */
static __device__ __forceinline__ void scan_outputs(float (&o)[4][2][4],
                                                    const uint32_t (&d)[4][4],
                                                    uint32_t p_smem,
                                                    const float2 *decay_smem, int row)
{
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float e = decay_smem[16 * m + row + 8 * h].x;
#pragma unroll
            for (int n = 0; n < 2; n++) {
                o[m][n][2 * h] *= e;
                o[m][n][2 * h + 1] *= e;
            }
        }
#pragma unroll
    for (int k = 0; k < DELTA_CHUNK / 16; k++)
#pragma unroll
        for (int m = k; m < 4; m++) {
            uint32_t a[4];
            ldmatrix(a, on(p_smem, k) + m * 32 * DELTA_CHUNK);
            mma_half(o[m][0], a, d[k][0], d[k][2]);
            mma_half(o[m][1], a, d[k][1], d[k][3]);
        }
}

/* scan_store writes a warp's 16 columns of a chunk's rows; `out` is its first row's. */
static __device__ __forceinline__ void scan_store(bf16 *out, size_t stride, int n,
                                                  const float (&o)[4][2][4], float by,
                                                  const struct lane &l)
{
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int r = 16 * m + l.row + 8 * h;
            const uint32_t low = pack2(o[m][0][2 * h] * by, o[m][0][2 * h + 1] * by);
            const uint32_t high = pack2(o[m][1][2 * h] * by, o[m][1][2 * h + 1] * by);
            uint32_t *p = (uint32_t *)(out + (size_t)r * stride) + l.col / 2;
            if (r < n) {
                p[0] = low;
                p[4] = high;
            }
        }
}

/* state = exp(G_last) state + d^T K, d with its decay to the chunk's end. */
static __device__ __forceinline__ void scan_update(float (&state)[STATE_TILES][4],
                                                   const uint32_t (&d)[4][4],
                                                   uint32_t k_smem, float decay)
{
    scan_scale(state, decay);
#pragma unroll
    for (int k = 0; k < DELTA_CHUNK / 16; k++)
#pragma unroll
        for (int n = 0; n < STATE_TILES / 2; n++) {
            uint32_t b[4];
            ldmatrix_trans(b, on(k_smem, n) + k * 32 * DELTA_WIDTH);
            mma_half(state[2 * n], d[k], b[0], b[1]);
            mma_half(state[2 * n + 1], d[k], b[2], b[3]);
        }
}

/* scan_decay scales D^T by each row's decay to the end of the chunk. */
static __device__ __forceinline__ void scan_decay(float (&d)[ROW_TILES][4],
                                                  const float2 *decay_smem, int col)
{
#pragma unroll
    for (int n = 0; n < ROW_TILES; n++) {
        const float4 e = *(const float4 *)&decay_smem[8 * n + col];
        d[n][0] *= e.y;
        d[n][1] *= e.w;
        d[n][2] *= e.y;
        d[n][3] *= e.w;
    }
}

/* Grid: heads times slices, parts. */
__global__ void __launch_bounds__(DELTA_THREADS, 1)
    delta_scan_kernel(const __grid_constant__ struct delta_chunks x)
{
    struct scan_smem *smem = (struct scan_smem *)dynamic_smem;
    const int head = blockIdx.x / SCAN_SLICES, key = head / x.group;
    const int warp = threadIdx.x >> 5;
    const int column = blockIdx.x % SCAN_SLICES * SCAN_COLUMNS,
              own = column + 16 * warp;
    const struct lane l = lane_of<DELTA_WIDTH>(threadIdx.x & 31);
    const struct lane t = lane_of<DELTA_CHUNK>(l.id); // for rows of 64
    const int begin = x.begin + blockIdx.y * DELTA_RUN,
              limit = min(begin + DELTA_RUN, x.end);
    const int start = blockIdx.y ? delta_first(x.lo, x.first, begin, limit) : begin;
    if (start == limit)
        return;

    struct scan_chunk now = scan_chunk_of(x, scan_look_at(x, start), limit);
    float state[STATE_TILES][4] = {}, scale = 1.0f;
    const size_t at_state = (size_t)head * DELTA_WIDTH * DELTA_WIDTH + own;
    if (threadIdx.x == 0) {
        bar_init(scan_address(&smem->full[0]), DELTA_THREADS);
        bar_init(scan_address(&smem->full[1]), DELTA_THREADS);
        bar_init(scan_address(&smem->full_late), DELTA_THREADS);
    }
    __syncthreads();
    scan_copy_first(x, now, smem, 0, key, head, column);
    scan_copy_late(x, now, smem, head);
    struct scan_chunk next = scan_chunk_of(x, scan_look_at(x, now.t + now.n), limit);
    if (next.n > 0)
        scan_copy_first(x, next, smem, 1, key, head, column);
    if (!now.fresh) {
        float none[ROW_TILES][4] = {};
        scan_recall(state, x.from + at_state, l);
        scan_center(state, none, scale);
    }

#pragma unroll 1
    for (int c = 0; now.n > 0; c++) {
        const struct scan_look look = scan_look_at(x, next.t + next.n);
        const int b = c & 1;
        const uint32_t k_smem = scan_address(smem->k[b]);
        const float2 *decay = smem->decay[b];
        if (now.fresh) {
            scan_zero(state);
            scale = 1.0f;
        }
        float o[4][2][4];
        uint32_t d[4][4], late[4][4];
        {
            float rows[ROW_TILES][4];
            uint32_t s[8][4];
            scan_left(s, state);
            bar_wait(scan_address(&smem->full[b]), c >> 1 & 1);
            scan_read(rows, o, s, k_smem + l.nt, scan_address(smem->q[b]) + l.nn);
            scan_rows(rows, on(scan_address(smem->v[b]) + t.nt, warp), decay, scale,
                      l.col);
            if (scan_center(state, rows, scale)) {
                scan_left(s, state); // with what was too small for f16
                scan_query(o, s, scan_address(smem->q[b]) + l.nn);
            }
            scan_left(d, rows);
            bar_wait(scan_address(&smem->full_late), c & 1);
            scan_written(rows, d, scan_address(smem->m) + t.nt);
            scan_left(d, rows);
            scan_decay(rows, decay, l.col);
            scan_left(late, rows);
        }
        scan_outputs(o, d, scan_address(smem->p) + t.nn, decay, l.row);
        scan_store(
            x.o + ((size_t)now.t * (size_t)x.values + (size_t)head) * DELTA_WIDTH + own,
            (size_t)x.values * DELTA_WIDTH, now.n, o, 1.0f / scale, l);
        scan_update(state, late, k_smem + l.nn, decay[now.n - 1].x);
        const struct scan_chunk after = scan_chunk_of(x, look, limit);
        __syncthreads(); // all are through with what the copies overwrite
        if (next.n > 0)
            scan_copy_late(x, next, smem, head);
        if (after.n > 0)
            scan_copy_first(x, after, smem, b, key, head, column);
        if (now.t + now.n == x.end && x.to)
            scan_record(x.to + at_state, state, 1.0f / scale, l);
        now = next;
        next = after;
    }
}

void delta_scan(struct dev *d, const struct delta_chunks *x)
{
    dim3 grid((unsigned)(x->values * SCAN_SLICES),
              blocks_for(x->end - x->begin, DELTA_RUN));
    launch_alone(d, KERNEL_DELTA_SCAN, delta_scan_kernel, grid, *x);
}
