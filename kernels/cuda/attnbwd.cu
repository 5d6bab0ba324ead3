/* SPDX-License-Identifier: MIT */
/* attnbwd.cu - the drafter's attention, backward: delta and dq; attndkv.cu does the
 * rest.
 *
 *     p = exp(scale q.k - lse)   delta = dout.o   ds = p (dout.v - delta)
 *     dq = scale sum ds k        dk = scale sum ds q        dv = sum p dout
 *
 * Two passes, seven products where five would do: dq walks the keys of 128 query rows
 * as forward does, dk and dv walk the query rows of 128 keys.  Each sum then has one
 * owner and one order: no atomics, no partial sums in memory, the same bits every time.
 * delta costs one reading of o and dout before the first tile arrives; it is kept, with
 * lse / ln 2, by row for the key side (stat: 8 bytes a row and head).
 *
 * 6 D operations a visible pair and head, bound by mma.sync; 16 rows a warp leave
 * shared memory 86 % busy and are as fast only where mma.sync is slower (sm_120).
 * Twin: cpu/attnbwd.c. */
#include "attnquery.cuh"

/* row_stats finds delta and lse / ln 2 of this warp's rows: lane r has those of row
 * r % (16 MT), and writes them to stat. */
template <class C>
static __device__ __forceinline__ void row_stats(const struct attn_args &x, int g,
                                                 int row0, const struct lane &l,
                                                 float *lse, float *delta)
{
    constexpr int D = C::D, LANES = D / 8, ROWS = 32 / LANES;
    const int mine = l.id % (16 * C::MT);
    *delta = 0.0f;
#pragma unroll 4
    for (int i = 0; i < C::MT * D / 16; i++) {
        size_t from = row_offset<D>(x, g, row0 + staged_row<D>(l, i)) +
                      (size_t)staged_chunk<D>(l) * 16;
        uint4 o = *(const uint4 *)((const char *)x.o_in + from);
        uint4 dout = *(const uint4 *)((const char *)x.dout + from);
        const uint32_t a[4] = {o.x, o.y, o.z, o.w};
        const uint32_t b[4] = {dout.x, dout.y, dout.z, dout.w};
        float v = 0.0f;
#pragma unroll
        for (int e = 0; e < 4; e++)
            v += low_of(a[e]) * low_of(b[e]) + high_of(a[e]) * high_of(b[e]);
#pragma unroll
        for (int m = 1; m < LANES; m *= 2)
            v += shfl_xor(v, m);
        v = shfl(v, mine % ROWS * LANES);
        if (mine / ROWS == i)
            *delta = v;
    }
    const int row = row0 + mine;
    const size_t at_row = row_index(x, g, min(row, x.rows - 1));
    float v = x.lse_short ? to_f32(((const bf16 *)x.lse)[at_row])
                          : ((const float *)x.lse)[at_row];
    *lse = v > -INFINITY ? v * ATTN_LOG2E : INFINITY; // no keys: p = 0
    if (l.id < 16 * C::MT) {
        float *stat = x.stat + (size_t)g * (size_t)x.padded + row;
        stat[0] = *lse;
        stat[(size_t)x.kv_heads * (size_t)x.padded] = *delta;
    }
}

/* dq_scores: s = q k^T and dp = dout v^T for N keys. */
template <class C, int N>
static __device__ __forceinline__ void dq_scores(
    float (&s)[C::MT][N / 8][4], float (&dp)[C::MT][N / 8][4],
    const uint32_t (&q_reg)[C::MT][C::D / 16][4],
    const uint32_t (&dout_reg)[C::MT][C::D / 16][4], uint32_t left_smem,
    uint32_t k_smem, uint32_t v_smem)
{
    constexpr int D = C::D, MT = C::MT;
    zero(s);
    zero(dp);
    if constexpr (C::WIDE) {
        mul_nt<D, MT, N>(s, left_smem, k_smem);
        mul_nt<D, MT, N>(dp, left_smem + C::ROWS * 2 * D, v_smem);
    } else {
        mul_nt2<D, MT, N>(s, dp, q_reg, dout_reg, k_smem, v_smem);
    }
}

