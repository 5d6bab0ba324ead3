/* SPDX-License-Identifier: MIT */
/* cpu.h - the CPU backend: the reference for every other one.
 *
 * One function per op, contracts in op.h, shapes and types already checked by op.c.
 * Arithmetic is in `real`: float, or double in the build for gradient tests.  Loops run
 * in parallel through par_for(d->par, ...) in such a way that the bits of a result do
 * not depend on the number of threads.
 *
 * dev_fail is for the thread that issues ops; a worker reports through its par_for. */
#ifndef CPU_H
#define CPU_H

#include "backend.h"

/* cpu_scratch returns d->scratch with room for `bytes` bytes, 64-byte aligned; the
 * content of an earlier call is lost when it had to grow.  It grows to the largest
 * shape in use and stays, so a steady step allocates nothing.  NULL: the device has
 * failed with E_MEMORY. */
void *cpu_scratch(struct dev *d, size_t bytes);

size_t cpu_pack_bytes(const struct dev *d, struct tensor w);
void cpu_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                bool add);
void cpu_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                   bool add);
void cpu_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x);
void cpu_pack(struct dev *d, struct tensor p, struct tensor w);
void cpu_gather(struct dev *d, struct tensor y, struct tensor x, struct tensor ids);
void cpu_scatter(struct dev *d, struct tensor dx, struct tensor dy, struct tensor ids);
void cpu_convert(struct dev *d, struct tensor y, struct tensor x);
void cpu_tap(struct dev *d, struct tensor y, struct tensor x, int k);
void cpu_quant(struct dev *d, struct tensor q, struct tensor scale, struct tensor x);
void cpu_dequant(struct dev *d, struct tensor y, struct tensor q, struct tensor scale);
void cpu_add(struct dev *d, struct tensor y, struct tensor a, struct tensor b);
void cpu_rmsnorm(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                 float eps);
void cpu_rmsnorm_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                     struct tensor dy, struct tensor x, struct tensor w, float eps);
void cpu_norm_rope(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                   struct tensor pos, struct tensor freq, float eps);
void cpu_norm_rope_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                       struct tensor dy, struct tensor x, struct tensor w,
                       struct tensor pos, struct tensor freq, float eps);
void cpu_swiglu(struct dev *d, struct tensor y, struct tensor g, struct tensor u);
void cpu_swiglu_bwd(struct dev *d, struct tensor dg, struct tensor du, struct tensor dy,
                    struct tensor g, struct tensor u);
void cpu_attn_span(struct dev *d, struct tensor o, struct tensor q, struct tensor k,
                   struct tensor v, struct tensor lo, struct tensor hi, float scale);
void cpu_attn_block(struct dev *d, struct tensor o, struct tensor lse, struct tensor q,
                    struct tensor kc, struct tensor vc, struct tensor kb,
                    struct tensor vb, struct tensor lo, struct tensor hi,
                    struct attn_block p);
void cpu_attn_block_bwd(struct dev *d, struct attn_grads g, struct tensor dout,
                        struct tensor o, struct tensor lse, struct tensor q,
                        struct tensor kc, struct tensor vc, struct tensor kb,
                        struct tensor vb, struct tensor lo, struct tensor hi,
                        struct attn_block p);
void cpu_head_loss(struct dev *d, struct tensor loss, struct tensor hit,
                   struct tensor dh, struct tensor h, struct tensor w,
                   struct tensor label, struct tensor weight);
void cpu_argmax(struct dev *d, struct tensor idx, struct tensor x);
void cpu_sumsq(struct dev *d, struct tensor sum, struct tensor x);
void cpu_fill(struct dev *d, struct tensor x, float value);
void cpu_scale(struct dev *d, struct tensor x, float value);
void cpu_adamw(struct dev *d, struct tensor w, struct tensor master, struct tensor m,
               struct tensor v, struct tensor grad, struct adamw p);
void cpu_finite(struct dev *d, struct tensor x, const char *what);
void cpu_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor g);
void cpu_delta_mix(struct dev *d, struct delta_in x, struct tensor u, struct tensor a,
                   struct tensor b, struct tensor conv, struct tensor a_log,
                   struct tensor dt_bias, struct tensor lo, int64_t first);
void cpu_delta(struct dev *d, struct tensor o, struct tensor state, struct delta_in x,
               struct tensor lo, int64_t first, int64_t keep);
void cpu_norm_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                   struct tensor z, float eps);
void cpu_normal(struct dev *d, struct tensor x, uint64_t key, float sigma);

#endif
