/* SPDX-License-Identifier: MIT */
/* tile.cuh - tiles of rows of D bf16 in shared memory, and products with them.
 *
 * A tile lies in rows of 2 D bytes; 16-byte chunk c of row r is kept at chunk
 * c ^ (r & 7), so that eight rows read at one column touch all banks.  Two products
 * repeat in attention, both mma.sync m16n8k16 with f32 sums:
 *
 *     mul_nt   x[16 MT][N] += f[16 MT][D] tile[N][D]^T    scores, and p's gradient
 *     mul_nn   y[16 MT][C] += p[16 MT][K] tile[K][C]      outputs and gradients
 *
 * A sum is a C fragment: x[m][n][i] is row 16 m + row + 8 (i >> 1), column 8 n + col +
 * (i & 1).  Left operands are A fragments; a C fragment, rounded, is one (to_left).
 * The next piece of a tile is fetched before the products with this one. */
#ifndef TILE_CUH
#define TILE_CUH

#include "mma.cuh"

template <int D> static __device__ __forceinline__ uint32_t at(int row, int chunk)
{
    return (uint32_t)(row * 2 * D + ((chunk ^ (row & 7)) << 4));
}

/* 16 k columns on, for an address in the first two chunks of a row. */
static __device__ __forceinline__ uint32_t on(uint32_t address, int k)
{
    return address ^ (uint32_t)(k << 5);
}

struct lane {
    uint32_t nt, nn; // its place for ldmatrix: right of mul_nt; right of mul_nn, left
    int id, row, col;
};

template <int D> static __device__ __forceinline__ struct lane lane_of(int id)
{
    struct lane l = {at<D>((id & 7) + ((id >> 4) << 3), (id >> 3) & 1),
                     at<D>(id & 15, id >> 4), id, id >> 2, (id & 3) * 2};
    return l;
}

template <int MT, int N>
static __device__ __forceinline__ void zero(float (&a)[MT][N][4])
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[m][n][i] = 0.0f;
}

/* mul_step: sums n and n + 1 of every 16 rows get their product with a 16 x 16 piece.
 */
template <int MT, int N>
static __device__ __forceinline__ void mul_step(float (&acc)[MT][N][4], int n,
                                                const uint32_t (&left)[4], int m,
                                                const uint32_t (&right)[4])
{
    mma(acc[m][n], left, right[0], right[1]);
    mma(acc[m][n + 1], left, right[2], right[3]);
}

/* Left operand in registers. */
template <int D, int MT, int N>
static __device__ __forceinline__ void mul_nt(float (&acc)[MT][N / 8][4],
                                              const uint32_t (&left)[MT][D / 16][4],
                                              uint32_t tile)
{
    constexpr int NN = N / 16, STEPS = D / 16 * NN;
    uint32_t b[2][4];
    ldmatrix(b[0], tile);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int k = i / NN, n = i % NN, j = i + 1;
        if (j < STEPS)
            ldmatrix(b[j & 1], on(tile, j / NN) + j % NN * 32 * D);
#pragma unroll
        for (int m = 0; m < MT; m++)
            mul_step(acc, 2 * n, left[m][k], m, b[i & 1]);
    }
}

/* Left operand in shared memory, at lane.nn. */
template <int D, int MT, int N>
static __device__ __forceinline__ void mul_nt(float (&acc)[MT][N / 8][4], uint32_t left,
                                              uint32_t tile)
{
    constexpr int NN = N / 16, KK = D / 16, STEPS = KK * NN;
    uint32_t a[2][MT][4], b[2][4];
#pragma unroll
    for (int m = 0; m < MT; m++)
        ldmatrix(a[0][m], left + m * 32 * D);
    ldmatrix(b[0], tile);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int k = i / NN, n = i % NN, j = i + 1;
        if (n == (NN > 1 ? NN - 2 : 0) && k < KK - 1)
#pragma unroll
            for (int m = 0; m < MT; m++)
                ldmatrix(a[(k + 1) & 1][m], on(left, k + 1) + m * 32 * D);
        if (j < STEPS)
            ldmatrix(b[j & 1], on(tile, j / NN) + j % NN * 32 * D);
#pragma unroll
        for (int m = 0; m < MT; m++)
            mul_step(acc, 2 * n, a[k & 1][m], m, b[i & 1]);
    }
}

