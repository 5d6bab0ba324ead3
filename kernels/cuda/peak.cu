/* SPDX-License-Identifier: MIT */
/* peak.cu - what mma.sync alone reaches: the ceiling of the portable kernels.
 *
 * Eight warps a multiprocessor, eight independent sums a warp, nothing from memory.
 * Shares of a ceiling measured in the same run carry over from card to card. */
#include "launch.cuh"
#include "mma.cuh"

enum { THREADS = 256, SUMS = 8 };

__global__ void __launch_bounds__(THREADS, 1) mma_peak_kernel(float *out, int loops)
{
    float d[SUMS][4] = {};
    const uint32_t id = threadIdx.x;
    const uint32_t a[4] = {id * 0x3f803f80u, 0x3f803f80u, 0x3f003f80u, 0x3f803f00u};
    const uint32_t b = 0x3f803f80u ^ id;
    for (int i = 0; i < loops; i++)
#pragma unroll
        for (uint32_t k = 0; k < SUMS; k++)
            mma(d[k], a, b, b + k);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
    if (sum == 12345.0f) // never: keeps the products
        *out = sum;
}

extern "C" double cuda_mma_peak(struct dev *d, int loops)
{
    const int sms = cuda_state(d)->sms;
    launch_plain(d, "mma_peak", mma_peak_kernel, (unsigned)sms, THREADS,
                 (float *)cuda_state(d)->scratch, loops);
    const int64_t products = (int64_t)SUMS * (THREADS / 32) * sms * loops;
    return 2.0 * 16 * 8 * 16 * (double)products;
}
