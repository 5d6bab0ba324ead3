/* SPDX-License-Identifier: MIT */
/* deltascan.cuh - shared memory of deltascan.cu, whose size kernels.cu lists. */
#ifndef DELTASCAN_CUH
#define DELTASCAN_CUH

#include "delta.cuh"

enum {
    SCAN_COLUMNS = 64, // of a block, 16 a warp
    SCAN_SLICES = DELTA_WIDTH / SCAN_COLUMNS
};

struct scan_smem {
    unsigned char k[2][2 * DELTA_TILE], q[2][2 * DELTA_TILE], v[2][DELTA_TILE];
    unsigned char m[DELTA_TILE], p[DELTA_TILE];
    float2 decay[2][DELTA_CHUNK];
    uint64_t full[2], full_late; // what is needed first, by parity; m and p
};

#endif
