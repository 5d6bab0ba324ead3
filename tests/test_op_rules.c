/* SPDX-License-Identifier: MIT */
/* test_op_rules.c - what every op promises beside its formula: a row alone gives the
 * bits it gives among others, bad data fails with a message and for good, a wrong call
 * is named as our bug, and exp, log, sine and cosine are as exact as they claim. */
#include "kit_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "kernels/cpu/mathf.h"
#include "kit.h"
#include "mem.h"
#include "rng.h"

static struct dev *open_cpu(void)
{
    struct dev *d;
    kit_ok(dev_open(&d, "cpu", NULL));
    return d;
}

static struct tensor f32(float *data, int rank, const int64_t *dim)
{
    return tensor_of(data, DT_F32, rank, dim);
}

static struct tensor i32(int32_t *data, int64_t n)
{
    return tensor_of(data, DT_I32, T1(n));
}

/* ---- a row alone ---- */

/* slice makes of call k the call on rows [t, t + n) alone: tensors whose first letter
 * is the row's are cut; context keys are cut to [lo, hi) of the rows, which are moved.
 */
static void slice(struct call *one, const struct call *k, int64_t rows, int64_t t,
                  int64_t n, int32_t *lo, int32_t *hi)
{
    *one = *k;
    int32_t first = INT32_MAX, last = 0;
    struct call_arg *l = call_find(one, "lo"), *h = call_find(one, "hi");
    for (int64_t i = t; l && i < t + n; i++) {
        int32_t from = ((int32_t *)l->t.data)[i], to = ((int32_t *)h->t.data)[i];
        first = from < first ? from : first;
        last = to > last ? to : last;
    }
    for (int64_t i = 0; l && i < n; i++) {
        lo[i] = ((int32_t *)l->t.data)[t + i] - first;
        hi[i] = ((int32_t *)h->t.data)[t + i] - first;
    }
    for (int i = 0; i < one->n; i++) {
        struct call_arg *a = &one->arg[i];
        bool context = a->name[0] == 'k' || a->name[0] == 'v';
        if (a == l || a == h)
            a->t = i32(a == l ? lo : hi, n);
        else if (l && context && a->name[1] != 'b')
            a->t = tensor_rows(a->t, first, last - first);
        else if (a->t.dim[0] == rows && strcmp(a->name, "w") != 0 &&
                 strcmp(a->name, "freq") != 0)
            a->t = tensor_rows(a->t, t, n);
    }
}

/* check_alone runs the call whole, then in pieces of `step` rows into cleared outputs,
 * and compares what is written once (not sums over rows). */
static void check_alone(struct dev *d, const struct op_case *c, char letter)
{
    struct call k;
    int32_t lo[128], hi[128];
    double *whole[CALL_ARGS];
    call_open(&k, d, c);
    int64_t rows = k.dim[(int)letter], step = k.dim['B'] ? k.dim['B'] : 1;
    call_run(&k);
    for (int i = 0; i < k.n; i++)
        whole[i] = k.arg[i].role == '=' ? call_get(&k, &k.arg[i]) : NULL;
    call_reset(&k);
    for (int64_t t = 0; t < rows; t += step) {
        struct call one;
        slice(&one, &k, rows, t, step, lo, hi);
        call_run(&one);
    }
    for (int i = 0; i < k.n; i++) {
        if (!whole[i])
            continue;
        double *alone = call_get(&k, &k.arg[i]);
        kit_same(c->dims, alone, whole[i], (size_t)k.arg[i].count * sizeof *alone);
        mem_free(alone);
        mem_free(whole[i]);
    }
    call_close(&k);
}

START_TEST(rows_alone)
{
    static const struct {
        const char *op;
        char letter;
    } by_rows[] = {{"matmul", 'M'},    {"rmsnorm", 'T'},   {"norm_rope", 'T'},
                   {"swiglu", 'T'},    {"attn_span", 'T'}, {"attn_block", 'Q'},
                   {"head_loss", 'R'}, {"dequant", 'T'}};
    struct dev *d = open_cpu();
    for (size_t i = 0; i < sizeof by_rows / sizeof by_rows[0]; i++)
        for (int j = 0; j < OP_CASES; j++)
            if (strcmp(op_cases[j].op, by_rows[i].op) == 0 &&
                !(op_cases[j].use & SPEED))
                check_alone(d, &op_cases[j], by_rows[i].letter);
    dev_close(d);
}
END_TEST

/* ---- bad data ---- */

