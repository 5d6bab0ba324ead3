/* SPDX-License-Identifier: MIT */
/* kernels.cu - the table of kernels with dynamic shared memory: see cuda.h. */
#include "attndkv.cuh"
#include "deltaprep.cuh"
#include "deltascan.cuh"
#include "attnquery.cuh"

/* In the order of KERNEL_FWD_WIDE_64 and so on in attn.cuh. */
const struct cuda_kernel cuda_kernels[KERNEL_COUNT + 1] = {
    {"attn_fwd_kernel<query_shape<64, true, 64, 64, 1>, false>", fwd_wide<64>::THREADS,
     (int)sizeof(struct query_smem<fwd_wide<64>>)},
    {"attn_fwd_kernel<query_shape<128, true, 64, 64, 1>, false>",
     fwd_wide<128>::THREADS, (int)sizeof(struct query_smem<fwd_wide<128>>)},
    {"attn_fwd_kernel<query_shape<64, false, 64, 64, 1>, false>", fwd_tall<64>::THREADS,
     (int)sizeof(struct query_smem<fwd_tall<64>>)},
    {"attn_fwd_kernel<query_shape<128, false, 64, 64, 1>, false>",
     fwd_tall<128>::THREADS, (int)sizeof(struct query_smem<fwd_tall<128>>)},
    {"attn_fwd_kernel<query_shape<256, false, 32, 32, 1>, false>",
     fwd_deep<256>::THREADS, (int)sizeof(struct query_smem<fwd_deep<256>>)},
    {"attn_fwd_kernel<query_shape<64, false, 64, 64, 1>, true>", fwd_tall<64>::THREADS,
     (int)sizeof(struct query_smem<fwd_tall<64>>)},
    {"attn_fwd_kernel<query_shape<128, false, 64, 64, 1>, true>",
     fwd_tall<128>::THREADS, (int)sizeof(struct query_smem<fwd_tall<128>>)},
    {"attn_fwd_kernel<query_shape<256, false, 32, 16, 1>, true>",
     part_deep<256>::THREADS, (int)sizeof(struct query_smem<part_deep<256>>)},
    {"attn_dq_kernel<query_shape<64, true, 32, 32, 2> >", dq_wide<64>::THREADS,
     (int)sizeof(struct query_smem<dq_wide<64>>)},
    {"attn_dq_kernel<query_shape<128, true, 32, 32, 2> >", dq_wide<128>::THREADS,
     (int)sizeof(struct query_smem<dq_wide<128>>)},
    {"attn_dq_kernel<query_shape<64, false, 64, 32, 2> >", dq_tall<64>::THREADS,
     (int)sizeof(struct query_smem<dq_tall<64>>)},
    {"attn_dq_kernel<query_shape<128, false, 64, 32, 2> >", dq_tall<128>::THREADS,
     (int)sizeof(struct query_smem<dq_tall<128>>)},
    {"attn_dkv_kernel<dkv_shape<64> >", dkv_shape<64>::THREADS,
     (int)sizeof(struct dkv_smem<dkv_shape<64>>)},
    {"attn_dkv_kernel<dkv_shape<128> >", dkv_shape<128>::THREADS,
     (int)sizeof(struct dkv_smem<dkv_shape<128>>)},
    {"delta_prep_kernel", DELTA_THREADS, (int)sizeof(struct prep_smem)},
    {"delta_scan_kernel", DELTA_THREADS, (int)sizeof(struct scan_smem)},
    {nullptr, 0, 0},
};
