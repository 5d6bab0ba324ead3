/* SPDX-License-Identifier: MIT */
/* op.c - the front of every operation: checks the call against op.h, once for all
 * backends, then hands it to the device's table.
 *
 * Nothing is issued to a device that has failed, and nothing when there is nothing to
 * compute, so backends see only sound calls with work in them.  Attention and the loss
 * are in op_attn.c. */
#include "op.h"

#include "backend.h"
#include "ask.h"

static bool idle(const struct dev *d, const struct tensor *out)
{
    return d->error || tensor_count(out) == 0;
}

/* ---- matrix products ---- */

void op_matmul(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
               bool add)
{
    ASK(ask_act(d, y) && ask_act(d, x), "y and x are activations", y, x);
    ASK(ask_weight(d, w), "w is a weight", w, x);
    ASK(x.rank == 2 && ask_dim2(w, w.dim[0], x.dim[1]), "x [M,K], w [N,K]", x, w);
    ASK(ask_dim2(y, x.dim[0], w.dim[0]), "y [M,N], w [N,K]", y, w);
    ASK(ask_apart(y, x), "y is apart from x", y, x);
    ASK(ask_apart(y, w), "y is apart from w", y, w);
    if (!idle(d, &y))
        d->ops->matmul(d, y, x, w, add);
}

void op_matmul_dx(struct dev *d, struct tensor dx, struct tensor dy, struct tensor w,
                  bool add)
{
    ASK(ask_act(d, dx) && ask_act(d, dy), "dx and dy are activations", dx, dy);
    ASK(ask_weight(d, w) && w.layout == T_ROWS, "w is a weight in rows", w, dy);
    ASK(dy.rank == 2 && ask_dim2(w, dy.dim[1], w.dim[1]), "dy [M,N], w [N,K]", dy, w);
    ASK(ask_dim2(dx, dy.dim[0], w.dim[1]), "dx [M,K], w [N,K]", dx, w);
    ASK(ask_apart(dx, dy), "dx is apart from dy", dx, dy);
    ASK(ask_apart(dx, w), "dx is apart from w", dx, w);
    if (!idle(d, &dx))
        d->ops->matmul_dx(d, dx, dy, w, add);
}

void op_matmul_dw(struct dev *d, struct tensor dw, struct tensor dy, struct tensor x)
{
    ASK(ask_grad(d, dw), "dw is an activation or f32", dw, x);
    ASK(ask_act(d, dy) && ask_act(d, x), "dy and x are activations", dy, x);
    ASK(dy.rank == 2 && ask_dim2(x, dy.dim[0], x.dim[1]), "dy [M,N], x [M,K]", dy, x);
    ASK(ask_dim2(dw, dy.dim[1], x.dim[1]), "dw [N,K], x [M,K]", dw, x);
    ASK(ask_apart(dw, dy), "dw is apart from dy", dw, dy);
    ASK(ask_apart(dw, x), "dw is apart from x", dw, x);
    if (!idle(d, &dw))
        d->ops->matmul_dw(d, dw, dy, x);
}

size_t op_pack_bytes(const struct dev *d, struct tensor w)
{
    ASK(w.rank == 2 && w.layout == T_ROWS, "w [N,K] in rows", w, w);
    return d->ops->pack_bytes(d, w);
}

void op_pack(struct dev *d, struct tensor p, struct tensor w)
{
    ASK(ask_weight(d, w) && w.layout == T_ROWS, "w is a weight in rows", w, p);
    ASK(w.rank == 2 && ask_same(p, w) && p.type == w.type, "p is like w [N,K]", p, w);
    ASK(p.layout == T_PANELS, "p has panels", p, w);
    ASK(ask_apart(p, w), "p is apart from w", p, w);
    if (!idle(d, &w))
        d->ops->pack(d, p, w);
}

/* ---- rows ---- */

void op_gather(struct dev *d, struct tensor y, struct tensor x, struct tensor ids)
{
    ASK(ask_act(d, y), "y is an activation", y, x);
    ASK(ask_weight(d, x) && x.layout == T_ROWS, "x is a weight in rows", x, y);
    ASK(ask_type(ids, DT_I32) && ids.rank == 1, "ids i32 [R]", ids, y);
    ASK(x.rank == 2 && ask_dim2(y, ids.dim[0], x.dim[1]), "y [R,H], x [T,H]", y, x);
    ASK(ask_apart(y, x), "y is apart from x", y, x);
    ASK(ask_apart(y, ids), "y is apart from ids", y, ids);
    if (!idle(d, &y))
        d->ops->gather(d, y, x, ids);
}

