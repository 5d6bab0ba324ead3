/* SPDX-License-Identifier: MIT */
/* bench_op.c - times every case of tests/cases.h marked SPEED on the CPU.
 *
 *   OP=attn_span THREADS=4 bench_op      both optional: one op alone, threads
 *
 * A line a case, fields apart by spaces: op, dimensions, median milliseconds, the 10th
 * and 90th percentile, GB/s of the tensors read and written once, GFLOP/s where
 * products dominate.  attn_block_bwd includes the forward pass that it needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kit.h"
#include "kit_op.h"
#include "par.h"

enum { RUNS = 50 };
static const double budget = 1.0; // seconds a case

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* seen counts the pairs of query row and key. */
static double seen(struct call *k)
{
    const struct call_arg *lo = call_find(k, "lo"), *hi = call_find(k, "hi");
    double pairs = 0;
    for (int64_t i = 0; lo && i < lo->count; i++)
        pairs += hi->host[i] - lo->host[i] + (double)k->dim['B'];
    return pairs;
}

static double flops(struct call *k)
{
    const char *op = k->c->op;
    if (strncmp(op, "matmul", 6) == 0)
        return 2.0 * (double)(k->dim['M'] * k->dim['N'] * k->dim['K']);
    if (strcmp(op, "head_loss") == 0)
        return 4.0 * (double)(k->dim['R'] * k->dim['H'] * k->dim['V']);
    double product = 2 * seen(k) * (double)(k->dim['n'] * k->dim['D']);
    return product * (strstr(op, "bwd") ? 7 : 2); // forward 2, backward 5
}

static double bytes(const struct call *k)
{
    double sum = 0;
    for (int i = 0; i < k->n; i++)
        if (k->arg[i].t.rank)
            sum += (double)tensor_bytes(&k->arg[i].t) * (k->arg[i].role == '+' ? 2 : 1);
    return sum;
}

static void measure(struct call *k)
{
    double took[RUNS], begun = now();
    int n = 0;
    call_run(k); // warm
    while (n < RUNS && (n < 3 || now() - begun < budget)) {
        double t = now();
        call_run(k);
        took[n++] = now() - t;
    }
    qsort(took, (size_t)n, sizeof took[0], ascending);
    double t = took[n / 2];
    printf("%-15s %-36s %9.3f %9.3f %9.3f %7.1f %7.1f\n", k->c->op, k->c->dims, 1e3 * t,
           1e3 * took[n / 10], 1e3 * took[n - 1 - n / 10], 1e-9 * bytes(k) / t,
           1e-9 * flops(k) / t);
    fflush(stdout);
}

/* The kit's calls are made for Check, so this is one test that always passes. */
START_TEST(speed)
{
    const char *threads = getenv("THREADS");
    struct par *par;
    struct dev *d;
    kit_ok(par_open(&par, threads ? (int)strtol(threads, NULL, 10) : 0));
    kit_ok(dev_open(&d, "cpu", par));
    printf("# %d threads\n# op dims ms p10 p90 GB/s GFLOP/s\n", par_threads(par));
    for (int i = 0; i < OP_CASES; i++) {
        struct call k;
        if (!(op_cases[i].use & SPEED) || !call_wanted(&op_cases[i]))
            continue;
        call_open(&k, d, &op_cases[i]);
        measure(&k);
        call_close(&k);
    }
    dev_close(d);
    par_close(par);
}
END_TEST

KIT_MAIN("bench_op", speed)