/* dq_scores to ds, without the scale, as a left operand. */
template <int MT, int N>
static __device__ __forceinline__ void dq_grads(uint32_t (&p)[MT][N / 16][4],
                                                float (&s)[MT][N / 8][4],
                                                const float (&dp)[MT][N / 8][4],
                                                const float (&lse)[MT][2],
                                                const float (&delta)[MT][2], float c)
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[m][n][i] = ex2(s[m][n][i] * c - lse[m][i >> 1]) *
                             (dp[m][n][i] - delta[m][i >> 1]);
    to_left<MT, N>(p, s);
}

/* Grid: n_kv, items. */
template <class C>
__global__ void __launch_bounds__(C::THREADS, C::CTAS)
    attn_dq_kernel(const __grid_constant__ struct attn_args x)
{
    constexpr int D = C::D, MT = C::MT, KEYS = C::KEYS, CHUNK = C::CHUNK;
    constexpr int TILE = KEYS * 2 * D;
    struct query_smem<C> *smem = query_space<C>();
    const uint32_t base = smem_base();
    const uint32_t bars = base + offsetof(struct query_smem<C>, bars);
    const int warp = threadIdx.x >> 5, g = blockIdx.x, row0 = 16 * MT * warp;
    const int first = x.order[blockIdx.y] * C::ROWS;
    const struct lane l = lane_of<D>(threadIdx.x & 31);

    /* Tables, q and dout, the first tile, and meanwhile delta. */
    query_begin<C>(x, first, warp, l);
    struct walk w = walk_start<C>(x, l);
    uint32_t q_reg[MT][D / 16][4], dout_reg[MT][D / 16][4];
    const uint32_t left_smem =
        base + offsetof(struct query_smem<C>, left) + row0 * 2 * D + l.nn;
    if constexpr (C::WIDE) {
        if (w.key != ATTN_NONE) {
            query_copy_left<C>(x, g, first, x.q, 0);
            query_copy_left<C>(x, g, first, x.dout, 1);
        }
    } else {
        size_t a = row_offset<D>(x, g, first + row0 + l.row);
        size_t b = row_offset<D>(x, g, first + row0 + l.row + 8);
        load_left<D>(q_reg[0], l, (const char *)x.q + a, (const char *)x.q + b);
        load_left<D>(dout_reg[0], l, (const char *)x.dout + a,
                     (const char *)x.dout + b);
    }
    query_copy<C>(x, g, w, 0);
    float lse[MT][2], delta[MT][2], dq[MT][D / 8][4];
    float lane_lse, lane_delta;
    row_stats<C>(x, g, first + row0, l, &lane_lse, &lane_delta);
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            lse[m][h] = shfl(lane_lse, 16 * m + l.row + 8 * h);
            delta[m][h] = shfl(lane_delta, 16 * m + l.row + 8 * h);
        }
    zero(dq);

