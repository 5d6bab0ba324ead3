/* SPDX-License-Identifier: MIT */
/* test_grad_op.c - every backward op against central differences of its forward op, in
 * double precision (this program is linked with f64.a).
 *
 * The loss is the sum of random weights times the output; the weights are what the
 * backward op gets as the output's gradient.  Tensors are matched by name: a backward
 * op's output dX is compared with differences in the forward op's input X, its input dY
 * holds the weights of the output Y. */
#include "kit_op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kit.h"
#include "mem.h"

/* forward_of names the op that `op` is the gradient of. */
static const char *forward_of(const char *op)
{
    static const char *const other[][2] = {
        {"matmul_dx", "matmul"},         {"matmul_dw", "matmul"},
        {"scatter", "gather"},           {"rmsnorm_bwd", "rmsnorm"},
        {"norm_rope_bwd", "norm_rope"},  {"swiglu_bwd", "swiglu"},
        {"attn_block_bwd", "attn_block"}};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (strcmp(op, other[i][0]) == 0)
            return other[i][1];
    return op; // computes its own gradient
}

static struct call_arg *gradient(struct call *k, const char *name)
{
    char d[CALL_NAME + 1];
    snprintf(d, sizeof d, "d%s", name);
    return call_find(k, d);
}

/* loss runs the forward op and weighs its outputs with the seeds; an output that has
 * none does not count, unless it is a loss itself. */
static double loss(struct call *f, struct call *back)
{
    double sum = 0;
    call_run(f);
    for (int i = 0; i < f->n; i++) {
        struct call_arg *y = &f->arg[i], *seed = gradient(back, y->name);
        bool is_loss = strcmp(y->name, "loss") == 0;
        if (!y->t.rank || y->role == ':' || (!is_loss && (!seed || seed->role != ':')))
            continue;
        double *v = call_get(f, y);
        for (int64_t j = 0; j < y->count; j++)
            sum += v[j] * (is_loss ? 1 : seed->host[j]);
        mem_free(v);
    }
    return sum;
}

/* slope is the central difference of the loss in element i of x. */
static double slope(struct call *f, struct call *back, struct call_arg *x, int64_t i)
{
    const double step = 1e-5;
    double keep = x->host[i], side[2];
    for (int s = 0; s < 2; s++) {
        x->host[i] = s ? keep + step : keep - step;
        call_reset(f);
        side[s] = loss(f, back);
    }
    x->host[i] = keep;
    return (side[1] - side[0]) / (2 * step);
}

static void compare(struct call *f, struct call *back, struct call_arg *x)
{
    struct call_arg *dx = gradient(back, x->name);
    double *got = call_get(back, dx),
           *want = mem_alloc((size_t)x->count * sizeof *want);
    double top = 0;
    char what[256];
    ck_assert_int_eq(dx->count, x->count);
    for (int64_t i = 0; i < x->count; i++) {
        if (dx->role == '+')
            got[i] -= dx->host[i];
        want[i] = slope(f, back, x, i);
        top = fabs(want[i]) > top ? fabs(want[i]) : top;
    }
    snprintf(what, sizeof what, "%s %s: %s", back->c->op, back->c->dims, dx->name);
    kit_close_f64(what, got, want, x->count, 1e-7 * top + 1e-9, 0);
    mem_free(got);
    mem_free(want);
}

/* share gives the forward call the inputs of the backward call. */
static void share(struct call *f, struct call *back)
{
    for (int i = 0; i < f->n; i++) {
        struct call_arg *a = &f->arg[i], *b = call_find(back, a->name);
        if (a->t.rank && a->role == ':' && b)
            memcpy(a->host, b->host, (size_t)a->count * sizeof *a->host);
    }
    call_reset(f);
}

START_TEST(central_differences)
{
    struct dev *d;
    kit_ok(dev_open(&d, "cpu", NULL));
    ck_assert_int_eq(d->act, DT_F64);
    for (int i = 0; i < OP_CASES; i++) {
        struct op_case forward = op_cases[i];
        struct call back, f;
        if (!(op_cases[i].use & GRAD) || !call_wanted(&op_cases[i]))
            continue;
        forward.op = forward_of(forward.op);
        call_open(&back, d, &op_cases[i]);
        call_open(&f, d, &forward);
        share(&f, &back);
        call_run(&back);
        int compared = 0;
        for (int j = 0; j < f.n; j++) {
            struct call_arg *dx = gradient(&back, f.arg[j].name);
            if (f.arg[j].t.rank && f.arg[j].role == ':' && dx && dx->role != ':') {
                compare(&f, &back, &f.arg[j]);
                compared++;
            }
        }
        ck_assert_int_gt(compared, 0);
        call_close(&f);
        call_close(&back);
    }
    dev_close(d);
}
END_TEST

KIT_MAIN("grad", central_differences)
