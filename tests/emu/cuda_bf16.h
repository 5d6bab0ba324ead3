/* SPDX-License-Identifier: MIT */
/* cuda_bf16.h - bf16, as the toolkit's header of this name offers it to kernels. */
#ifndef EMU_CUDA_BF16_H
#define EMU_CUDA_BF16_H

extern "C" {
#include "num.h"
}

struct __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    explicit __nv_bfloat16(float x) : bits(num_f32_bf16(x))
    {
    }
    explicit operator float() const
    {
        return num_bf16_f32(bits);
    }
};

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return (float)x;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return __nv_bfloat16(x);
}

#endif