void op_scatter(struct dev *d, struct tensor dx, struct tensor dy, struct tensor ids)
{
    ASK(ask_act(d, dx) && ask_act(d, dy), "dx and dy are activations", dx, dy);
    ASK(ask_type(ids, DT_I32) && ids.rank == 1, "ids i32 [R]", ids, dy);
    ASK(dx.rank == 2 && ask_dim2(dy, ids.dim[0], dx.dim[1]), "dx [T,H], dy [R,H]", dx,
        dy);
    ASK(ask_apart(dx, dy), "dx is apart from dy", dx, dy);
    ASK(ask_apart(dx, ids), "dx is apart from ids", dx, ids);
    if (!idle(d, &dx))
        d->ops->scatter(d, dx, dy, ids);
}

void op_convert(struct dev *d, struct tensor y, struct tensor x)
{
    ASK(ask_real(y) && ask_real(x), "y and x hold reals", y, x);
    ASK(tensor_count(&y) == tensor_count(&x), "y and x have one count", y, x);
    ASK(ask_apart(y, x), "y is apart from x", y, x);
    if (!idle(d, &y))
        d->ops->convert(d, y, x);
}

void op_tap(struct dev *d, struct tensor y, struct tensor x, int k)
{
    ASK(ask_store(d, y), "y is an activation or bf16", y, x);
    ASK(ask_act(d, x), "x is an activation", x, y);
    ASK(x.rank == 2 && ask_dim2(y, x.dim[0], y.dim[1]), "y [T,K*H], x [T,H]", y, x);
    ASK(k >= 0 && x.dim[1] > 0 && y.dim[1] % x.dim[1] == 0 && k < y.dim[1] / x.dim[1],
        "tap k of y [T,K*H] has a place for x [T,H]", y, x);
    ASK(ask_apart(y, x), "y is apart from x", y, x);
    if (!idle(d, &x))
        d->ops->tap(d, y, x, k);
}

void op_quant(struct dev *d, struct tensor q, struct tensor scale, struct tensor x)
{
    ASK(ask_store(d, x) && x.rank == 3, "x [T,K,H] is an activation or bf16", x, q);
    ASK(ask_type(q, DT_E4M3) && ask_same(q, x), "q e4m3 [T,K,H]", q, x);
    ASK(ask_type(scale, DT_F32) && ask_dim2(scale, x.dim[0], x.dim[1]),
        "scale f32 [T,K]", scale, x);
    ASK(ask_apart(q, x), "q is apart from x", q, x);
    ASK(ask_apart(scale, x), "scale is apart from x", scale, x);
    ASK(ask_apart(q, scale), "q is apart from scale", q, scale);
    if (!idle(d, &scale))
        d->ops->quant(d, q, scale, x);
}

void op_dequant(struct dev *d, struct tensor y, struct tensor q, struct tensor scale)
{
    ASK(ask_store(d, y) && y.rank == 3, "y [T,K,H] is an activation or bf16", y, q);
    ASK(ask_type(q, DT_E4M3) && ask_same(q, y), "q e4m3 [T,K,H]", q, y);
    ASK(ask_type(scale, DT_F32) && ask_dim2(scale, y.dim[0], y.dim[1]),
        "scale f32 [T,K]", scale, y);
    ASK(ask_apart(y, q), "y is apart from q", y, q);
    ASK(ask_apart(y, scale), "y is apart from scale", y, scale);
    if (!idle(d, &y))
        d->ops->dequant(d, y, q, scale);
}

/* ---- elementwise and norms ---- */

void op_add(struct dev *d, struct tensor y, struct tensor a, struct tensor b)
{
    ASK(ask_act(d, y) && ask_act(d, a), "y and a are activations", y, a);
    ASK(ask_act(d, b), "b is an activation", b, y);
    ASK(ask_same(y, a), "y and a have one shape", y, a);
    ASK(ask_same(y, b), "y and b have one shape", y, b);
    ASK(ask_alias(y, a), "y is a or apart from it", y, a);
    ASK(ask_alias(y, b), "y is b or apart from it", y, b);
    if (!idle(d, &y))
        d->ops->add(d, y, a, b);
}

