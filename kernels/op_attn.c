/* SPDX-License-Identifier: MIT */
/* op_attn.c - the front of attention and of the head; see op.c. */
#include "op.h"

#include "backend.h"
#include "ask.h"

/* check_keys: keys and values of queries q [T,n_h,D] are k, v [S,n_kv,D]. */
static void check_keys(const struct dev *d, struct tensor q, struct tensor k,
                       struct tensor v)
{
    ASK(ask_act(d, q) && q.rank == 3, "q [T,n_h,D] is an activation", q, k);
    ASK(ask_act(d, k) && ask_act(d, v), "k and v are activations", k, v);
    ASK(k.rank == 3 && ask_same(k, v), "k and v [S,n_kv,D]", k, v);
    ASK(k.dim[2] == q.dim[2], "q and k have one head width", q, k);
    ASK(k.dim[1] > 0 && q.dim[1] % k.dim[1] == 0, "n_kv divides n_h", q, k);
}

static void check_spans(struct tensor q, struct tensor lo, struct tensor hi)
{
    ASK(ask_type(lo, DT_I32) && ask_dim1(lo, q.dim[0]), "lo i32 [T]", lo, q);
    ASK(ask_type(hi, DT_I32) && ask_dim1(hi, q.dim[0]), "hi i32 [T]", hi, q);
}

void op_attn_span(struct dev *d, struct tensor o, struct tensor q, struct tensor k,
                  struct tensor v, struct tensor lo, struct tensor hi, float scale)
{
    check_keys(d, q, k, v);
    check_spans(q, lo, hi);
    ASK(ask_act(d, o) && ask_same(o, q), "o and q [T,n_h,D]", o, q);
    ASK(ask_apart(o, q), "o is apart from q", o, q);
    ASK(ask_apart(o, k), "o is apart from k", o, k);
    ASK(ask_apart(o, v), "o is apart from v", o, v);
    if (!d->error && tensor_count(&o) > 0)
        d->ops->attn_span(d, o, q, k, v, lo, hi, scale);
}

/* check_block: the inputs of the drafter's attention. */
static void check_block(const struct dev *d, struct tensor q, struct tensor kc,
                        struct tensor vc, struct tensor kb, struct tensor vb,
                        struct tensor lse, const struct attn_block *p)
{
    check_keys(d, q, kc, vc);
    check_keys(d, q, kb, vb);
    ASK(kb.dim[1] == kc.dim[1], "kc and kb have one n_kv", kc, kb);
    ASK(kb.dim[0] == q.dim[0], "kb [Q,n_kv,D], q [Q,n_h,D]", kb, q);
    ASK(p->block > 0 && q.dim[0] % p->block == 0, "Q is a multiple of B", q, kb);
    ASK(p->window >= 0, "the window is not negative", q, kb);
    ASK(ask_grad(d, lse) && ask_dim2(lse, q.dim[0], q.dim[1]),
        "lse [Q,n_h] is an activation or f32", lse, q);
}

void op_attn_block(struct dev *d, struct tensor o, struct tensor lse, struct tensor q,
                   struct tensor kc, struct tensor vc, struct tensor kb,
                   struct tensor vb, struct tensor lo, struct tensor hi,
                   struct attn_block p)
{
    check_block(d, q, kc, vc, kb, vb, lse, &p);
    check_spans(q, lo, hi);
    ASK(ask_act(d, o) && ask_same(o, q), "o and q [Q,n_h,D]", o, q);
    ASK(ask_apart(o, q), "o is apart from q", o, q);
    ASK(ask_apart(o, kc) && ask_apart(o, vc), "o is apart from kc, vc", o, kc);
    ASK(ask_apart(o, kb) && ask_apart(o, vb), "o is apart from kb, vb", o, kb);
    ASK(ask_apart(o, lse), "o is apart from lse", o, lse);
    if (!d->error && tensor_count(&o) > 0)
        d->ops->attn_block(d, o, lse, q, kc, vc, kb, vb, lo, hi, p);
}

void op_attn_block_bwd(struct dev *d, struct attn_grads g, struct tensor dout,
                       struct tensor o, struct tensor lse, struct tensor q,
                       struct tensor kc, struct tensor vc, struct tensor kb,
                       struct tensor vb, struct tensor lo, struct tensor hi,
                       struct attn_block p)
{
    const struct tensor in[] = {dout, o, q, kc, vc, kb, vb};
    const struct tensor out[] = {g.dq, g.dkc, g.dvc, g.dkb, g.dvb};
    const struct tensor like[] = {q, kc, vc, kb, vb};
    check_block(d, q, kc, vc, kb, vb, lse, &p);
    check_spans(q, lo, hi);
    ASK(ask_act(d, o) && ask_same(o, q), "o and q [Q,n_h,D]", o, q);
    ASK(ask_act(d, dout) && ask_same(dout, q), "dout and q [Q,n_h,D]", dout, q);
    for (int i = 0; i < 5; i++) {
        ASK(ask_act(d, out[i]) && ask_same(out[i], like[i]),
            "a gradient is like its tensor", out[i], like[i]);
        for (int j = 0; j < 7; j++)
            ASK(ask_apart(out[i], in[j]), "gradients are apart from inputs", out[i],
                in[j]);
        for (int j = 0; j < i; j++)
            ASK(ask_apart(out[i], out[j]), "gradients are apart", out[i], out[j]);
    }
    if (!d->error && (tensor_count(&q) > 0 || tensor_count(&kc) > 0))
        d->ops->attn_block_bwd(d, g, dout, o, lse, q, kc, vc, kb, vb, lo, hi, p);
}

/* ---- the head ---- */

void op_head_loss(struct dev *d, struct tensor loss, struct tensor hit,
                  struct tensor dh, struct tensor h, struct tensor w,
                  struct tensor label, struct tensor weight)
{
    ASK(ask_act(d, h) && h.rank == 2, "h [R,H] is an activation", h, w);
    ASK(ask_weight(d, w) && w.layout == T_ROWS, "w is a weight in rows", w, h);
    ASK(ask_dim2(w, w.dim[0], h.dim[1]), "w [V,H], h [R,H]", w, h);
    ASK(ask_type(loss, DT_F64) && ask_dim1(loss, 1), "loss f64 [1]", loss, h);
    ASK(ask_type(hit, DT_I32) && ask_dim1(hit, h.dim[0]), "hit i32 [R]", hit, h);
    ASK(ask_type(label, DT_I32) && ask_dim1(label, h.dim[0]), "label i32 [R]", label,
        h);
    ASK(ask_type(weight, DT_F32) && ask_dim1(weight, h.dim[0]), "weight f32 [R]",
        weight, h);
    ASK(!dh.data || (ask_act(d, dh) && ask_same(dh, h)), "dh is like h", dh, h);
    ASK(ask_apart(dh, h), "dh is apart from h", dh, h);
    ASK(ask_apart(dh, w), "dh is apart from w", dh, w);
    if (!d->error && h.dim[0] > 0)
        d->ops->head_loss(d, loss, hit, dh, h, w, label, weight);
}

void op_argmax(struct dev *d, struct tensor idx, struct tensor x)
{
    ASK(ask_act(d, x) && x.rank == 2, "x [R,V] is an activation", x, idx);
    ASK(ask_type(idx, DT_I32) && ask_dim1(idx, x.dim[0]), "idx i32 [R]", idx, x);
    ASK(x.dim[1] > 0 && x.dim[1] <= INT32_MAX, "V is at least 1 and fits i32", x, idx);
    if (!d->error && x.dim[0] > 0)
        d->ops->argmax(d, idx, x);
}
