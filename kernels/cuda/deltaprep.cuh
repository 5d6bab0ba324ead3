/* SPDX-License-Identifier: MIT */
/* deltaprep.cuh - shared memory of deltaprep.cu, whose size kernels.cu lists. */
#ifndef DELTAPREP_CUH
#define DELTAPREP_CUH

#include "delta.cuh"

enum { PREP_ROW = DELTA_CHUNK + 4 }; // floats: rows shifted by 4 banks

struct prep_smem {
    union {
        unsigned char tile[2][2 * DELTA_TILE]; // k, q in f16
        float dot[2][DELTA_CHUNK][PREP_ROW];   // then k . k, q . k
    };
    float g[DELTA_CHUNK], beta[DELTA_CHUNK]; // G / ln 2
    uint32_t starts[DELTA_THREADS / 32];
};

#endif
