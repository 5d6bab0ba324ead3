/* SPDX-License-Identifier: MIT */
/* normal.cu - normal deviates by counter: what rng_normal draws, an element a thread.
 *
 * Philox4x32-10 (Salmon et al., SC 2011) turns (key, element) into 128 bits, two reals
 * of 53 bits, and those into one normal (Box and Muller 1958).  In double precision: it
 * runs once, before anything is timed.  Twins: lib/rng.c, cpu/optim.c. */
#include "launch.cuh"

enum { THREADS = 256, ROUNDS = 10 };

static __device__ uint4 philox(uint64_t key, uint64_t counter)
{
    uint4 c = make_uint4((uint32_t)counter, (uint32_t)(counter >> 32), 0, 0);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma unroll
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t p = __umulhi(0xD2511F53u, c.x), q = __umulhi(0xCD9E8D57u, c.z);
        c = make_uint4(q ^ c.y ^ k0, 0xCD9E8D57u * c.z, p ^ c.w ^ k1,
                       0xD2511F53u * c.x);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

static __device__ double real_of(uint32_t low, uint32_t high)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    normal_kernel(T *__restrict__ x, int64_t n, uint64_t key, float sigma)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    uint4 word = philox(key, (uint64_t)i);
    double u = real_of(word.x, word.y), turn = real_of(word.z, word.w);
    double deviate = sqrt(-2.0 * log(1.0 - u)) * cospi(2.0 * turn);
    x[i] = from_f32<T>(sigma * (float)deviate);
}

extern "C" void cuda_normal(struct dev *d, struct tensor x, uint64_t key, float sigma)
{
    int64_t n = tensor_count(&x);
    if (n == 0)
        return;
    BY_TYPE(x, T, {
        launch_plain(d, "normal", normal_kernel<T>, blocks_for(n, THREADS), THREADS,
                     (T *)x.data, n, key, sigma);
    });
}
