/* SPDX-License-Identifier: MIT */
/* attn.cu - attention over intervals of keys, forward: target and drafter.
 *
 * The plan (attnplan.cu), then the shape of kernel that suits card and head width
 * (attnquery.cuh); few query rows share their keys out to more blocks (attnpart.cu).
 * Head widths other than 64, 128 and 256, and f32, go to attnplain.cu.  A row without
 * keys gives zeros and lse = -inf.  Twin: cpu/attn.c. */
#include "attnfwd.cuh"

/* attend runs one pass of the fused kernels. */
static void attend(struct dev *d, struct attn_args *a, int width)
{
    attn_plan(d, a, false);
    if (attn_in_parts(d, a, width))
        return;
    dim3 grid((unsigned)a->kv_heads, (unsigned)(a->padded / ATTN_QUERY_ROWS));
    bool wide_fits = attn_two_fit();
    if (width == 256)
        launch(d, KERNEL_FWD_DEEP_256, attn_fwd_kernel<fwd_deep<256>, false>, grid, *a);
    else if (width == 64 && wide_fits)
        launch(d, KERNEL_FWD_WIDE_64, attn_fwd_kernel<fwd_wide<64>, false>, grid, *a);
    else if (width == 64)
        launch(d, KERNEL_FWD_TALL_64, attn_fwd_kernel<fwd_tall<64>, false>, grid, *a);
    else if (wide_fits)
        launch(d, KERNEL_FWD_WIDE_128, attn_fwd_kernel<fwd_wide<128>, false>, grid, *a);
    else
        launch(d, KERNEL_FWD_TALL_128, attn_fwd_kernel<fwd_tall<128>, false>, grid, *a);
}

extern "C" void cuda_attn_span(struct dev *d, struct tensor o, struct tensor q,
                               struct tensor k, struct tensor v, struct tensor lo,
                               struct tensor hi, float scale)
{
    struct attn_args a = attn_args_of(q, k, v, lo, hi, scale);
    a.o = (bf16 *)o.data;
    if (attn_is_fused(q, false))
        attend(d, &a, (int)q.dim[2]);
    else
        attn_plain(d, &a, q);
}

extern "C" void cuda_attn_block(struct dev *d, struct tensor o, struct tensor lse,
                                struct tensor q, struct tensor kc, struct tensor vc,
                                struct tensor kb, struct tensor vb, struct tensor lo,
                                struct tensor hi, struct attn_block p)
{
    struct attn_args a = attn_args_of(q, kc, vc, lo, hi, p.scale);
    attn_args_own(&a, kb, vb, p);
    a.o = (bf16 *)o.data;
    a.lse = lse.data;
    a.lse_short = lse.type == DT_BF16;
    if (attn_is_fused(q, false))
        attend(d, &a, (int)q.dim[2]);
    else
        attn_plain(d, &a, q);
}