START_TEST(bad_ids)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[4];
    int32_t ids[2] = {2, 3};
    struct dev *d = open_cpu();
    op_gather(d, f32(y, T2(2, 2)), f32(x, T2(3, 2)), i32(ids, 2));
    kit_fails(dev_sync(d), E_FORMAT, "gather: id 3 at position 1 is not in [0, 3)");
    dev_close(d);
    d = open_cpu();
    ids[0] = -1;
    op_scatter(d, f32(x, T2(3, 2)), f32(y, T2(2, 2)), i32(ids, 2));
    kit_fails(dev_sync(d), E_FORMAT, "scatter: id -1 at position 0");
    dev_close(d);
}
END_TEST

START_TEST(bad_numbers)
{
    float x[6] = {1, -INFINITY, INFINITY, 4, NAN, NAN};
    int32_t idx[2];
    struct dev *d = open_cpu();
    op_argmax(d, i32(idx, 1), f32(x, T2(1, 3)));
    kit_ok(dev_sync(d));
    ck_assert_int_eq(idx[0], 2);
    op_argmax(d, i32(idx, 2), f32(x, T2(2, 3)));
    kit_fails(dev_sync(d), E_FORMAT, "argmax: row 1 holds a NaN at 1");
    dev_close(d);
    d = open_cpu();
    op_finite(d, f32(x, T2(1, 1)), "features");
    kit_ok(dev_sync(d));
    op_finite(d, f32(x, T2(2, 3)), "features");
    kit_fails(dev_sync(d), E_FORMAT, "features: row 0 holds -inf at 1");
    dev_close(d);
}
END_TEST

START_TEST(first_of_equals)
{
    float x[2][9] = {{3, 5, 1, 5, 5, 0, 0, 0, 5}, {-INFINITY, -INFINITY}};
    int32_t idx[2];
    struct dev *d = open_cpu();
    for (int i = 2; i < 9; i++)
        x[1][i] = -INFINITY;
    op_argmax(d, i32(idx, 2), f32(x[0], T2(2, 9)));
    kit_ok(dev_sync(d));
    ck_assert_int_eq(idx[0], 1);
    ck_assert_int_eq(idx[1], 0);
    dev_close(d);
}
END_TEST

/* After a failure nothing more is computed and the first message stays. */
START_TEST(failures_stick)
{
    float x[2] = {1, 2}, y[2] = {7, 7};
    struct dev *d = open_cpu();
    dev_fail(d, E_DEVICE, "the first");
    dev_fail(d, E_MEMORY, "the second");
    op_add(d, f32(y, T1(2)), f32(x, T1(2)), f32(x, T1(2)));
    op_scale(d, f32(y, T1(2)), 0);
    ck_assert(y[0] == 7 && y[1] == 7);
    kit_fails(dev_sync(d), E_DEVICE, "the first");
    kit_fails(dev_sync(d), E_DEVICE, "the first");
    dev_close(d);
}
END_TEST

/* A label counts as hit when it is the first of the largest logits. */
START_TEST(first_of_equal_logits)
{
    float h[2] = {1, 1}, w[4] = {2, 5, 5, -1}, weight[2] = {1, 1};
    int32_t label[2] = {1, 2}, hit[2];
    double loss = 0;
    struct dev *d = open_cpu();
    struct tensor none = tensor_of(NULL, DT_F32, T2(2, 1));
    op_head_loss(d, tensor_of(&loss, DT_F64, T1(1)), i32(hit, 2), none,
                 f32(h, T2(2, 1)), f32(w, T2(4, 1)), i32(label, 2), f32(weight, T1(2)));
    kit_ok(dev_sync(d));
    ck_assert_int_eq(hit[0], 1);
    ck_assert_int_eq(hit[1], 0);
    label[1] = 4;
    op_head_loss(d, tensor_of(&loss, DT_F64, T1(1)), i32(hit, 2), none,
                 f32(h, T2(2, 1)), f32(w, T2(4, 1)), i32(label, 2), f32(weight, T1(2)));
    kit_fails(dev_sync(d), E_FORMAT, "row 1: label 4 is outside the vocabulary");
    dev_close(d);
}
END_TEST

/* ---- wrong calls ---- */

static float memory[64];
static int32_t numbers[16];

static void wrong_shape(struct dev *d)
{
    op_add(d, f32(memory, T2(2, 3)), f32(memory + 16, T2(2, 3)),
           f32(memory + 32, T2(3, 2)));
}

static void wrong_type(struct dev *d)
{
    op_add(d, f32(memory, T1(2)), tensor_of(memory + 16, DT_BF16, T1(2)),
           f32(memory + 32, T1(2)));
}

static void overlap(struct dev *d)
{
    op_add(d, f32(memory, T1(8)), f32(memory + 4, T1(8)), f32(memory + 32, T1(8)));
}

static void no_data(struct dev *d)
{
    op_fill(d, f32(NULL, T1(8)), 0);
}

