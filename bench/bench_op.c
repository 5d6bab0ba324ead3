/* SPDX-License-Identifier: MIT */
/* bench_op.c - how fast every operation is.
 *
 *   bench_op [cuda]        on the CPU the cases of cases.h marked SPEED, on a GPU the
 *                          shapes of a training step (shapes.h)
 *   OP=attn_span THREADS=4 bench_op        both optional: one op alone, threads
 *
 * A line a case, fields apart by tabs: op, dimensions, median milliseconds, the 10th
 * and 90th percentile, GB/s of the tensors read and written once, TFLOP/s where
 * products dominate, and on a GPU the share of a ceiling measured in the same run: the
 * fastest of three large products for products and the head, mma.sync alone for
 * attention, a sum of two tensors for all that only moves data.  Attention backward
 * computes seven products where five would do: its share counts seven, its TFLOP/s
 * five. attn_block_bwd includes the forward pass that it needs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "kit_op.h"
#include "kit_time.h"
#include "mem.h"
#include "par.h"
#include "shapes.h"

enum { RUNS = 50, TOGETHER = 8 };
static const double budget = 1.0; // seconds a case

/* What stands beside a case. */
static struct {
    double product, mma; // TFLOP/s; 0: not known
    double move;         // GB/s
} ceiling;

struct times {
    double median, p10, p90; // seconds
};

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* ---- work ---- */

/* read_ints gives the values of a whole-number tensor. */
static double *read_ints(struct call *k, const char *name)
{
    struct call_arg *a = call_find(k, name);
    return a ? call_get(k, a) : NULL;
}

/* seen counts the pairs of query row and key; slots of its own block count as all that
 * a row could see, half of them when causal. */
static double seen(struct call *k)
{
    double *lo = read_ints(k, "lo"), *hi = read_ints(k, "hi"), pairs = 0;
    double own = k->dim['c'] ? 0.5 * ((double)k->dim['B'] + 1) : (double)k->dim['B'];
    int64_t rows = k->dim['B'] ? k->dim['Q'] : k->dim['T'];
    for (int64_t i = 0; lo && i < rows; i++)
        pairs += hi[i] - lo[i] + own;
    mem_free(lo);
    mem_free(hi);
    return pairs;
}

/* flops: what has to be computed; *done what is. */
static double flops(struct call *k, double *done)
{
    const char *op = k->c->op;
    double n = 0;
    if (begins(op, "matmul"))
        n = 2.0 * (double)(k->dim['M'] * k->dim['N'] * k->dim['K']);
    if (strcmp(op, "head_loss") == 0)
        n = 4.0 * (double)(k->dim['R'] * k->dim['H'] * k->dim['V']);
    if (strcmp(op, "delta") == 0) // decay, two products with the state, one into it
        n = 7.0 * (double)(k->dim['T'] * k->dim['n'] * k->dim['D'] * k->dim['E']);
    *done = n;
    if (!begins(op, "attn"))
        return n;
    double product = 2 * seen(k) * (double)(k->dim['n'] * k->dim['D']);
    *done = product * (strstr(op, "bwd") ? 9 : 2); // forward 2, backward 7
    return product * (strstr(op, "bwd") ? 7 : 2);  // forward 2, backward 5
}

static double bytes(const struct call *k)
{
    double sum = 0;
    for (int i = 0; i < k->n; i++)
        if (k->arg[i].t.rank)
            sum += (double)tensor_bytes(&k->arg[i].t) * (k->arg[i].role == '+' ? 2 : 1);
    if (strcmp(k->c->op, "gather") == 0) // of the table only what is asked for
        sum = 2.0 * (double)tensor_bytes(&k->arg[0].t);
    return sum;
}

/* ---- time ---- */

static struct times measure(struct call *k, int together)
{
    double took[RUNS], begun = kit_now();
    int n = 0;
    call_run(k); // warm
    call_run(k);
    while (n < RUNS && (n < 5 || kit_now() - begun < budget)) {
        double t = kit_now();
        for (int i = 0; i < together; i++)
            k->run(k);
        kit_ok(dev_sync(k->d));
        took[n++] = (kit_now() - t) / together;
    }
    kit_sort(took, n);
    return (struct times){took[n / 2], took[n / 10], took[n - 1 - n / 10]};
}