#pragma unroll 1
    for (int n = 0; w.key != ATTN_NONE; n++) {
        ring_wait_full(bars, n);
        const uint32_t k_smem = base + n % RING * (2 * TILE), v_smem = k_smem + TILE;
        const int4 reach = smem->reach[w.kind][warp];
        const int key = w.key;
        const struct walk next = walk_on<C>(w, reach, l);
        if (sees_all(reach, key, KEYS)) {
#pragma unroll
            for (int h = 0; h < KEYS / CHUNK; h++) {
                const uint32_t part = h * CHUNK * 2 * D;
                float s[MT][CHUNK / 8][4], dp[MT][CHUNK / 8][4];
                uint32_t p[MT][CHUNK / 16][4];
                dq_scores<C, CHUNK>(s, dp, q_reg, dout_reg, left_smem,
                                    k_smem + part + l.nt, v_smem + part + l.nt);
                dq_grads<MT, CHUNK>(p, s, dp, lse, delta, x.scale2);
                if (h == 0) /* the other warps are through with the tile before */
                    query_copy<C>(x, g, next, n + 1);
                mul_nn<D, MT, CHUNK>(dq, p, k_smem + part + l.nn);
            }
        } else { /* an edge: 16 keys at a time, compared */
            query_copy<C>(x, g, next, n + 1);
#pragma unroll 1
            for (int k = 0; k < KEYS; k += 16) {
                if (sees_none(reach, key + k, 16))
                    continue;
                float s[MT][2][4], dp[MT][2][4];
                uint32_t p[MT][1][4];
                const uint32_t part = k * 2 * D;
                dq_scores<C, 16>(s, dp, q_reg, dout_reg, left_smem,
                                 k_smem + part + l.nt, v_smem + part + l.nt);
                hide<MT>(s, &smem->span[w.kind][row0], key + k, l);
                dq_grads<MT, 16>(p, s, dp, lse, delta, x.scale2);
                mul_nn<D, MT, 16>(dq, p, k_smem + part + l.nn);
            }
        }
        ring_release(bars, n);
        w = next;
    }

    float factor[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++)
        factor[m][0] = factor[m][1] = x.scale;
    query_store<C>(x, g, first, warp, l, x.dq, dq, factor);
}

static void attn_dq(struct dev *d, const struct attn_args *a, int width)
{
    dim3 grid((unsigned)a->kv_heads, (unsigned)(a->padded / ATTN_QUERY_ROWS));
    bool wide_fits = attn_two_fit();
    if (width == 64 && wide_fits)
        launch(d, KERNEL_DQ_WIDE_64, attn_dq_kernel<dq_wide<64>>, grid, *a);
    else if (width == 64)
        launch(d, KERNEL_DQ_TALL_64, attn_dq_kernel<dq_tall<64>>, grid, *a);
    else if (wide_fits)
        launch(d, KERNEL_DQ_WIDE_128, attn_dq_kernel<dq_wide<128>>, grid, *a);
    else
        launch(d, KERNEL_DQ_TALL_128, attn_dq_kernel<dq_tall<128>>, grid, *a);
}

extern "C" void cuda_attn_block_bwd(struct dev *d, struct attn_grads g,
                                    struct tensor dout, struct tensor o,
                                    struct tensor lse, struct tensor q,
                                    struct tensor kc, struct tensor vc,
                                    struct tensor kb, struct tensor vb,
                                    struct tensor lo, struct tensor hi,
                                    struct attn_block p)
{
    if (tensor_count(&q) == 0) {
        cudaMemsetAsync(g.dkc.data, 0, tensor_bytes(&g.dkc), stream_of(d));
        cudaMemsetAsync(g.dvc.data, 0, tensor_bytes(&g.dvc), stream_of(d));
        cuda_launched(d, "attn_block_bwd");
        return;
    }
    struct attn_args a = attn_args_of(q, kc, vc, lo, hi, p.scale);
    attn_args_own(&a, kb, vb, p);
    a.dout = (const bf16 *)dout.data;
    a.o_in = (const bf16 *)o.data;
    a.dq = (bf16 *)g.dq.data;
    a.keys[0].dk = (bf16 *)g.dkc.data;
    a.keys[0].dv = (bf16 *)g.dvc.data;
    a.keys[1].dk = (bf16 *)g.dkb.data;
    a.keys[1].dv = (bf16 *)g.dvb.data;
    a.lse = lse.data;
    a.lse_short = lse.type == DT_BF16;
    if (!attn_is_fused(q, true)) {
        attn_plain_bwd(d, &a, q);
        return;
    }
    attn_plan(d, &a, true);
    attn_dq(d, &a, (int)q.dim[2]);
    attn_dkv(d, &a, (int)q.dim[2]);
}