void op_rmsnorm(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                float eps)
{
    ASK(ask_act(d, y) && ask_act(d, x), "y and x are activations", y, x);
    ASK(x.rank == 2 && ask_same(y, x), "y and x [T,H]", y, x);
    ASK(ask_weight(d, w) && ask_dim1(w, x.dim[1]), "w [H] is a weight", w, x);
    ASK(ask_alias(y, x), "y is x or apart from it", y, x);
    ASK(ask_apart(y, w), "y is apart from w", y, w);
    if (!idle(d, &y))
        d->ops->rmsnorm(d, y, x, w, eps);
}

void op_rmsnorm_bwd(struct dev *d, struct tensor dx, struct tensor dw, struct tensor dy,
                    struct tensor x, struct tensor w, float eps)
{
    ASK(ask_act(d, dx) && ask_act(d, dy), "dx and dy are activations", dx, dy);
    ASK(ask_act(d, x) && x.rank == 2, "x [T,H] is an activation", x, dx);
    ASK(ask_same(dx, x) && ask_same(dy, x), "dx, dy and x [T,H]", dx, dy);
    ASK(ask_weight(d, w) && ask_dim1(w, x.dim[1]), "w [H] is a weight", w, x);
    ASK(ask_grad(d, dw) && ask_same(dw, w), "dw [H] is an activation or f32", dw, w);
    ASK(ask_alias(dx, dy), "dx is dy or apart from it", dx, dy);
    ASK(ask_apart(dx, x), "dx is apart from x", dx, x);
    ASK(ask_apart(dw, w), "dw is apart from w", dw, w);
    if (!idle(d, &dx))
        d->ops->rmsnorm_bwd(d, dx, dw, dy, x, w, eps);
}

/* check_heads: what norm_rope asks of its inputs, forward and backward. */
static void check_heads(const struct dev *d, struct tensor x, struct tensor w,
                        struct tensor pos, struct tensor freq)
{
    ASK(ask_act(d, x) && x.rank == 3, "x [T,n,D] is an activation", x, w);
    ASK(x.dim[2] % 2 == 0 && x.dim[2] <= OP_HEAD_MAX, "D is even and not too wide", x,
        w);
    ASK(!w.data || (ask_weight(d, w) && ask_dim1(w, x.dim[2])),
        "w [D] is a weight or absent", w, x);
    ASK(ask_type(pos, DT_I32) && ask_dim1(pos, x.dim[0]), "pos i32 [T]", pos, x);
    ASK(ask_type(freq, DT_F32) && ask_dim1(freq, x.dim[2] / 2), "freq f32 [D/2]", freq,
        x);
}

void op_norm_rope(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                  struct tensor pos, struct tensor freq, float eps)
{
    check_heads(d, x, w, pos, freq);
    ASK(ask_act(d, y) && ask_same(y, x), "y and x [T,n,D]", y, x);
    ASK(ask_alias(y, x), "y is x or apart from it", y, x);
    ASK(ask_apart(y, w), "y is apart from w", y, w);
    if (!idle(d, &y))
        d->ops->norm_rope(d, y, x, w, pos, freq, eps);
}

void op_norm_rope_bwd(struct dev *d, struct tensor dx, struct tensor dw,
                      struct tensor dy, struct tensor x, struct tensor w,
                      struct tensor pos, struct tensor freq, float eps)
{
    check_heads(d, x, w, pos, freq);
    ASK(ask_act(d, dx) && ask_act(d, dy), "dx and dy are activations", dx, dy);
    ASK(ask_same(dx, x) && ask_same(dy, x), "dx, dy and x [T,n,D]", dx, dy);
    ASK(!w.data || (ask_grad(d, dw) && ask_same(dw, w)),
        "dw [D] is an activation or f32", dw, w);
    ASK(ask_alias(dx, dy), "dx is dy or apart from it", dx, dy);
    ASK(ask_apart(dx, x), "dx is apart from x", dx, x);
    if (!idle(d, &dx))
        d->ops->norm_rope_bwd(d, dx, dw, dy, x, w, pos, freq, eps);
}

