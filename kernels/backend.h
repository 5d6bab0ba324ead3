/* SPDX-License-Identifier: MIT */
/* backend.h - what a device must provide: memory, and one function per op of op.h.
 *
 * Private to kernels/.  Shapes and types have been checked by op.c when a function here
 * runs; names and arguments are those of op.h without the prefix. */
#ifndef BACKEND_H
#define BACKEND_H

#include "op.h"

struct backend {
    const char *name;
    enum dtype act;               /* of activations */
    const struct dev_part *parts; /* taken at open; NULL: none */
    int full;                     /* code of an allocation that failed */
    int (*memory)(struct dev *d, struct dev_memory *m);            /* NULL: untold */
    void (*identity)(const struct dev *d, char out[DEV_IDENTITY]); /* NULL: name */
    int (*open)(struct dev *d, int index);
    void (*close)(struct dev *d);
    void *(*alloc)(struct dev *d, size_t bytes); /* NULL: failed, message set */
    void (*free)(struct dev *d, void *p);
    int (*put)(struct dev *d, void *to, const void *host, size_t bytes);
    int (*get)(struct dev *d, void *host, const void *from, size_t bytes);
    /* These five may be NULL: then put and get do, and ordinary memory. */
    int (*put_ahead)(struct dev *d, void *to, const void *host, size_t bytes);
    void (*order)(struct dev *d);
    int (*get_beside)(struct dev *d, void *host, const void *from, size_t bytes);
    int (*host_alloc)(struct dev *d, void **out, size_t bytes);
    void (*host_free)(struct dev *d, void *p);
    int (*sync)(struct dev *d);
    size_t (*pack_bytes)(const struct dev *d, struct tensor w);
    void (*matmul)(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                   bool add);
    void (*matmul_dx)(struct dev *d, struct tensor dx, struct tensor dy,
                      struct tensor w, bool add);
    void (*matmul_dw)(struct dev *d, struct tensor dw, struct tensor dy,
                      struct tensor x);
    void (*pack)(struct dev *d, struct tensor p, struct tensor w);
    void (*gather)(struct dev *d, struct tensor y, struct tensor x, struct tensor ids);
    void (*scatter)(struct dev *d, struct tensor dx, struct tensor dy,
                    struct tensor ids);
    void (*convert)(struct dev *d, struct tensor y, struct tensor x);
    void (*tap)(struct dev *d, struct tensor y, struct tensor x, int k);
    void (*quant)(struct dev *d, struct tensor q, struct tensor scale, struct tensor x);
    void (*dequant)(struct dev *d, struct tensor y, struct tensor q,
                    struct tensor scale);
    void (*add)(struct dev *d, struct tensor y, struct tensor a, struct tensor b);
    void (*rmsnorm)(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                    float eps);
    void (*rmsnorm_bwd)(struct dev *d, struct tensor dx, struct tensor dw,
                        struct tensor dy, struct tensor x, struct tensor w, float eps);
    void (*norm_rope)(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                      struct tensor pos, struct tensor freq, float eps);
    void (*norm_rope_bwd)(struct dev *d, struct tensor dx, struct tensor dw,
                          struct tensor dy, struct tensor x, struct tensor w,
                          struct tensor pos, struct tensor freq, float eps);
    void (*swiglu)(struct dev *d, struct tensor y, struct tensor g, struct tensor u);
    void (*swiglu_bwd)(struct dev *d, struct tensor dg, struct tensor du,
                       struct tensor dy, struct tensor g, struct tensor u);
    void (*attn_span)(struct dev *d, struct tensor o, struct tensor q, struct tensor k,
                      struct tensor v, struct tensor lo, struct tensor hi, float scale);
    void (*attn_block)(struct dev *d, struct tensor o, struct tensor lse,
                       struct tensor q, struct tensor kc, struct tensor vc,
                       struct tensor kb, struct tensor vb, struct tensor lo,
                       struct tensor hi, struct attn_block p);
    void (*attn_block_bwd)(struct dev *d, struct attn_grads g, struct tensor dout,
                           struct tensor o, struct tensor lse, struct tensor q,
                           struct tensor kc, struct tensor vc, struct tensor kb,
                           struct tensor vb, struct tensor lo, struct tensor hi,
                           struct attn_block p);
    void (*head_loss)(struct dev *d, struct tensor loss, struct tensor hit,
                      struct tensor dh, struct tensor h, struct tensor w,
                      struct tensor label, struct tensor weight);
    void (*argmax)(struct dev *d, struct tensor idx, struct tensor x);
    void (*sumsq)(struct dev *d, struct tensor sum, struct tensor x);
    void (*fill)(struct dev *d, struct tensor x, float value);
    void (*scale)(struct dev *d, struct tensor x, float value);
    void (*adamw)(struct dev *d, struct tensor w, struct tensor master, struct tensor m,
                  struct tensor v, struct tensor grad, struct adamw p);
    void (*finite)(struct dev *d, struct tensor x, const char *what);
    void (*normal)(struct dev *d, struct tensor x, uint64_t key, float sigma);
    void (*gate)(struct dev *d, struct tensor y, struct tensor x, struct tensor g);
    void (*delta_mix)(struct dev *d, struct delta_in x, struct tensor u,
                      struct tensor a, struct tensor b, struct tensor conv,
                      struct tensor a_log, struct tensor dt_bias, struct tensor lo,
                      int64_t first);
    void (*delta)(struct dev *d, struct tensor o, struct tensor state,
                  struct delta_in x, struct tensor lo, int64_t first, int64_t keep);
    void (*norm_gate)(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                      struct tensor z, float eps);
};

extern const struct backend cpu_backend;
extern const struct backend cuda_backend; /* nocuda.c or cuda/: all NULL without CUDA */

#endif
