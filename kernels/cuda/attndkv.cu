/* SPDX-License-Identifier: MIT */
/* attndkv.cu - attention backward, the key side: dk and dv.
 *
 * A block has 128 keys of one key/value head, context or own rows, and walks the tiles
 * of 64 query rows that see any of them.  dk and dv of 32 keys are more than a warp's
 * registers, so two warps share 32 keys: warp a computes p^T = exp(k q^T - lse) and
 * dv += p^T dout, warp b dp^T = v dout^T, ds^T = p^T (dp^T - delta) and dk += ds^T q.
 * p^T goes from a to b through shared memory in the layout of a left operand, a chunk
 * of 32 rows at a time, under a named barrier of the two; k, or v, stays in registers.
 * b has less to compute and copies.
 *
 * 8 D operations a visible pair and head, bound by mma.sync.  255 registers, none to
 * spare: one warp for all four products was 7 % slower (16 keys a warp), chunks of 16
 * rows 5 %.  At an edge p is cleared after rounding, where registers are free. */
#include "attndkv.cuh"

/* dkv_copy_rows begins the copy of the tile's 64 rows of q and dout, `first` on. */
template <class C>
static __device__ __forceinline__ void dkv_copy_rows(const struct attn_args &x, int g,
                                                     int t, int first, uint32_t to)
{
    constexpr int D = C::D, STEP = C::COPIERS / (D / 8), BYTES = C::ROWS * 2 * D;
    const uint32_t chunk = t % (D / 8) * 16;
    if (x.even && first + C::ROWS <= x.rows) {
        /* Whole tokens: one step of rows is always as far from the next. */
        size_t from = row_offset<D>(x, g, first + copy_row<D>(t)) + chunk;
        const char *q = (const char *)x.q + from, *dout = (const char *)x.dout + from;
        const uint32_t step = x.step_bytes * (STEP / 8);
#pragma unroll
        for (int i = 0; i < C::ROWS / STEP; i++) {
            cp16(to + i * STEP * 2 * D, q + (uint64_t)step * (uint32_t)i);
            cp16(to + BYTES + i * STEP * 2 * D, dout + (uint64_t)step * (uint32_t)i);
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < C::ROWS; i += STEP) {
            size_t from = row_offset<D>(x, g, first + i + copy_row<D>(t)) + chunk;
            cp16(to + i * 2 * D, (const char *)x.q + from);
            cp16(to + BYTES + i * 2 * D, (const char *)x.dout + from);
        }
    }
}

/* dkv_copy begins the copy of use n of the ring, query tile `tile`, by 128 threads. */
template <class C>
static __device__ __forceinline__ void dkv_copy(const struct attn_args &x, int g,
                                                int kind, int tile, int n)
{
    const int first = tile * C::ROWS;
    const int t = fresh_thread() % C::COPIERS; // kept, it would spill
    const uint32_t base = smem_base();
    const uint32_t bars = base + offsetof(struct dkv_smem<C>, bars);
    const uint32_t to = base + n % RING * (uint32_t)sizeof(dkv_smem<C>::ring[0]);
    const uint32_t rows = base + offsetof(struct dkv_smem<C>, rows) +
                          n % RING * (uint32_t)sizeof(struct dkv_rows);
    ring_wait_free(bars, n);
    dkv_copy_rows<C>(x, g, t, first, to + copy_to<C::D>(t));
    const int row = first + t % C::ROWS, high = t / C::ROWS;
    const int token = row_token(x, min(row, x.rows - 1));
    const int *span = high ? x.keys[kind].hi : x.keys[kind].lo;
    cp4(rows + offsetof(struct dkv_rows, span) + t % C::ROWS * 8 + high * 4,
        span + token, row < x.rows);
    if (t < C::ROWS / 2) { /* lse, then delta */
        const float *stat = x.stat + (size_t)g * (size_t)x.padded + first;
        if (t >= C::ROWS / 4)
            stat += (size_t)x.kv_heads * (size_t)x.padded;
        cp16(rows + 16 * t, stat + 4 * (t % (C::ROWS / 4)));
    }
    if (t == C::ROWS)
        cp16(rows + offsetof(struct dkv_rows, reach),
             x.bounds + kind * (x.padded / C::ROWS) + tile);
    ring_copied(bars, n);
}

/* clear zeroes p[32 keys][32 rows] where a row does not see a key; span is the table of
 * the rows, in shared memory. */