void op_swiglu(struct dev *d, struct tensor y, struct tensor g, struct tensor u)
{
    ASK(ask_act(d, y) && ask_act(d, g), "y and g are activations", y, g);
    ASK(ask_act(d, u) && ask_same(g, u), "g and u have one shape", g, u);
    ASK(ask_same(y, g), "y and g have one shape", y, g);
    ASK(ask_alias(y, g), "y is g or apart from it", y, g);
    ASK(ask_alias(y, u), "y is u or apart from it", y, u);
    if (!idle(d, &y))
        d->ops->swiglu(d, y, g, u);
}

void op_swiglu_bwd(struct dev *d, struct tensor dg, struct tensor du, struct tensor dy,
                   struct tensor g, struct tensor u)
{
    ASK(ask_act(d, dg) && ask_act(d, du), "dg and du are activations", dg, du);
    ASK(ask_act(d, g) && ask_act(d, u), "g and u are activations", g, u);
    ASK(ask_act(d, dy) && ask_same(dy, g), "dy and g have one shape", dy, g);
    ASK(ask_same(dg, g) && ask_same(du, u), "dg and du are like g and u", dg, du);
    ASK(ask_same(g, u), "g and u have one shape", g, u);
    ASK(ask_apart(dg, du), "dg is apart from du", dg, du);
    ASK(ask_alias(dg, g), "dg is g or apart from it", dg, g);
    ASK(ask_alias(du, u), "du is u or apart from it", du, u);
    ASK(ask_apart(dg, u) && ask_apart(du, g), "dg is not u, du is not g", dg, du);
    ASK(ask_apart(dg, dy) && ask_apart(du, dy), "dg and du are apart from dy", dg, dy);
    if (!idle(d, &dg))
        d->ops->swiglu_bwd(d, dg, du, dy, g, u);
}

/* ---- optimizer ---- */

void op_sumsq(struct dev *d, struct tensor sum, struct tensor x)
{
    ASK(ask_type(sum, DT_F64) && ask_dim1(sum, 1), "sum f64 [1]", sum, x);
    ASK(ask_real(x), "x holds reals", x, sum);
    ASK(ask_apart(sum, x), "sum is apart from x", sum, x);
    if (!idle(d, &x))
        d->ops->sumsq(d, sum, x);
}

void op_fill(struct dev *d, struct tensor x, float value)
{
    ASK(ask_real(x), "x holds reals", x, x);
    if (!idle(d, &x))
        d->ops->fill(d, x, value);
}

void op_scale(struct dev *d, struct tensor x, float value)
{
    ASK(ask_real(x), "x holds reals", x, x);
    if (!idle(d, &x))
        d->ops->scale(d, x, value);
}

void op_normal(struct dev *d, struct tensor x, uint64_t key, float sigma)
{
    ASK(ask_real(x), "x holds reals", x, x);
    if (!idle(d, &x))
        d->ops->normal(d, x, key, sigma);
}

void op_adamw(struct dev *d, struct tensor w, struct tensor master, struct tensor m,
              struct tensor v, struct tensor grad, struct adamw p)
{
    int64_t n = tensor_count(&master);
    enum dtype moments = d->act == DT_F64 ? DT_F64 : DT_F32;
    ASK(ask_store(d, w) && tensor_count(&w) == n, "w is like master", w, master);
    ASK(ask_type(master, moments), "master has the type of moments", master, w);
    ASK(ask_type(m, moments) && tensor_count(&m) == n, "m is like master", m, master);
    ASK(ask_type(v, moments) && tensor_count(&v) == n, "v is like master", v, master);
    ASK(ask_grad(d, grad) && tensor_count(&grad) == n, "grad is like master", grad,
        master);
    ASK(ask_alias(w, master), "w is master or apart from it", w, master);
    ASK(w.data != master.data || w.type == master.type, "w is master in type too", w,
        master);
    ASK(p.step >= 1, "steps count from 1", master, grad);
    if (!idle(d, &master))
        d->ops->adamw(d, w, master, m, v, grad, p);
}

void op_finite(struct dev *d, struct tensor x, const char *what)
{
    ASK(ask_real(x) && x.rank == 2, "x [T,H] holds reals", x, x);
    if (!idle(d, &x))
        d->ops->finite(d, x, what);
}
