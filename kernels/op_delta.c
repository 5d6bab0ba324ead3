/* SPDX-License-Identifier: MIT */
/* op_delta.c - the front of Gated DeltaNet and of gated outputs; see op.c. */
#include "op.h"

#include "backend.h"
#include "ask.h"

void op_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor g)
{
    ASK(ask_act(d, y) && ask_act(d, x), "y and x are activations", y, x);
    ASK(ask_act(d, g) && ask_same(x, g), "x and g have one shape", x, g);
    ASK(ask_same(y, x), "y and x have one shape", y, x);
    ASK(ask_alias(y, x), "y is x or apart from it", y, x);
    ASK(ask_apart(y, g), "y is apart from g", y, g);
    if (!d->error && tensor_count(&y) > 0)
        d->ops->gate(d, y, x, g);
}

/* check_in: the heads of the rule's inputs, and where its documents begin. */
static void check_in(const struct dev *d, const struct delta_in *x, struct tensor lo)
{
    ASK(ask_act(d, x->q) && x->q.rank == 3, "q [T,n_k,D] is an activation", x->q, x->k);
    ASK(ask_act(d, x->k) && ask_same(x->q, x->k), "q and k [T,n_k,D]", x->q, x->k);
    ASK(ask_act(d, x->v) && x->v.rank == 3 && x->v.dim[0] == x->q.dim[0],
        "v [T,n_v,E] is an activation", x->v, x->q);
    ASK(x->q.dim[1] > 0 && x->v.dim[1] % x->q.dim[1] == 0, "n_k divides n_v", x->q,
        x->v);
    ASK(x->q.dim[2] <= OP_DELTA_MAX && x->v.dim[2] <= OP_DELTA_MAX,
        "D and E are not too wide", x->q, x->v);
    ASK(ask_type(x->g, DT_F32) && ask_dim2(x->g, x->v.dim[0], x->v.dim[1]),
        "g f32 [T,n_v]", x->g, x->v);
    ASK(ask_type(x->beta, DT_F32) && ask_same(x->beta, x->g), "beta f32 [T,n_v]",
        x->beta, x->v);
    ASK(ask_type(lo, DT_I32) && ask_dim1(lo, x->q.dim[0]), "lo i32 [T]", lo, x->q);
}

void op_delta_mix(struct dev *d, struct delta_in x, struct tensor u, struct tensor a,
                  struct tensor b, struct tensor conv, struct tensor a_log,
                  struct tensor dt_bias, struct tensor lo, int64_t first)
{
    const struct tensor out[] = {x.q, x.k, x.v, x.g, x.beta}, in[] = {u, a, b};
    check_in(d, &x, lo);
    int64_t width = 2 * x.q.dim[1] * x.q.dim[2] + x.v.dim[1] * x.v.dim[2];
    ASK(ask_act(d, u) && ask_dim2(u, x.q.dim[0] + OP_TAPS - 1, width),
        "u [3+T,C] is an activation", u, x.v);
    ASK(ask_act(d, a) && ask_same(a, x.g), "a [T,n_v] is an activation", a, x.g);
    ASK(ask_act(d, b) && ask_same(b, x.g), "b [T,n_v] is an activation", b, x.g);
    ASK(ask_type(conv, DT_F32) && ask_dim2(conv, width, OP_TAPS), "conv f32 [C,4]",
        conv, u);
    ASK(ask_type(a_log, DT_F32) && ask_dim1(a_log, x.v.dim[1]), "a_log f32 [n_v]",
        a_log, x.v);
    ASK(ask_type(dt_bias, DT_F32) && ask_same(dt_bias, a_log), "dt_bias f32 [n_v]",
        dt_bias, a_log);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 3; j++)
            ASK(ask_apart(out[i], in[j]), "x is apart from inputs", out[i], in[j]);
        for (int j = 0; j < i; j++)
            ASK(ask_apart(out[i], out[j]), "outputs are apart", out[i], out[j]);
    }
    if (!d->error && x.q.dim[0] > 0)
        d->ops->delta_mix(d, x, u, a, b, conv, a_log, dt_bias, lo, first);
}

void op_delta(struct dev *d, struct tensor o, struct tensor state, struct delta_in x,
              struct tensor lo, int64_t first, int64_t keep)
{
    check_in(d, &x, lo);
    ASK(ask_act(d, o) && ask_same(o, x.v), "o and v [T,n_v,E]", o, x.v);
    ASK(ask_type(state, DT_F32) && state.rank == 3 && state.dim[0] == x.v.dim[1] &&
            state.dim[1] == x.q.dim[2] && state.dim[2] == x.v.dim[2],
        "state f32 [n_v,D,E]", state, x.v);
    ASK(keep >= 0 && keep <= x.q.dim[0], "keep is 0 to T", x.q, x.v);
    ASK(ask_apart(o, x.q) && ask_apart(o, x.k), "o is apart from q and k", o, x.q);
    ASK(ask_apart(o, x.v), "o is apart from v", o, x.v);
    ASK(ask_apart(o, state), "o is apart from state", o, state);
    if (!d->error && x.q.dim[0] > 0)
        d->ops->delta(d, o, state, x, lo, first, keep);
}

void op_norm_gate(struct dev *d, struct tensor y, struct tensor x, struct tensor w,
                  struct tensor z, float eps)
{
    ASK(ask_act(d, x) && x.rank == 3, "x [T,n,D] is an activation", x, w);
    ASK(ask_act(d, y) && ask_same(y, x), "y and x [T,n,D]", y, x);
    ASK(ask_act(d, z) && ask_same(z, x), "z and x [T,n,D]", z, x);
    ASK(ask_weight(d, w) && ask_dim1(w, x.dim[2]), "w [D] is a weight", w, x);
    ASK(ask_alias(y, x), "y is x or apart from it", y, x);
    ASK(ask_apart(y, z), "y is apart from z", y, z);
    if (!d->error && tensor_count(&y) > 0)
        d->ops->norm_gate(d, y, x, w, z, eps);
}
