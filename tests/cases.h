/* SPDX-License-Identifier: MIT */
/* cases.h - one list of calls for everything that is asked of an operation.
 *
 * test_op compares each with a naive f64 reference (but not the large ones, marked
 * SPEED) and its bits across threads and compilers, test_grad_op compares the backward
 * ops with central differences (small cases, marked GRAD), bench_op times the ones
 * marked SPEED, and a GPU is compared with the CPU on all.
 *
 * A case is an op and its dimensions: capital letters as in op.h's shapes (kit_op.c has
 * the signatures), small ones for options:
 *   w, x, y, s, g = type of the tensors of that kind (default A); w=none: absent
 *   a=1 add; p=1 packed panels; k tap; c=1 causal; v window in the block; l sliding
 *   context; z documents, or o=1 ones of 1 to 129 rows; e=1 with empty rows; r=1
 *   anchors in any order; j last rows that are tried and not kept; h=1 values of 2^20,
 *   h=2 of 2^-20
 * The tolerance is relative to the largest element wanted of each output; 0 means
 * equal.
 */
#ifndef CASES_H
#define CASES_H

struct op_case {
    const char *op, *dims;
    double tolerance;
    int use;
};

enum { GRAD = 1, SPEED = 2 };

/* clang-format off */
static const struct op_case op_cases[] = {
    {"matmul", "M=1 N=1 K=1", 2e-7, 0},
    {"matmul", "M=3 N=5 K=7", 1e-6, 0},
    {"matmul", "M=3 N=5 K=7 a=1", 1e-6, 0},
    {"matmul", "M=7 N=33 K=64 w=bf16", 1e-6, 0},
    {"matmul", "M=7 N=33 K=64 w=bf16 p=1", 1e-6, 0},
    {"matmul", "M=1 N=1024 K=1024 p=1", 3e-6, 0},
    {"matmul", "M=37 N=129 K=257 p=1 a=1", 3e-6, 0},
    {"matmul", "M=256 N=3072 K=1024 w=bf16 p=1", 3e-6, SPEED},
    {"matmul", "M=5 N=3 K=0", 0, 0},
    {"matmul_dx", "M=1 N=1 K=1", 2e-7, GRAD},
    {"matmul_dx", "M=3 N=5 K=7", 1e-6, GRAD},
    {"matmul_dx", "M=3 N=5 K=7 a=1", 1e-6, GRAD},
    {"matmul_dx", "M=33 N=129 K=70 w=bf16", 2e-6, 0},
    {"matmul_dx", "M=256 N=3072 K=1024", 3e-6, SPEED},
    {"matmul_dw", "M=1 N=1 K=1", 2e-7, GRAD},
    {"matmul_dw", "M=3 N=5 K=7", 1e-6, GRAD},
    {"matmul_dw", "M=65 N=17 K=130 g=f32", 2e-6, 0},
    {"matmul_dw", "M=256 N=3072 K=1024", 3e-6, SPEED},

    {"gather", "R=1 T=1 H=1", 0, 0},
    {"gather", "R=7 T=5 H=3", 0, 0},
    {"gather", "R=9 T=11 H=1025 w=bf16", 0, 0},
    {"scatter", "R=3 T=7 H=5", 0, GRAD},
    {"scatter", "R=0 T=4 H=5", 0, GRAD},
    {"scatter", "R=60 T=64 H=513", 0, 0},
    {"convert", "T=1 H=1 x=f32 y=bf16", 0, 0},
    {"convert", "T=3 H=1023 x=f32 y=bf16", 0, 0},
    {"convert", "T=3 H=700 x=bf16 y=f32", 0, 0},
    {"convert", "T=3 H=700 x=f32 y=e4m3", 0, 0},
    {"convert", "T=3 H=700 x=e4m3 y=bf16", 0, 0},
    {"tap", "T=1 H=1 J=1 k=0", 0, 0},
    {"tap", "T=5 H=7 J=21 k=1 s=bf16", 0, 0},
    {"tap", "T=33 H=1024 J=5120 k=4 s=bf16", 0, 0},
    {"quant", "T=1 K=1 H=1", 0, 0},
    {"quant", "T=3 K=5 H=1025 s=bf16", 0, 0},
    {"quant", "T=4 K=2 H=16 e=1", 0, 0},
    {"dequant", "T=1 K=1 H=1", 0, 0},
    {"dequant", "T=3 K=5 H=1025 s=bf16", 0, 0},

    {"add", "T=1 H=1", 0, 0},
    {"add", "T=33 H=1024", 0, 0},
    {"rmsnorm", "T=1 H=1", 3e-7, 0},
    {"rmsnorm", "T=3 H=7", 3e-7, 0},
    {"rmsnorm", "T=5 H=1024 w=bf16", 3e-7, 0},
    {"rmsnorm", "T=64 H=5120", 3e-7, SPEED},
    {"rmsnorm_bwd", "T=1 H=1", 1e-5, GRAD},
    {"rmsnorm_bwd", "T=3 H=7", 1e-6, GRAD},
    {"rmsnorm_bwd", "T=67 H=11", 1e-6, GRAD},
    {"rmsnorm_bwd", "T=33 H=1024 w=bf16 g=f32", 1e-6, 0},
    {"rmsnorm_bwd", "T=64 H=5120", 1e-6, SPEED},
    {"norm_rope", "T=1 n=1 D=2", 1e-6, 0},
    {"norm_rope", "T=5 n=3 D=10", 1e-6, 0},
    {"norm_rope", "T=5 n=3 D=10 w=none", 1e-6, 0},
    {"norm_rope", "T=9 n=16 D=128 w=bf16", 1e-6, 0},
    {"norm_rope", "T=64 n=32 D=128", 1e-6, SPEED},
    {"norm_rope_bwd", "T=1 n=1 D=2", 3e-6, GRAD},
    {"norm_rope_bwd", "T=5 n=3 D=10", 1e-6, GRAD},
    {"norm_rope_bwd", "T=5 n=3 D=10 w=none", 1e-6, GRAD},
    {"norm_rope_bwd", "T=70 n=2 D=6", 1e-6, GRAD},
    {"norm_rope_bwd", "T=40 n=8 D=128 w=bf16 g=f32", 1e-6, SPEED},
    {"swiglu", "T=1 H=1", 3e-7, 0},
    {"swiglu", "T=5 H=7", 3e-7, 0},
    {"swiglu", "T=64 H=3072", 3e-7, SPEED},
    {"swiglu_bwd", "T=1 H=1", 1e-6, GRAD},
    {"swiglu_bwd", "T=5 H=7", 1e-6, GRAD},
    {"swiglu_bwd", "T=64 H=3072", 1e-6, SPEED},

    {"attn_span", "T=1 n=1 m=1 D=2 S=1", 3e-6, 0},
    {"attn_span", "T=7 n=3 m=1 D=6 S=7", 3e-6, 0},
    {"attn_span", "T=40 n=4 m=2 D=16 S=40 z=3 e=1", 3e-6, 0},
    {"attn_span", "T=5 n=4 m=2 D=64 S=200", 3e-6, 0},
    {"attn_span", "T=90 n=2 m=1 D=24 S=90 l=9 z=2", 3e-6, 0},
    {"attn_span", "T=70 n=4 m=2 D=128 S=333", 3e-6, 0},
    {"attn_span", "T=3 n=64 m=1 D=8 S=70", 3e-6, 0},
    {"attn_span", "T=150 n=6 m=1 D=256 S=150 z=3", 3e-6, 0},
    {"attn_span", "T=4 n=8 m=2 D=128 S=1100", 3e-6, 0},
    {"attn_span", "T=512 n=16 m=8 D=128 S=512 z=2", 3e-6, SPEED},
    {"attn_block", "Q=1 n=1 m=1 D=2 S=0 B=1", 3e-6, 0},
    {"attn_block", "Q=12 n=2 m=1 D=6 S=9 B=4", 3e-6, 0},
    {"attn_block", "Q=40 n=4 m=2 D=16 S=100 B=8 z=3", 3e-6, 0},
    {"attn_block", "Q=40 n=4 m=2 D=16 S=100 B=8 z=3 c=1 v=3 l=20", 3e-6, 0},
    {"attn_block", "Q=15 n=4 m=1 D=8 S=100 B=5 v=2 l=7 r=1", 3e-6, 0},
    {"attn_block", "Q=70 n=2 m=1 D=8 S=30 B=70", 3e-6, 0},
    {"attn_block", "Q=48 n=8 m=2 D=128 S=300 B=16 z=2", 3e-6, 0},
    {"attn_block", "Q=512 n=16 m=4 D=64 S=1024 B=16 z=3", 3e-6, SPEED},
    {"attn_block_bwd", "Q=1 n=1 m=1 D=2 S=0 B=1", 1e-6, GRAD},
    {"attn_block_bwd", "Q=0 n=2 m=1 D=4 S=3 B=4", 0, GRAD},
    {"attn_block_bwd", "Q=6 n=2 m=1 D=4 S=9 B=3", 3e-6, GRAD},
    {"attn_block_bwd", "Q=6 n=1 m=1 D=2 S=150 B=3", 3e-6, GRAD},
    {"attn_block_bwd", "Q=8 n=4 m=2 D=6 S=70 B=4 z=3", 3e-6, GRAD},
    {"attn_block_bwd", "Q=12 n=2 m=2 D=2 S=20 B=4 z=2 c=1 l=7", 3e-6, GRAD},
    {"attn_block_bwd", "Q=20 n=2 m=1 D=2 S=9 B=20 v=3", 3e-6, GRAD},
    {"attn_block_bwd", "Q=12 n=2 m=1 D=2 S=20 B=3 v=2 c=1 z=4 r=1", 3e-6, GRAD},
    {"attn_block_bwd", "Q=40 n=4 m=2 D=16 S=100 B=8 z=3 c=1 v=3 l=20", 3e-6, 0},
    {"attn_block_bwd", "Q=48 n=8 m=2 D=128 S=300 B=16 z=2", 3e-6, 0},
    {"attn_block_bwd", "Q=512 n=16 m=4 D=64 S=1024 B=16 z=3", 3e-6, SPEED},

    {"gate", "T=1 H=1", 3e-7, 0},
    {"gate", "T=33 H=1025", 3e-7, 0},
    {"delta_mix", "T=1 S=1 m=1 n=1 D=1 E=1", 1e-6, 0},
    {"delta_mix", "T=9 S=9 m=2 n=4 D=6 E=10 z=4", 1e-6, 0},
    {"delta_mix", "T=5 S=105 m=2 n=2 D=16 E=16", 1e-6, 0},
    {"delta_mix", "T=40 S=42 m=2 n=6 D=128 E=128 z=3", 1e-6, 0},
    {"delta_mix", "T=586 S=586 m=2 n=4 D=16 E=16 o=1", 1e-6, 0},
    {"delta_mix", "T=64 S=64 m=16 n=48 D=128 E=128", 1e-6, SPEED},
    {"delta", "T=1 S=1 m=1 n=1 D=1 E=1", 1e-6, 0},
    {"delta", "T=1 S=9 m=2 n=4 D=5 E=7", 1e-6, 0},
    {"delta", "T=33 S=33 m=2 n=2 D=16 E=40 z=4", 1e-6, 0},
    {"delta", "T=20 S=50 m=2 n=4 D=16 E=16 j=7", 1e-6, 0},
    {"delta", "T=20 S=50 m=2 n=4 D=16 E=16 j=20 z=3", 1e-6, 0},
    {"delta", "T=130 S=140 m=2 n=6 D=128 E=128 z=2", 2e-6, 0},
    {"delta", "T=586 S=586 m=2 n=2 D=128 E=128 o=1", 2e-6, 0},
    {"delta", "T=300 S=586 m=2 n=4 D=128 E=128 o=1 j=5", 2e-6, 0},
    {"delta", "T=586 S=586 m=2 n=6 D=24 E=20 o=1 j=129", 2e-6, 0},
    {"delta", "T=150 S=200 m=2 n=2 D=128 E=128 h=1", 2e-6, 0},
    {"delta", "T=150 S=200 m=1 n=1 D=128 E=128 z=2 h=2", 2e-6, 0},
    {"delta", "T=16 S=300 m=2 n=6 D=128 E=128 j=16", 2e-6, 0},
    {"delta", "T=256 S=256 m=16 n=48 D=128 E=128", 2e-6, SPEED},
    {"norm_gate", "T=1 n=1 D=1", 3e-7, 0},
    {"norm_gate", "T=9 n=6 D=128", 5e-7, 0},
    {"norm_gate", "T=5 n=3 D=10 w=bf16", 5e-7, 0},

    {"head_loss", "R=1 H=1 V=1", 1e-6, GRAD},
    {"head_loss", "R=3 H=5 V=11", 1e-6, GRAD},
    {"head_loss", "R=37 H=64 V=1003 w=bf16", 2e-6, 0},
    {"head_loss", "R=64 H=256 V=5000", 2e-6, SPEED},
    {"argmax", "R=1 V=1", 0, 0},
    {"argmax", "R=33 V=1003", 0, 0},

    {"sumsq", "T=1 H=1", 1e-14, 0},
    {"sumsq", "T=37 H=1001", 1e-13, 0},
    {"sumsq", "T=3 H=100 x=bf16", 1e-13, 0},
    {"fill", "T=3 H=401", 0, 0},
    {"fill", "T=3 H=401 x=bf16", 0, 0},
    {"scale", "T=3 H=401", 0, 0},
    {"normal", "T=1 H=1", 3e-7, 0},
    {"normal", "T=3 H=1001", 3e-7, 0},
    {"normal", "T=3 H=401 x=bf16", 0, 0},
    {"adamw", "T=1", 1e-6, 0},
    {"adamw", "T=1601 w=bf16 g=f32", 1e-6, 0},
    {"adamw", "T=100003", 1e-6, SPEED},
};
/* clang-format on */

enum { OP_CASES = sizeof op_cases / sizeof op_cases[0] };

#endif