static double share(const struct call *k, double t, double done, double moved)
{
    if (begins(k->c->op, "attn"))
        return 1e-12 * done / t / ceiling.mma;
    return done > 0 ? 1e-12 * done / t / ceiling.product
                    : 1e-9 * moved / t / ceiling.move;
}

static void report(struct call *k, int together)
{
    struct times t = measure(k, together);
    double done, flop = flops(k, &done), moved = bytes(k);
    printf("%s\t%s\t%.4f\t%.4f\t%.4f\t%.1f\t%.3f", k->c->op, k->c->dims, 1e3 * t.median,
           1e3 * t.p10, 1e3 * t.p90, 1e-9 * moved / t.median, 1e-12 * flop / t.median);
    if (ceiling.mma > 0)
        printf("\t%.1f", 100 * share(k, t.median, done, moved));
    printf("\n");
    fflush(stdout);
}

static const char *const columns = "op\tdims\tms\tp10\tp90\tGB/s\tTFLOP/s";

static void on_cpu(struct dev *d)
{
    printf("# %d threads\n%s\n", par_threads(d->par), columns);
    for (int i = 0; i < OP_CASES; i++) {
        struct call k;
        if (!(op_cases[i].use & SPEED) || !call_wanted(&op_cases[i]))
            continue;
        call_open(&k, d, &op_cases[i]);
        report(&k, 1);
        call_close(&k);
    }
}

/* ---- a GPU ---- */

static double best_of(struct dev *d, struct op_case c, double (*work)(struct call *))
{
    struct call k;
    call_open_large(&k, d, &c);
    double rate = work(&k) / measure(&k, TOGETHER).p10;
    call_close(&k);
    return rate;
}

static double work_flops(struct call *k)
{
    double done;
    return flops(k, &done);
}

static double work_bytes(struct call *k)
{
    return bytes(k);
}

static void find_ceilings(struct dev *d)
{
    static const char *const dims[] = {"M=8192 N=8192 K=8192", "M=8192 N=17408 K=5120",
                                       "M=8192 N=5120 K=17408"};
    for (int i = 0; i < 3; i++) {
        struct op_case c = {"matmul", dims[i], 0, 0};
        ceiling.product = fmax(ceiling.product, 1e-12 * best_of(d, c, work_flops));
    }
    struct op_case sum = {"add", "T=65536 H=5120", 0, 0};
    ceiling.move = 1e-9 * best_of(d, sum, work_bytes);
    ceiling.mma = 1e-12 * kit_mma_peak(d);
    printf("# ceilings: products %.0f, mma.sync %.0f TFLOP/s; memory %.0f GB/s\n",
           ceiling.product, ceiling.mma, ceiling.move);
}

static void on_gpu(struct dev *d)
{
    find_ceilings(d);
    printf("%s\t%%\n", columns);
    for (int i = 0; i < SHAPES; i++) {
        struct call k;
        if (!call_wanted(&shapes[i]))
            continue;
        d->act = strstr(shapes[i].dims, "f=1") ? DT_F32 : DT_BF16;
        call_open_large(&k, d, &shapes[i]);
        report(&k, TOGETHER);
        call_close(&k);
    }
}

static const char *device = "cpu";

/* The kit's calls are made for Check, so this is one test that always passes. */
START_TEST(speed)
{
    const char *threads = getenv("THREADS");
    struct par *par;
    struct dev *d;
    kit_ok(par_open(&par, threads ? (int)strtol(threads, NULL, 10) : 0));
    kit_ok(dev_open(&d, device, par));
    if (strcmp(device, "cpu") == 0)
        on_cpu(d);
    else
        on_gpu(d);
    dev_close(d);
    par_close(par);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        device = argv[1];
    setenv("CK_FORK", "no", 1); // a CUDA context does not survive a fork
    return kit_run(kit_suite("bench_op", (const TTest *const[]){speed, NULL}));
}
