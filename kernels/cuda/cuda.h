/* SPDX-License-Identifier: MIT */
/* cuda.h - the CUDA backend: what its files share, and one function per op.
 *
 * Contracts are in op.h, shapes and types already checked by op.c.  Activations are
 * bf16, or f32 in the mode that tests use (dev.act); every kernel takes its element
 * types from the tensors.  Arithmetic is f32.  Sums that cross blocks run in two passes
 * in a fixed order: there is no floating-point atomic in this folder, so equal inputs
 * give equal bits on the same card.
 *
 * Bad data (an id out of range, a NaN) cannot return a message from a kernel: it is
 * noted in the fault, a word of host memory mapped into the device, and dev_sync turns
 * it into the sticky error.  Work that needs memory takes it from one workspace
 * allocated when the device is opened, so that no step allocates. */
#ifndef CUDA_H
#define CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

#include "backend.h"
#include "err.h"
#include "workspace.h"

/* What a kernel can find wrong; the first one stays. */
enum { FAULT_NONE, FAULT_ID, FAULT_LABEL, FAULT_NAN, FAULT_FINITE };

struct cuda_fault {
    int kind;
    int value;          /* the id, where there is one */
    long long position; /* row */
    const char *what;   /* what op_finite was given: a host pointer, only carried */
};

struct cuda_state {
    void *stream;             /* cudaStream_t; all work is issued here, in order */
    struct cuda_fault *fault; /* mapped host memory */
    struct cuda_fault *device_fault;
    char *scratch, *lt_space, *logits; /* pieces of the workspace */
    int index;                         /* of the GPU */
    struct cuda_copy *copy;            /* staging of large copies */
    int sms;                           /* multiprocessors */
    int capability;                    /* 90, 120 */
    struct lt *lt; /* matrix products: handle and chosen algorithms */
};

static inline struct cuda_state *cuda_state(const struct dev *d)
{
    return (struct cuda_state *)d->state;
}

/* The kernels that take dynamic shared memory: name as the compiler's report has it,
 * threads and bytes of a block.  Launches take both from here (launch.cuh); the last
 * line has no name. */
struct cuda_kernel {
    const char *name;
    int threads, dynamic;
};
extern const struct cuda_kernel cuda_kernels[];

/* cuda_failed leaves "what: why" and returns `code`; E_AGAIN instead where the card,
 * not the call, is what is wrong: another card, or this one after a reset, may do it.
 */
int cuda_failed(int error, int code, const char *what);

/* cuda_launched records a failed launch as the device's error. */
void cuda_launched(struct dev *d, const char *kernel);

/* cuda_add_partials: w[c] += sum of partial[0 .. parts)[c], in that order: the second
 * pass of a sum over rows.  partial [parts, count of w] f32, device memory. */
void cuda_add_partials(struct dev *d, struct tensor w, const float *partial, int parts);

/* copy.c: large copies between ordinary memory and the card, through page-locked pieces
 * filled by all threads; opened and closed with the device.  put and get wait. */
int cuda_copy_open(struct dev *d);
void cuda_copy_close(struct dev *d);
int cuda_copy_put(struct dev *d, void *to, const void *host, size_t bytes);
int cuda_copy_get(struct dev *d, void *host, const void *from, size_t bytes);
int cuda_copy_put_ahead(struct dev *d, void *to, const void *host, size_t bytes);
void cuda_copy_order(struct dev *d);
int cuda_copy_get_beside(struct dev *d, void *host, const void *from, size_t bytes);

/* matmul.cu: opened and closed with the device. */
int cuda_matmul_open(struct dev *d);
void cuda_matmul_close(struct dev *d);

/* cuda_matmul_met counts the shapes of products so far, and digests their algorithms in
 * the order in which they were chosen. */
int64_t cuda_matmul_met(const struct dev *d, uint64_t *digest);

/* cuda_neighbours counts the other processes on the card, as far as NVIDIA's management
 * library can be found and tells; 0 when not. */
int cuda_neighbours(const struct dev *d);

/* cuda_product: c[m,n] = op(a) op(b), plus c itself when `add`, in cuBLAS's terms:
 * every matrix column-major, op = transpose when turned, ld in elements, c packed (ld =
 * m). */
