/* SPDX-License-Identifier: MIT */
/* attndkv.cuh - shape and shared memory of the key side of attention's backward. */
#ifndef ATTNDKV_CUH
#define ATTNDKV_CUH

#include "attn.cuh"

template <int D_> struct dkv_shape {
    static constexpr int D = D_, PAIRS = 4, WARPS = 2 * PAIRS, THREADS = 32 * WARPS;
    static constexpr int ROWS = ATTN_TILE_ROWS, KEYS = ATTN_TILE_KEYS;
    static constexpr int CHUNK = 32, CHUNKS = ROWS / CHUNK; // query rows at a time
    static constexpr int COPIERS = THREADS / 2;
};

/* What the tile's rows carry besides q and dout. */
struct dkv_rows {
    float lse[ATTN_TILE_ROWS], delta[ATTN_TILE_ROWS];
    int2 span[ATTN_TILE_ROWS];
    int4 reach;
};

template <class C> struct dkv_smem {
    struct {
        unsigned char q[C::ROWS * 2 * C::D], dout[C::ROWS * 2 * C::D];
        unsigned char p[C::PAIRS][32 * C::ROWS * 2]; // from warp a to warp b
    } ring[RING];                                    // at last the results' rows
    struct dkv_rows rows[RING];
    uint64_t bars[RING][2];
};

static_assert(sizeof(dkv_smem<dkv_shape<128>>) <= ATTN_SMEM_MAX, "sm_120's limit");

#endif
