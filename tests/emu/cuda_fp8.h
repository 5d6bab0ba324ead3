/* SPDX-License-Identifier: MIT */
/* cuda_fp8.h - e4m3, as the toolkit's header of this name offers it to kernels. */
#ifndef EMU_CUDA_FP8_H
#define EMU_CUDA_FP8_H

extern "C" {
#include "num.h"
}

struct __nv_fp8_e4m3 {
    uint8_t bits;
    __nv_fp8_e4m3() = default;
    explicit __nv_fp8_e4m3(float x) : bits(num_f32_e4m3(x))
    {
    }
    explicit operator float() const
    {
        return num_e4m3_f32(bits);
    }
};

#endif
