/* SPDX-License-Identifier: MIT */
/* target_parts.h - what the files of the target share; private to target*.c.
 *
 *   target.c           opening, closing, sharing
 *   target_load.c      which tensors a family has, and under which names
 *   target_stream.c    layers brought from the checkpoint, one after another
 *   target_forward.c   a pass: embedding, layers, taps, logits
 *   target_attn.c      the attention of a layer
 *   target_delta.c     Gated DeltaNet in its place */
#ifndef TARGET_PARTS_H
#define TARGET_PARTS_H

#include "target.h"

#include "safetensors.h"
#include "weights.h"

struct layer {
    struct tensor input_norm, post_norm, gate, up, down;
    struct tensor q, k, v, o;
    struct tensor q_bias, k_bias, v_bias; /* no data: none */
    struct tensor q_norm, k_norm;         /* no data: none */
    struct tensor q_gate;                 /* no data: none */
    /* Gated DeltaNet: in place of all from q on */
    struct tensor mix, a, b, z, conv, a_log, dt_bias, out_norm, out;
};

/* The layers of a target that is too large: see target_stream.c. */
struct target_stream {
    struct st_model model;
    struct weights weights;
    struct arena stage; /* one layer as stored: the next */
    struct arena place; /* one layer as products want it: the one at work */
    int64_t brought;    /* which is on the stage; -1: none */
};

struct target {
    struct target_config config;
    struct dev *dev;
    struct arena arena;
    struct tensor embed, head, norm, freq;
    struct layer *layer; /* owned, [config.layers] */
    int64_t layers;      /* loaded: 0 .. layers - 1 */
    bool shared;         /* weights belong to another target */
    uint64_t digest;
    struct target_sizes sizes;
    struct target_stream *stream; /* owned; NULL: all layers are there */
};

/* target_load fills the weights of t, whose config and layers are set, in at most
 * `memory` bytes (0: any).  Where the layers must be brought one by one, *m is moved
 * into t.  target_measure does all of it that needs no device: digest and sizes. */
int target_load(struct target *t, struct st_model *m, enum target_head head,
                size_t memory);
int target_measure(struct target *t, const struct st_model *m, enum target_head head);

/* target_open_rope carves the frequencies. */
int target_open_rope(struct target *t, struct arena *a);

/* target_part: layer l is part l + 1 of the wants, what stays is part 0. */
static inline int target_part(int64_t l)
{
    return (int)l + 1;
}

/* target_stream_measure finds what stays on the device, and the largest layer as stored
 * and as placed. */
struct target_stream_sizes {
    size_t stays, stage, place;
};
int target_stream_measure(struct target *t, struct weights *w,
                          struct target_stream_sizes *s);

/* target_stream_open takes over model and wants, and loads what stays; E_CONFIG when
 * that and two layers are more than `memory`. */
int target_stream_open(struct target *t, struct st_model *m, struct weights *w,
                       size_t memory);
void target_stream_close(struct target *t);

/* target_stream_place makes layer l ready for the work that follows, once it has been
 * brought; target_stream_bring brings layer l beside the work issued so far, which must
 * not be of a layer not placed yet.  Both do nothing where all layers are there. */
int target_stream_place(struct target *t, int64_t l);
int target_stream_bring(struct target *t, int64_t l);

/* target_load_drawn fills t's layers without a checkpoint. */
int target_load_drawn(struct target *t, uint64_t seed);

/* Working memory of a pass: T rows, R rows more that are replayed.  What attention,
 * DeltaNet and MLP use is the same memory. */
struct acts {
    struct tensor ids, pos, lo, hi; /* [T] */
    struct tensor zero;             /* [T] of 0, with biases */
    struct tensor x, u;             /* [T,H] */
    struct tensor q, o;             /* [T,n_h,D] */
    struct tensor gate;             /* [T,n_h,D], with gates */
    struct tensor k, v;             /* [T,n_kv,D] */
    struct tensor g, up;            /* [T,I] */
    /* hybrids only */
    struct tensor from;            /* [R+T] where the row's document begins */
    struct tensor mix, a, b;       /* [3+R+T,C], [R+T,n_v] */
    struct tensor dq, dk, dv;      /* [R+T,n_k,D], [R+T,n_v,E] */
    struct tensor decay, beta;     /* [R+T,n_v] */
    struct tensor z, out;          /* [T,n_v,E], [R+T,n_v,E] */
    struct tensor state;           /* [n_v,D,E], of a pass without a cache */
    int64_t first, replayed, keep; /* of the DeltaNet rows: see target_delta.c */
    int tapped;
};

/* target_attn adds layer l's attention to a->x, target_delta its DeltaNet. */
void target_attn(struct target *t, int64_t l, const struct acts *a,
                 const struct target_pass *p);
void target_delta(struct target *t, int64_t l, const struct acts *a,
                  const struct target_pass *p);

/* target_delta_rows says which rows DeltaNet layers see in this pass and brings
 * a->from to the device; target_delta_done moves the cache on behind it. */
int target_delta_rows(struct target *t, struct acts *a, const struct target_pass *p);
void target_delta_done(const struct acts *a, const struct target_pass *p);

#endif
