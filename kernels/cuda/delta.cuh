/* SPDX-License-Identifier: MIT */
/* delta.cuh - Gated DeltaNet in chunks of 64 rows: what its two kernels share.
 *
 * Within a chunk, with rows i and j, G_i = g_first + .. + g_i and S the state before it
 * (Yang et al., arXiv 2412.06464, section 3.3, rearranged as in QwenLM/FlashQLA):
 *
 *   M = L * (I + B)^-1 diag(beta)   B_ij = beta_i k_i . k_j,  i > j
 *   P = L * (Q K^T)                 L_ij = exp(G_i - G_j),    i >= j
 *   D = M (V - diag(exp G) K S)     what the rows write
 *   O = diag(exp G) Q S + P D
 *   S = exp(G_last) S + K^T diag(exp(G_last - G)) D
 *
 * deltaprep.cu makes M and P, for all chunks at once; deltascan.cu goes from chunk to
 * chunk, its state in registers.  No exponent is above 0.
 *
 * Products are mma.sync on f16 with f32 sums.  In bf16 the rounding of M, D and S alone
 * is 3e-3 of the outputs and as much of the state; f16 has three bits more and makes
 * that 4e-4, below the rounding of the outputs themselves.  Its range does: q and k are
 * at most 1, M and P too, since 1 - beta k k^T lengthens nothing, and the rest is
 * linear in V, so each warp scales it by a power of two (scan_center).
 *
 * Chunks are cut per document, from where it begins or the launch does.  Nothing is
 * planned beforehand: lo says where documents begin, so a block of 64 rows finds the
 * chunks that begin there, and a walk along a document finds its next chunk. */
#ifndef DELTA_CUH
#define DELTA_CUH

#include "attn.cuh"
#include "tile.cuh"

enum {
    DELTA_CHUNK = 64,
    DELTA_RUN = 512,                   // rows whose documents are one block's
    DELTA_WIDTH = 128,                 // D and E
    DELTA_TILE = DELTA_CHUNK * 2 * 64, // bytes of 64 x 64 in f16
    DELTA_THREADS = 128
};

struct delta_chunks {
    bf16 *o;
    const bf16 *q, *k, *v;
    const float *g, *beta;
    const int *lo;
    int64_t first;
    const float *from; // the state before row begin
    float *to;         // the one before row end; NULL: not wanted
    int begin, end;    // the rows of this launch
    int keys, values, group;
    /* Made by deltaprep.cu; row r is at r - begin. */
    uint16_t *k16, *q16; // [n_k][room][128] f16
    uint16_t *m, *p;     // [n_v][room][64] f16
    float2 *decay;       // [n_v][room]: exp(G), exp(G_last - G)
    int *length;         // [room]: of the chunk that begins at this row
    int room;
};

/* Does a document begin at row t? */
static __device__ __forceinline__ bool delta_begins(const int *lo, int64_t first, int t)
{
    return lo[t] >= first + t;
}

/* delta_first finds, a warp together, the first row of [t, end) where a document
 * begins; end when there is none.  It looks at 256 rows at a time. */
static __device__ __forceinline__ int delta_first(const int *lo, int64_t first, int t,
                                                  int end)
{
    for (const int lane = threadIdx.x & 31; t < end; t += 256) {
        bool hit[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int row = t + 32 * i + lane;
            hit[i] = row < end && delta_begins(lo, first, row);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t hits = __ballot_sync(0xffffffffu, hit[i]);
            if (hits)
                return t + 32 * i + __ffs((int)hits) - 1;
        }
    }
    return end;
}

static __device__ __forceinline__ size_t delta_at(const struct delta_chunks &x,
                                                  int head, int t)
{
    return (size_t)head * (size_t)x.room + (size_t)(t - x.begin);
}

/* delta_prep fills what it makes for rows [begin, end), at most `room`; delta_scan,
 * after it on the stream, writes their outputs and `to`, which is not `from`.  `from`
 * is read where row `begin` goes on from before. */
void delta_prep(struct dev *d, const struct delta_chunks *x);
void delta_scan(struct dev *d, const struct delta_chunks *x);

#endif