static __device__ __forceinline__ void clear(uint32_t (&p)[2][2][4], uint32_t span,
                                             int key0)
{
    const int id = fresh_thread() & 31, key = key0 + (id >> 2), col = (id & 3) * 2;
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int4 v = ld_int4(span + (16 * t + 8 * h + col) * 8); // two rows
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int k = key + 16 * m + 8 * i;
                    uint32_t keep = k >= v.x && k < v.y ? 0xffffu : 0;
                    keep |= k >= v.z && k < v.w ? 0xffff0000u : 0;
                    p[m][t][2 * h + i] &= keep;
                }
        }
}

/* The barrier of a pair of warps for chunk c of use n: p is there.  a runs up to a tile
 * ahead of b, but not past the copy of a tile, which b begins after its first chunk. */
template <class C> static __device__ __forceinline__ int written(int warp, int n, int c)
{
    static_assert(C::CHUNKS == 2 && 3 * C::PAIRS < 16, "named barriers 1 to 15");
    return 1 + warp % C::PAIRS + (c == 0 ? 0 : C::PAIRS * (1 + n % RING));
}

/* Warp a: scores of 32 keys and chunk c of the rows to p, rounded, left where b finds
 * it.  rows: the tile's dkv_rows in shared memory. */
template <class C>
static __device__ __forceinline__ void share_p(uint32_t (&p)[2][C::CHUNK / 16][4],
                                               float (&s)[2][C::CHUNK / 8][4], int c,
                                               float scale2, uint32_t rows, int key0,
                                               uint32_t to, const struct lane &l)
{
#pragma unroll
    for (int h = 0; h < C::CHUNK / 8; h++) {
        float lse[2];
        ld_float2(lse[0], lse[1], rows + 4 * (C::CHUNK * c + 8 * h + l.col));
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[m][h][i] = ex2(s[m][h][i] * scale2 - lse[i & 1]);
    }
    to_left<2, C::CHUNK>(p, s);
    /* An edge?  Read anew: kept from the start of the tile it would spill. */
    if (!sees_all(ld_int4(rows + offsetof(struct dkv_rows, reach)), key0, 32))
        clear(p, rows + offsetof(struct dkv_rows, span) + 8 * C::CHUNK * c, key0);
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int t = 0; t < C::CHUNK / 16; t++)
            st16(to + (m * (C::CHUNK / 16) + t) * 512, p[m][t]);
}

/* Warp b: p from a, times dp - delta. */
template <class C>
static __device__ __forceinline__ void take_ds(uint32_t (&p)[2][C::CHUNK / 16][4],
                                               const float (&dp)[2][C::CHUNK / 8][4],
                                               int c, uint32_t rows, uint32_t from,
                                               const struct lane &l)
{
    const uint32_t delta =
        rows + offsetof(struct dkv_rows, delta) + 4 * (C::CHUNK * c + l.col);
#pragma unroll
    for (int t = 0; t < C::CHUNK / 16; t++) {
        float d[2][2];
        ld_float2(d[0][0], d[0][1], delta + 64 * t);
        ld_float2(d[1][0], d[1][1], delta + 64 * t + 32);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            ld16(p[m][t], from + (m * (C::CHUNK / 16) + t) * 512);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float(&v)[4] = dp[m][2 * t + (i >> 1)];
                p[m][t][i] =
                    pack2(low_of(p[m][t][i]) * (v[2 * (i & 1)] - d[i >> 1][0]),
                          high_of(p[m][t][i]) * (v[2 * (i & 1) + 1] - d[i >> 1][1]));
            }
        }
    }
}