/* Two at once, so that twice as many sums are under way: x += f tx^T, y += g ty^T. */
template <int D, int MT, int N>
static __device__ __forceinline__ void mul_nt2(float (&x)[MT][N / 8][4],
                                               float (&y)[MT][N / 8][4],
                                               const uint32_t (&f)[MT][D / 16][4],
                                               const uint32_t (&g)[MT][D / 16][4],
                                               uint32_t tx, uint32_t ty)
{
    constexpr int NN = N / 16, STEPS = D / 16 * NN;
    uint32_t b[2][2][4];
    ldmatrix(b[0][0], tx);
    ldmatrix(b[0][1], ty);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int k = i / NN, n = i % NN, j = i + 1;
        if (j < STEPS) {
            ldmatrix(b[j & 1][0], on(tx, j / NN) + j % NN * 32 * D);
            ldmatrix(b[j & 1][1], on(ty, j / NN) + j % NN * 32 * D);
        }
#pragma unroll
        for (int m = 0; m < MT; m++) {
            mul_step(x, 2 * n, f[m][k], m, b[i & 1][0]);
            mul_step(y, 2 * n, g[m][k], m, b[i & 1][1]);
        }
    }
}

template <int D, int MT, int K>
static __device__ __forceinline__ void mul_nn(float (&acc)[MT][D / 8][4],
                                              const uint32_t (&left)[MT][K / 16][4],
                                              uint32_t tile)
{
    constexpr int NN = D / 16, STEPS = K / 16 * NN;
    uint32_t b[2][4];
    ldmatrix_trans(b[0], tile);
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int k = i / NN, n = i % NN, j = i + 1;
        if (j < STEPS)
            ldmatrix_trans(b[j & 1], on(tile, j % NN) + j / NN * 32 * D);
#pragma unroll
        for (int m = 0; m < MT; m++)
            mul_step(acc, 2 * n, left[m][k], m, b[i & 1]);
    }
}

template <int MT, int N>
static __device__ __forceinline__ void to_left(uint32_t (&p)[MT][N / 16][4],
                                               const float (&s)[MT][N / 8][4])
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int k = 0; k < N / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                p[m][k][i] = pack2(s[m][2 * k + (i >> 1)][2 * (i & 1)],
                                   s[m][2 * k + (i >> 1)][2 * (i & 1) + 1]);
}

/* 16 rows of a left operand straight from global memory: row, and row + 8. */
template <int D>
static __device__ __forceinline__ void load_left(uint32_t (&f)[D / 16][4],
                                                 const struct lane &l, const void *row,
                                                 const void *row8)
{
    const uint32_t *a = (const uint32_t *)row + l.col / 2;
    const uint32_t *b = (const uint32_t *)row8 + l.col / 2;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        f[k][0] = a[8 * k];
        f[k][1] = b[8 * k];
        f[k][2] = a[8 * k + 4];
        f[k][3] = b[8 * k + 4];
    }
}

/* stage_sums rounds sums, times a factor a row, into this warp's own 16 MT rows of
 * shared memory; staged gives 16 bytes of them back, for a store of whole rows: step i
 * of MT D / 16 is row staged_row(i), chunk staged_chunk. */
template <int D, int MT>
static __device__ __forceinline__ void stage_sums(uint32_t rows, const struct lane &l,
                                                  const float (&acc)[MT][D / 8][4],
                                                  const float (&factor)[MT][2])
{
    __syncwarp();
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                st4(rows + at<D>(16 * m + l.row + 8 * h, n) + l.col * 2,
                    pack2(acc[m][n][2 * h] * factor[m][h],
                          acc[m][n][2 * h + 1] * factor[m][h]));
    __syncwarp();
}

template <int D>
static __device__ __forceinline__ int staged_row(const struct lane &l, int i)
{
    return (256 / D) * i + l.id / (D / 8);
}

template <int D>
static __device__ __forceinline__ int staged_chunk(const struct lane &l)
{
    return l.id % (D / 8);
}

template <int D>
static __device__ __forceinline__ uint4 staged(uint32_t rows, const struct lane &l,
                                               int i)
{
    uint32_t v[4];
    ld16(v, rows + at<D>(staged_row<D>(l, i), staged_chunk<D>(l)));
    return make_uint4(v[0], v[1], v[2], v[3]);
}

#endif
