/* SPDX-License-Identifier: MIT */
/* kit_time.c - see kit_time.h. */
#include "kit_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda/cuda.h"
#include "err.h"
#include "par.h"

double kit_now(void)
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

void kit_sort(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
}

double kit_median(double *v, int n)
{
    kit_sort(v, n);
    return v[n / 2];
}

double kit_mma_peak(struct dev *d)
{
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double begun = kit_now(), flop = cuda_mma_peak(d, 20000);
        if (dev_sync(d) < 0)
            return NAN;
        best = fmax(best, flop / (kit_now() - begun));
    }
    return best;
}

int kit_bench(const char *name, const char *device, int threads,
              int (*run)(struct dev *d))
{
    struct par *par = NULL;
    struct dev *d = NULL;
    int rc;
    TRY_GOTO(rc, par_open(&par, threads), out);
    TRY_GOTO(rc, dev_open(&d, device, par), out);
    setvbuf(stdout, NULL, _IOLBF, 0);
    rc = run(d);
out:
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", name, err_text());
    dev_close(d);
    par_close(par);
    return -rc;
}
