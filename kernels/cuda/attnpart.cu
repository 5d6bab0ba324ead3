/* SPDX-License-Identifier: MIT */
/* attnpart.cu - few query rows over many keys: the keys in pieces.
 *
 * A decoding step has 16 tokens and one block of 128 rows a key/value head: 8 of 132
 * multiprocessors would walk thousands of keys alone.  So the context is cut into as
 * many pieces as fill the card; each block takes one (the first also the rows' own
 * block) and leaves its rows' sums in f32, divided, with their lse.  A second kernel
 * weighs the pieces, in order:
 *
 *     o = sum_p e^(lse_p - lse) o_p        lse = log sum_p e^lse_p
 *
 * Reads every key once a head, 4 (D + 1) bytes a piece, row and head out and in.  The
 * bound is memory.  How many pieces there are depends on shapes and card alone: the
 * same bits every time. */
#include "attnfwd.cuh"

#include <type_traits>

enum {
    THREADS = 128,
    WARPS = THREADS / 32,
    PIECE_KEYS = 256,                     /* a piece has at least */
    PARTS_BYTES = CUDA_SCRATCH_BYTES / 2, /* of the scratch */
};

/* A warp a row of a head: row = token * n_h + head. */
template <int D>
__global__ void __launch_bounds__(THREADS)
    attn_merge_kernel(const __grid_constant__ struct attn_args x)
{
    const int lane = threadIdx.x & 31;
    const size_t rows = part_rows(x);
    const size_t row = (size_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (row >= rows)
        return;
    float top = -INFINITY, sum = 0.0f, o[D / 32] = {};
    for (int p = 0; p < x.parts; p++)
        top = fmaxf(top, x.part_lse[p * rows + row]);
    for (int p = 0; p < x.parts && top > -INFINITY; p++) {
        const float w = expf(x.part_lse[p * rows + row] - top);
        const float *from = x.part + (p * rows + row) * D + lane * (D / 32);
        sum += w;
        if (w > 0.0f) {
            float v[D / 32];
#pragma unroll
            for (int i = 0; i < D / 32; i += 2)
                *(float2 *)&v[i] = *(const float2 *)&from[i];
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                o[i] += w * v[i];
        }
    }
    const float factor = sum > 0.0f ? 1.0f / sum : 0.0f;
    uint32_t *to = (uint32_t *)(x.o + row * D) + lane * (D / 64);
#pragma unroll
    for (int i = 0; i < D / 64; i++)
        to[i] = pack2(o[2 * i] * factor, o[2 * i + 1] * factor);
    if (!x.lse || lane != 0)
        return;
    const float lse = top + logf(sum);
    if (x.lse_short)
        ((bf16 *)x.lse)[row] = from_f32<bf16>(lse);
    else
        ((float *)x.lse)[row] = lse;
}

/* parts_for: as many as give every multiprocessor a block. */
static int parts_for(const struct dev *d, const struct attn_args *a, int width)
{
    const int64_t blocks = (int64_t)a->kv_heads * (a->padded / ATTN_QUERY_ROWS);
    const int64_t row = (int64_t)a->tokens * a->kv_heads * a->group * (width + 1) *
                        (int64_t)sizeof(float);
    int64_t parts = cuda_state(d)->sms / blocks;
    parts = min(parts, (int64_t)a->keys[0].rows / PIECE_KEYS);
    return (int)min(parts, PARTS_BYTES / row);
}

template <int D>
static void attend_parts(struct dev *d, const struct attn_args *a, int kernel)
{
    using shape = std::conditional_t<D == 256, part_deep<D>, fwd_tall<D>>;
    const dim3 grid((unsigned)a->kv_heads, (unsigned)(a->padded / ATTN_QUERY_ROWS),
                    (unsigned)a->parts);
    launch(d, kernel, attn_fwd_kernel<shape, true>, grid, *a);
    launch_plain(d, "attn_merge", attn_merge_kernel<D>,
                 blocks_for((int64_t)part_rows(*a), WARPS), THREADS, *a);
}

bool attn_in_parts(struct dev *d, struct attn_args *a, int width)
{
    const int parts = parts_for(d, a, width);
    if (parts < 2)
        return false;
    const int keys = a->keys[0].rows, tile = 64; /* of every shape a multiple */
    a->piece = ((keys + parts - 1) / parts + tile - 1) / tile * tile;
    a->parts = (keys + a->piece - 1) / a->piece;
    a->part = (float *)(cuda_state(d)->scratch + CUDA_SCRATCH_BYTES - PARTS_BYTES);
    a->part_lse = a->part + (size_t)a->parts * part_rows(*a) * (size_t)width;
    if (width == 64)
        attend_parts<64>(d, a, KERNEL_PART_64);
    else if (width == 128)
        attend_parts<128>(d, a, KERNEL_PART_128);
    else
        attend_parts<256>(d, a, KERNEL_PART_256);
    return true;
}
