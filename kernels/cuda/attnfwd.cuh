/* SPDX-License-Identifier: MIT */
/* attnfwd.cuh - attention over intervals of keys, forward: the kernel.
 *
 * A block has 128 rows of one key/value head (attn.cuh) and takes all keys they see:
 * s = q k^T, softmax on the fly, o += p v.  Scores stay in registers; p, rounded to
 * bf16, is the left operand of the second product without a move.  The reference m of a
 * row follows its maximum only when that has grown by 2^8: p stays below 256, and o and
 * the sum are seldom rescaled.  Only lse is kept for backward.
 *
 * 4 D operations a visible pair and head; k and v of a head stay in L2, so the bound is
 * mma.sync, of which a warp of 32 rows reaches about two thirds on sm_90 (attn_span in
 * bench/results/h200-op.tsv): the rest is exp, addresses and barriers.  Rows padded
 * instead of swizzled were 6 % slower, q in registers with 32 rows 15 %, 16 rows a warp
 * 30 % (shared memory 85 % busy).
 *
 * PART: a block takes only the keys of piece blockIdx.z and leaves f32 sums, divided,
 * and lse for attnpart.cu to put together. */
#ifndef ATTNFWD_CUH
#define ATTNFWD_CUH

#include "attnquery.cuh"

template <int MT> struct softmax {
    float m[MT][2], sum[MT][2]; // reference, in units of ln 2; sum of this lane's p
};

/* fwd_softmax turns scores of N keys into p, rescaling o when a maximum grew. */
template <class C, int N>
static __device__ __forceinline__ void fwd_softmax(uint32_t (&p)[C::MT][N / 16][4],
                                                   float (&o)[C::MT][C::D / 8][4],
                                                   struct softmax<C::MT> &t,
                                                   float (&s)[C::MT][N / 8][4], float c)
{
    float top[C::MT][2];
    bool grown = false;
#pragma unroll
    for (int m = 0; m < C::MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float v = fmaxf(s[m][0][2 * h], s[m][0][2 * h + 1]);
#pragma unroll
            for (int n = 1; n < N / 8; n++)
                v = fmaxf(v, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
            top[m][h] = v * c;
            grown |= v * c > t.m[m][h] + 8.0f;
        }
    if (vote(grown)) {
#pragma unroll
        for (int m = 0; m < C::MT; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float v = fmaxf(top[m][h], shfl_xor(top[m][h], 1));
                v = fmaxf(fmaxf(v, shfl_xor(v, 2)), t.m[m][h]);
                const float shrink = ex2(t.m[m][h] - v);
                t.m[m][h] = v;
                t.sum[m][h] *= shrink;
#pragma unroll
                for (int n = 0; n < C::D / 8; n++) {
                    o[m][n][2 * h] *= shrink;
                    o[m][n][2 * h + 1] *= shrink;
                }
            }
    }
#pragma unroll
    for (int m = 0; m < C::MT; m++)
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[m][n][i] = ex2(s[m][n][i] * c - t.m[m][i >> 1]);
                t.sum[m][i >> 1] += s[m][n][i];
            }
    to_left<C::MT, N>(p, s);
}

template <class C, int N>
static __device__ __forceinline__ void fwd_scores(
    float (&s)[C::MT][N / 8][4], const uint32_t (&q_reg)[C::MT][C::D / 16][4],
    uint32_t q_smem, uint32_t k_smem)
{
    zero(s);
    if constexpr (C::WIDE)
        mul_nt<C::D, C::MT, N>(s, q_smem, k_smem);
    else
        mul_nt<C::D, C::MT, N>(s, q_reg, k_smem);
}

/* fwd_finish: the factor of each row, and lse: of the row, or of a piece of it. */
template <class C, bool PART>
static __device__ __forceinline__ void fwd_finish(const struct attn_args &x, int g,
                                                  int row0,
                                                  const struct softmax<C::MT> &t,
                                                  float (&factor)[C::MT][2],
                                                  const struct lane &l)
{
#pragma unroll
    for (int m = 0; m < C::MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float v = t.sum[m][h];
            v += shfl_xor(v, 1);
            v += shfl_xor(v, 2);
            factor[m][h] = v > 0.0f ? 1.0f / v : 0.0f;
            int row = row0 + 16 * m + l.row + 8 * h;
            if ((!PART && !x.lse) || l.col != 0 || row >= x.rows)
                continue;
            float lse = (t.m[m][h] + log2f(v)) / ATTN_LOG2E;
            size_t to = row_index(x, g, row);
            if constexpr (PART)
                x.part_lse[part_row(x) + to] = lse;
            else if (x.lse_short)
                ((bf16 *)x.lse)[to] = from_f32<bf16>(lse);
            else
                ((float *)x.lse)[to] = lse;
        }
}

