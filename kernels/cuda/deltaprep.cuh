/* SPDX-License-Identifier: MIT */
/* deltaprep.cuh - shared memory of deltaprep.cu, whose size kernels.cu lists. */
#ifndef DELTAPREP_CUH
#define DELTAPREP_CUH

#include "delta.cuh"

enum {
    PREP_ROW = DELTA_CHUNK + 4,     // floats: rows shifted by 4 banks
    PREP_HEADS = DELTA_THREADS / 32 // value heads at a time, their gates a warp each
};

struct prep_gate {
    float g[DELTA_CHUNK], beta[DELTA_CHUNK]; // G / ln 2
};

struct prep_smem {
    union {
        unsigned char tile[2][2 * DELTA_TILE]; // k, q in f16
        float dot[2][DELTA_CHUNK][PREP_ROW];   // then k . k, q . k
    };
    struct prep_gate gate[PREP_HEADS];
    uint32_t starts[DELTA_THREADS / 32];
};

#endif
