/* SPDX-License-Identifier: MIT */
/* shapes.h - what a training step of the 1704.0M drafter asks of each operation: rows
 * of 8192 tokens, 512 anchors of 16 slots, four taps (Qwen3.6-27B).  Too large for a
 * CPU and for drawing number by number: bench_op times them on a GPU.  Written as in
 * cases.h; prefill and decoding of a target are among them.  f=1: in the f32 mode of
 * tests, where op_delta goes token by token and not in chunks. */
#ifndef SHAPES_H
#define SHAPES_H

#include "cases.h"

/* clang-format off */
static const struct op_case shapes[] = {
    {"matmul", "M=8192 N=4096 K=5120", 0, 0},
    {"matmul", "M=8192 N=1024 K=5120", 0, 0},
    {"matmul", "M=8192 N=5120 K=4096", 0, 0},
    {"matmul", "M=8192 N=17408 K=5120", 0, 0},
    {"matmul", "M=8192 N=5120 K=17408", 0, 0},
    {"matmul", "M=8192 N=5120 K=20480", 0, 0},
    {"matmul_dx", "M=8192 N=4096 K=5120", 0, 0},
    {"matmul_dx", "M=8192 N=1024 K=5120 a=1", 0, 0},
    {"matmul_dx", "M=8192 N=17408 K=5120", 0, 0},
    {"matmul_dx", "M=8192 N=5120 K=17408", 0, 0},
    {"matmul_dw", "M=8192 N=4096 K=5120", 0, 0},
    {"matmul_dw", "M=8192 N=1024 K=5120", 0, 0},
    {"matmul_dw", "M=8192 N=17408 K=5120", 0, 0},
    {"matmul_dw", "M=8192 N=5120 K=17408", 0, 0},
    {"matmul_dw", "M=8192 N=5120 K=20480", 0, 0},
    {"head_loss", "R=7680 H=5120 V=248320", 0, 0},
    {"attn_block", "Q=8192 n=32 m=8 D=128 S=8192 B=16", 0, 0},
    {"attn_block_bwd", "Q=8192 n=32 m=8 D=128 S=8192 B=16", 0, 0},
    {"attn_block_bwd", "Q=8192 n=32 m=8 D=128 S=8192 B=16 z=5", 0, 0},
    {"attn_block_bwd", "Q=8192 n=32 m=8 D=128 S=8192 B=16 c=1 v=2048 l=2048", 0, 0},
    {"attn_span", "T=8192 n=32 m=8 D=128 S=8192", 0, 0},
    {"attn_span", "T=8192 n=32 m=8 D=128 S=8192 z=16", 0, 0},
    {"attn_span", "T=8192 n=24 m=4 D=256 S=8192", 0, 0},
    {"attn_span", "T=8192 n=24 m=4 D=256 S=8192 z=16", 0, 0},
    {"attn_span", "T=16 n=32 m=8 D=128 S=4096", 0, 0},
    {"attn_span", "T=16 n=24 m=4 D=256 S=4096", 0, 0},
    {"attn_block", "Q=16 n=32 m=8 D=128 S=4096 B=16", 0, 0},
    {"gate", "T=32768 H=6144", 0, 0},
    {"delta_mix", "T=32768 S=32768 m=16 n=48 D=128 E=128", 0, 0},
    {"delta", "T=32768 S=32768 m=16 n=48 D=128 E=128", 0, 0},
    {"delta", "T=32768 S=32768 m=16 n=48 D=128 E=128 z=16", 0, 0},
    {"delta", "T=32768 S=32768 m=16 n=48 D=128 E=128 f=1", 0, 0},
    {"delta", "T=32768 S=32768 m=16 n=48 D=128 E=128 z=16 f=1", 0, 0},
    {"delta", "T=16 S=4096 m=16 n=48 D=128 E=128 j=8", 0, 0},
    {"norm_gate", "T=32768 n=48 D=128", 0, 0},
    {"gather", "R=8192 T=248320 H=5120", 0, 0},
    {"add", "T=8192 H=5120", 0, 0},
    {"rmsnorm", "T=8192 H=5120", 0, 0},
    {"rmsnorm_bwd", "T=8192 H=5120", 0, 0},
    {"norm_rope", "T=8192 n=32 D=128", 0, 0},
    {"norm_rope", "T=16384 n=8 D=128", 0, 0},
    {"norm_rope_bwd", "T=8192 n=32 D=128", 0, 0},
    {"norm_rope_bwd", "T=16384 n=8 D=128", 0, 0},
    {"swiglu", "T=8192 H=17408", 0, 0},
    {"swiglu_bwd", "T=8192 H=17408", 0, 0},
    {"argmax", "R=1024 V=248320", 0, 0},
    {"convert", "T=8192 H=20480 x=bf16 y=bf16", 0, 0},
    {"tap", "T=8192 H=5120 J=20480 k=1 s=bf16", 0, 0},
    {"quant", "T=8192 K=4 H=5120", 0, 0},
    {"dequant", "T=8192 K=4 H=5120", 0, 0},
    {"sumsq", "T=33281 H=5120", 0, 0},
    {"fill", "T=33281 H=5120", 0, 0},
    {"adamw", "T=170400000", 0, 0},
};
/* clang-format on */

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

#endif