static void odd_width(struct dev *d)
{
    op_norm_rope(d, f32(memory, T3(1, 1, 3)), f32(memory + 8, T3(1, 1, 3)),
                 (struct tensor){0}, i32(numbers, 1), f32(memory + 16, T1(1)), 0);
}

static void wrong_heads(struct dev *d)
{
    op_attn_span(d, f32(memory, T3(1, 3, 2)), f32(memory + 8, T3(1, 3, 2)),
                 f32(memory + 16, T3(1, 2, 2)), f32(memory + 24, T3(1, 2, 2)),
                 i32(numbers, 1), i32(numbers + 1, 1), 1);
}

static void wrong_tap(struct dev *d)
{
    op_tap(d, f32(memory, T2(1, 6)), f32(memory + 16, T2(1, 3)), 2);
}

static void panels_as_rows(struct dev *d)
{
    struct tensor w = f32(memory, T2(2, 2));
    w.layout = T_PANELS;
    op_matmul_dx(d, f32(memory + 8, T2(1, 2)), f32(memory + 16, T2(1, 2)), w, false);
}

/* dies runs a call in a process of its own and returns its exit status; what it says
 * goes to `said`. */
static int dies(void (*call)(struct dev *), char *said, size_t size)
{
    int end[2], status;
    ck_assert_int_eq(pipe(end), 0);
    fflush(stdout);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        call(open_cpu());
        _exit(0);
    }
    close(end[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n + 1 < size; n += (size_t)got)
        got = read(end[0], said + n, size - 1 - n);
    said[n] = 0;
    close(end[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(wrong_calls)
{
    static const struct {
        void (*call)(struct dev *);
        const char *says;
    } wrong[] = {
        {wrong_shape, "op_add: y and b have one shape, not so with f32 [2, 3] and f32 "
                      "[3, 2]"},
        {wrong_type, "op_add: y and a are activations, not so with f32 [2] and bf16 "
                     "[2]"},
        {overlap, "op_add: y is a or apart from it"},
        {no_data, "op_fill: x holds reals, not so with f32 [8] without data"},
        {odd_width, "D is even"},
        {wrong_heads, "n_kv divides n_h, not so with f32 [1, 3, 2] and f32 [1, 2, 2]"},
        {wrong_tap, "op_tap: tap k"},
        {panels_as_rows, "w is a weight in rows, not so with f32 [2, 2] panels"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char said[1024];
        ck_assert_int_eq(dies(wrong[i].call, said, sizeof said), 70);
        ck_assert_msg(strstr(said, wrong[i].says) != NULL, "\"%s\" lacks \"%s\"", said,
                      wrong[i].says);
    }
}
END_TEST

/* ---- exp, log, sine, cosine ---- */

/* off is |got - want| in units of the last place of want as a float. */
static double off(float got, double want)
{
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

START_TEST(exponential)
{
    double worst = 0;
    for (int64_t i = 0; i <= 2000000; i++) {
        float x = (float)(-104 + 192.7 * (double)i / 2000000);
        double e = off(mathf_exp32(x), exp((double)x));
        worst = e > worst ? e : worst;
    }
    printf("exp: %.3f units\n", worst);
    ck_assert_double_lt(worst, 1.1);
    ck_assert(mathf_exp32(0) == 1 && mathf_exp32(-INFINITY) == 0);
    ck_assert(mathf_exp32(-200) == 0 && isinf(mathf_exp32(89)));
    ck_assert(isinf(mathf_exp32(INFINITY)) && isnan(mathf_exp32(NAN)));
}
END_TEST

START_TEST(logarithm)
{
    for (int64_t i = 1; i <= 1000000; i++) {
        double x = ldexp((double)i * 1.000001, (int)(i % 100) - 60);
        ck_assert_double_lt(fabs(mathf_log(x) - log(x)), 1e-15 + 4e-16 * fabs(log(x)));
    }
}
END_TEST

START_TEST(circle)
{
    struct rng r = rng_new(1);
    double worst = 0;
    for (int64_t i = 0; i < 1000000; i++) {
        float angle = (float)(ldexp(rng_real(&r) - 0.5, (int)(i % 24))), s, c;
        mathf_sincos(angle, &s, &c);
        double a = fabs((double)s - sin((double)angle));
        double b = fabs((double)c - cos((double)angle));
        worst = a > worst ? a : worst;
        worst = b > worst ? b : worst;
    }
    printf("sine and cosine: off by %.3g\n", worst);
    ck_assert_double_lt(worst, 3.1e-8); // half a unit below 1
}
END_TEST

KIT_MAIN("op_rules", rows_alone, bad_ids, bad_numbers, first_of_equals,
         first_of_equal_logits, failures_stick, wrong_calls, exponential, logarithm,
         circle)
