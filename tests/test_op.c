/* SPDX-License-Identifier: MIT */
/* test_op.c - every case of cases.h: values against the naive reference, the same bits
 * on any number of threads and from every compiler, in place and out of place.
 *
 * What is compared is every tensor of the call, so an op that writes into an input or
 * beside its output is caught too. */
#include "kit_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "kit.h"
#include "mem.h"
#include "par.h"

static struct dev *open_cpu(struct par **par, int threads)
{
    struct dev *d;
    kit_ok(par_open(par, threads));
    kit_ok(dev_open(&d, "cpu", *par));
    return d;
}

static void close_cpu(struct dev *d, struct par *par)
{
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
    par_close(par);
}

/* ---- values ---- */

static double bound_of(const struct call *k, const struct call_arg *a)
{
    double top = 0;
    if (a->role == ':' || a->t.type == DT_I32)
        return 0;
    for (int64_t i = 0; i < a->count; i++)
        top = fabs(a->want[i]) > top ? fabs(a->want[i]) : top;
    if (a->t.type == DT_BF16 && strcmp(k->c->op, "adamw") == 0)
        return top / 256; // the master may fall on the other side of a rounding edge
    return k->c->tolerance * top;
}

static void check_values(struct call *k)
{
    for (int i = 0; i < k->n; i++) {
        struct call_arg *a = &k->arg[i];
        if (!a->t.rank || a->role == '*')
            continue;
        double *got = call_get(k, a);
        char what[256];
        snprintf(what, sizeof what, "%s %s: %s", k->c->op, k->c->dims, a->name);
        kit_close_f64(what, got, a->want, a->count, bound_of(k, a), 0);
        mem_free(got);
    }
}

START_TEST(values)
{
    struct par *par;
    struct dev *d = open_cpu(&par, 2);
    for (int i = 0; i < OP_CASES; i++) {
        struct call k;
        if (op_cases[i].use & SPEED || !call_wanted(&op_cases[i]))
            continue; // the reference of a large one would take a minute
        call_open(&k, d, &op_cases[i]);
        call_run(&k);
        ref_run(&k);
        check_values(&k);
        call_close(&k);
    }
    close_cpu(d, par);
}
END_TEST

/* ---- bits ---- */

/* digest is over the memory of all tensors. */
static uint64_t digest(const struct call *k)
{
    uint64_t sum[CALL_ARGS] = {0};
    for (int i = 0; i < k->n; i++)
        if (k->arg[i].t.rank)
            sum[i] = hash_bytes(k->arg[i].t.data, tensor_bytes(&k->arg[i].t));
    return hash_bytes(sum, sizeof sum);
}

static uint64_t run_on(const struct op_case *c, int threads)
{
    struct par *par;
    struct dev *d = open_cpu(&par, threads);
    struct call k;
    call_open(&k, d, c);
    call_run(&k);
    uint64_t sum = digest(&k);
    call_close(&k);
    close_cpu(d, par);
    return sum;
}

/* The same bits on any number of threads and from every compiler: golden/op_bits.txt
 * has a digest per case, made by one of them.  A change of arithmetic rewrites it: run
 * with BITS=write in the environment. */
START_TEST(bits)
{
    static const char *const golden = "tests/golden/op_bits.txt";
    static char now[OP_CASES * 128];
    size_t n = 0, size;
    for (int i = 0; i < OP_CASES; i++) {
        const struct op_case *c = &op_cases[i];
        if (!call_wanted(c))
            continue;
        uint64_t one = run_on(c, 1);
        ck_assert_msg(one == run_on(c, 3),
                      "%s %s: bits depend on the number of threads", c->op, c->dims);
        n += (size_t)snprintf(now + n, sizeof now - n, "%016llx %s %s\n",
                              (unsigned long long)one, c->op, c->dims);
    }
    if (getenv("BITS"))
        kit_write(golden, now, n);
    if (getenv("OP"))
        return;
    char *want = kit_read(golden, &size);
    const char *a = now, *b = want;
    while (*a) {
        size_t line = strcspn(a, "\n") + 1;
        ck_assert_msg(strncmp(a, b, line) == 0, "bits changed, now %.*s", (int)line, a);
        a += line;
        b += line;
    }
    ck_assert_uint_eq(n, size);
    mem_free(want);
}
END_TEST

/* ---- in place ---- */

/* The aliases that op.h allows: op, output, input that may be the same memory. */
static const struct {
    const char *op, *out, *in;
} alias[] = {
    {"add", "y", "a"},         {"add", "y", "b"},
    {"rmsnorm", "y", "x"},     {"rmsnorm_bwd", "dx", "dy"},
    {"norm_rope", "y", "x"},   {"norm_rope_bwd", "dx", "dy"},
    {"swiglu", "y", "g"},      {"swiglu", "y", "u"},
    {"swiglu_bwd", "dg", "g"}, {"swiglu_bwd", "du", "u"},
    {"adamw", "w", "master"},  {"gate", "y", "x"},
    {"norm_gate", "y", "x"},
};

static void run_in_place(struct dev *d, const struct op_case *c, const char *out,
                         const char *in)
{
    struct call k;
    call_open(&k, d, c);
    struct call_arg *a = call_find(&k, out), *b = call_find(&k, in);
    if (a->t.type == b->t.type) {
        call_run(&k);
        double *apart = call_get(&k, a);
        call_reset(&k);
        struct tensor own = a->t;
        a->t = b->t;
        call_run(&k);
        double *same = call_get(&k, a);
        kit_same(c->op, same, apart, (size_t)a->count * sizeof *same);
        mem_free(apart);
        mem_free(same);
        a->t = own;
    }
    call_close(&k);
}

START_TEST(in_place)
{
    struct par *par;
    struct dev *d = open_cpu(&par, 1);
    for (size_t i = 0; i < sizeof alias / sizeof alias[0]; i++)
        for (int j = 0; j < OP_CASES; j++)
            if (strcmp(op_cases[j].op, alias[i].op) == 0 && call_wanted(&op_cases[j]))
                run_in_place(d, &op_cases[j], alias[i].out, alias[i].in);
    close_cpu(d, par);
}
END_TEST

KIT_MAIN("op", values, bits, in_place)