/* fwd_part_store writes the sums of a piece, times a factor a row, in f32. */
template <class C>
static __device__ __forceinline__ void fwd_part_store(
    const struct attn_args &x, int g, int first, const float (&o)[C::MT][C::D / 8][4],
    const float (&factor)[C::MT][2])
{
    const int t = fresh_thread();
    const struct lane l = lane_of<C::D>(t & 31);
    first += 16 * C::MT * (t >> 5);
#pragma unroll
    for (int m = 0; m < C::MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = first + 16 * m + l.row + 8 * h;
            if (row >= x.rows)
                continue;
            float *to = x.part + (part_row(x) + row_index(x, g, row)) * C::D + l.col;
#pragma unroll
            for (int n = 0; n < C::D / 8; n++)
                *(float2 *)(to + 8 * n) = make_float2(
                    o[m][n][2 * h] * factor[m][h], o[m][n][2 * h + 1] * factor[m][h]);
        }
}

/* Grid: n_kv, items; pieces. */
template <class C, bool PART>
__global__ void __launch_bounds__(C::THREADS, C::CTAS)
    attn_fwd_kernel(const __grid_constant__ struct attn_args x)
{
    constexpr int D = C::D, MT = C::MT, KEYS = C::KEYS, CHUNK = C::CHUNK;
    constexpr int TILE = KEYS * 2 * D;
    struct query_smem<C> *smem = query_space<C>();
    const uint32_t base = smem_base();
    const uint32_t bars = base + offsetof(struct query_smem<C>, bars);
    const int warp = threadIdx.x >> 5, g = blockIdx.x, row0 = 16 * MT * warp;
    const int first = x.order[blockIdx.y] * C::ROWS;
    const struct lane l = lane_of<D>(threadIdx.x & 31);

    /* Tables, q, and the first tile. */
    query_begin<C>(x, first, warp, l);
    struct walk w = walk_start<C>(x, l);
    uint32_t q_reg[MT][D / 16][4];
    const uint32_t q_smem = base + offsetof(struct query_smem<C>, left) + row0 * 2 * D;
    if constexpr (C::WIDE) {
        if (w.key != ATTN_NONE)
            query_copy_left<C>(x, g, first, x.q, 0);
    } else {
        const int row = first + row0 + l.row;
        load_left<D>(q_reg[0], l, (const char *)x.q + row_offset<D>(x, g, row),
                     (const char *)x.q + row_offset<D>(x, g, row + 8));
    }
    query_copy<C>(x, g, w, 0);
    float o[MT][D / 8][4];
    struct softmax<MT> t;
    zero(o);
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            t.m[m][h] = -1e30f; // finite: a difference of two is never NaN
            t.sum[m][h] = 0.0f;
        }

#pragma unroll 1
    for (int n = 0; w.key != ATTN_NONE; n++) {
        ring_wait_full(bars, n);
        const uint32_t k_smem = base + n % RING * (2 * TILE), v_smem = k_smem + TILE;
        const int4 reach = smem->reach[w.kind][warp];
        const int key = w.key;
        const struct walk next = walk_on<C>(w, reach, l);
        if (sees_all(reach, key, KEYS)) {
#pragma unroll
            for (int k = 0; k < KEYS; k += CHUNK) {
                float s[MT][CHUNK / 8][4];
                uint32_t p[MT][CHUNK / 16][4];
                fwd_scores<C, CHUNK>(s, q_reg, q_smem + l.nn,
                                     k_smem + k * 2 * D + l.nt);
                fwd_softmax<C, CHUNK>(p, o, t, s, x.scale2);
                if (k == 0) /* by now the other warps are through with the last tile */
                    query_copy<C>(x, g, next, n + 1);
                mul_nn<D, MT, CHUNK>(o, p, v_smem + k * 2 * D + l.nn);
            }
        } else { /* an edge: 16 keys at a time, compared */
            query_copy<C>(x, g, next, n + 1);
#pragma unroll 1
            for (int k = 0; k < KEYS; k += 16) {
                if (sees_none(reach, key + k, 16))
                    continue;
                float s[MT][2][4];
                uint32_t p[MT][1][4];
                fwd_scores<C, 16>(s, q_reg, q_smem + l.nn, k_smem + k * 2 * D + l.nt);
                hide<MT>(s, &smem->span[w.kind][row0], key + k, l);
                fwd_softmax<C, 16>(p, o, t, s, x.scale2);
                mul_nn<D, MT, 16>(o, p, v_smem + k * 2 * D + l.nn);
            }
        }
        ring_release(bars, n);
        w = next;
    }

    float factor[MT][2];
    fwd_finish<C, PART>(x, g, first + row0, t, factor, l);
    if constexpr (PART)
        fwd_part_store<C>(x, g, first, o, factor);
    else
        query_store<C>(x, g, first, warp, l, x.o, o, factor);
}

#endif