/* Grid: n_kv, items. */
template <class C>
__global__ void __launch_bounds__(C::THREADS, 1)
    attn_dkv_kernel(const __grid_constant__ struct attn_args x)
{
    constexpr int D = C::D, CHUNK = C::CHUNK, Q = C::ROWS * 2 * D;
    const uint32_t base = smem_base();
    const uint32_t bars = base + offsetof(struct dkv_smem<C>, bars);
    const int warp = threadIdx.x >> 5, role = warp / C::PAIRS, pair = warp % C::PAIRS;
    const int g = blockIdx.x;
    const struct lane l = lane_of<D>(threadIdx.x & 31);
    const int4 item = x.sorted[blockIdx.y]; // first key, tiles from, to, kind
    const struct attn_keys &keys = x.keys[item.w];
    const int key0 = item.x + 32 * pair, count = item.z - item.y;
    if (threadIdx.x == 0)
        ring_init(bars, C::COPIERS, C::WARPS);
    __syncthreads();
    if (role == 1 && count > 0)
        dkv_copy<C>(x, g, item.w, item.y, 0);
    uint32_t fixed[2][D / 16][4]; // a: k, b: v
#pragma unroll
    for (int m = 0; m < 2; m++) {
        const char *from = (const char *)(role ? keys.v : keys.k) + g * 2 * D;
        const int r = key0 + 16 * m + l.row, end = keys.rows - 1;
        load_left<D>(fixed[m], l, from + (uint64_t)(uint32_t)min(r, end) * x.kv_bytes,
                     from + (uint64_t)(uint32_t)min(r + 8, end) * x.kv_bytes);
    }
    float acc[2][D / 8][4]; // a: dv, b: dk
    zero(acc);
    const uint32_t scored = (role ? Q : 0) + l.nt;

#pragma unroll 1
    for (int n = 0; n < count; n++) {
        ring_wait_free(bars, n); // p of the use before last is taken
        ring_wait_full(bars, n);
        const uint32_t s = base + n % RING * (uint32_t)sizeof(dkv_smem<C>::ring[0]);
        /* Found anew for each tile: kept, it would spill on sm_120. */
        const uint32_t summed = (role ? 0 : Q) + lane_of<D>(fresh_thread() & 31).nn;
        const uint32_t rows = base + offsetof(struct dkv_smem<C>, rows) +
                              n % RING * (uint32_t)sizeof(struct dkv_rows);
        const uint32_t shared_p = s + 2 * Q + pair * (64 * C::ROWS) + l.id * 16;
        const bool skip =
            sees_none(ld_int4(rows + offsetof(struct dkv_rows, reach)), key0, 32);
#pragma unroll
        for (int c = 0; c < C::CHUNKS; c++) {
            const uint32_t part = c * CHUNK * 2 * D;
            if (!skip) {
                float a[2][CHUNK / 8][4];
                uint32_t p[2][CHUNK / 16][4];
                zero(a);
                mul_nt<D, 2, CHUNK>(a, fixed, s + scored + part);
                if (role == 0) {
                    share_p<C>(p, a, c, x.scale2, rows, key0,
                               shared_p + c * (64 * CHUNK), l);
                    pair_arrive(written<C>(warp, n, c));
                } else {
                    pair_wait(written<C>(warp, n, c));
                    take_ds<C>(p, a, c, rows, shared_p + c * (64 * CHUNK), l);
                }
                mul_nn<D, 2, CHUNK>(acc, p, s + summed + part);
            }
            if (c == 0 && role == 1 && n + 1 < count)
                dkv_copy<C>(x, g, item.w, item.y + n + 1, n + 1);
        }
        ring_release(bars, n);
    }

    /* The ring is free once every warp has released the last two uses; racecheck loses
     * a __syncthreads here, behind the named barriers. */
    ring_wait_free(bars, count);
    ring_wait_free(bars, count + 1);
    const float z = role ? x.scale : 1.0f, factor[2][2] = {{z, z}, {z, z}};
    const uint32_t mine = base + warp * (64 * D);
    char *out = (char *)(role ? keys.dk : keys.dv) + g * 2 * D;
    stage_sums<D, 2>(mine, l, acc, factor);
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
        const int key = key0 + staged_row<D>(l, i);
        if (key < keys.rows)
            *(uint4 *)(out + (uint64_t)(uint32_t)key * x.kv_bytes +
                       staged_chunk<D>(l) * 16) = staged<D>(mine, l, i);
    }
}

void attn_dkv(struct dev *d, const struct attn_args *a, int width)
{
    int items = 0;
    for (int kind = 0; kind < a->kinds; kind++)
        items += (a->keys[kind].rows + ATTN_TILE_KEYS - 1) / ATTN_TILE_KEYS;
    dim3 grid((unsigned)a->kv_heads, (unsigned)items);
    if (width == 64)
        launch(d, KERNEL_DKV_64, attn_dkv_kernel<dkv_shape<64>>, grid, *a);
    else
        launch(d, KERNEL_DKV_128, attn_dkv_kernel<dkv_shape<128>>, grid, *a);
}