struct cuda_side {
    struct tensor t;
    bool turned;
    int64_t ld;
};
void cuda_product(struct dev *d, struct tensor c, struct cuda_side a,
                  struct cuda_side b, int64_t m, int64_t n, int64_t k, bool add);

/* cuda_mma_peak runs a loop of mma.sync and nothing else on every multiprocessor and
 * gives its number of floating-point operations: the ceiling that attention is measured
 * against. */
double cuda_mma_peak(struct dev *d, int loops);

/* cuda_same_type gives w in type `type`: cuBLASLt does not mix types.  A bf16 weight
 * beside f32 activations (the mode of tests) is expanded into `space` of `bytes`. */
struct tensor cuda_same_type(struct dev *d, struct tensor w, enum dtype type,
                             void *space, size_t bytes);

size_t cuda_pack_bytes(const struct dev *d, struct tensor w);
void cuda_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                 bool add);
void cuda_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                    bool add);
void cuda_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x);
void cuda_pack(struct dev *d, struct tensor p, struct tensor w);
void cuda_gather(struct dev *d, struct tensor y, struct tensor x, struct tensor ids);
void cuda_scatter(struct dev *d, struct tensor dx, struct tensor dy, struct tensor ids);
void cuda_convert(struct dev *d, struct tensor y, struct tensor x);
void cuda_tap(struct dev *d, struct tensor y, struct tensor x, int k);
void cuda_quant(struct dev *d, struct tensor q, struct tensor scale, struct tensor x);
void cuda_dequant(struct dev *d, struct tensor y, struct tensor q, struct tensor scale);
void cuda_add(struct dev *d, struct tensor y, struct tensor a, struct tensor b);
void cuda_rmsnorm(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                  float eps);
void cuda_rmsnorm_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                      struct tensor dy, struct tensor x, struct tensor w, float eps);
void cuda_norm_rope(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                    struct tensor pos, struct tensor freq, float eps);
void cuda_norm_rope_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                        struct tensor dy, struct tensor x, struct tensor w,
                        struct tensor pos, struct tensor freq, float eps);
void cuda_swiglu(struct dev *d, struct tensor y, struct tensor g, struct tensor u);
void cuda_swiglu_bwd(struct dev *d, struct tensor dg, struct tensor du,
                     struct tensor dy, struct tensor g, struct tensor u);
void cuda_attn_span(struct dev *d, struct tensor o, struct tensor q, struct tensor k,
                    struct tensor v, struct tensor lo, struct tensor hi, float scale);
void cuda_attn_block(struct dev *d, struct tensor o, struct tensor lse, struct tensor q,
                     struct tensor kc, struct tensor vc, struct tensor kb,
                     struct tensor vb, struct tensor lo, struct tensor hi,
                     struct attn_block p);
void cuda_attn_block_bwd(struct dev *d, struct attn_grads g, struct tensor dout,
                         struct tensor o, struct tensor lse, struct tensor q,
                         struct tensor kc, struct tensor vc, struct tensor kb,
                         struct tensor vb, struct tensor lo, struct tensor hi,
                         struct attn_block p);
void cuda_head_loss(struct dev *d, struct tensor loss, struct tensor hit,
                    struct tensor dh, struct tensor h, struct tensor w,
                    struct tensor label, struct tensor weight);
void cuda_argmax(struct dev *d, struct tensor idx, struct tensor x);
void cuda_sumsq(struct dev *d, struct tensor sum, struct tensor x);
void cuda_fill(struct dev *d, struct tensor x, float value);
void cuda_scale(struct dev *d, struct tensor x, float value);
void cuda_adamw(struct dev *d, struct tensor w, struct tensor master, struct tensor m,
                struct tensor v, struct tensor grad, struct adamw p);
void cuda_finite(struct dev *d, struct tensor x, const char *what);
void cuda_normal(struct dev *d, struct tensor x, uint64_t key, float sigma);
void cuda_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor g);
void cuda_delta_mix(struct dev *d, struct delta_in x, struct tensor u, struct tensor a,
                    struct tensor b, struct tensor conv, struct tensor a_log,
                    struct tensor dt_bias, struct tensor lo, int64_t first);
void cuda_delta(struct dev *d, struct tensor o, struct tensor state, struct delta_in x,
                struct tensor lo, int64_t first, int64_t keep);
void cuda_norm_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                    struct tensor z, float eps);

#ifdef __cplusplus
}
#endif

#endif
