/* SPDX-License-Identifier: MIT */
/* bench_binpack.c - documents packed a second, and how full their rows are.
 *
 * A line a case: mean length, documents in a window, rows, density, million documents
 * a second (the best of RUNS: the machine's noise only ever adds).  One thread, lengths
 * as tests/kit_docs.h draws them, longer documents split at the row's length.
 * bench/binpack_peer.sh gives the same lengths to seqpacker. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "err.h"
#include "kit_docs.h"
#include "mem.h"
#include "tools/pack/binpack.h"

enum { ROW = 8192, PIECES = 4 << 20, RUNS = 5 };

static struct {
    int32_t length[PIECES];
    int32_t bin[PIECES], space[PIECES];
} bench;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void draw(double mean)
{
    struct rng r = rng_new(1);
    for (int64_t n = 0; n < PIECES;) {
        int32_t left = kit_docs_length(&r, mean);
        for (; left > 0 && n < PIECES; left -= ROW)
            bench.length[n++] = left < ROW ? left : ROW;
    }
}

/* Packs everything, a window after another; the rows that this takes. */
static int64_t pack_all(int64_t window)
{
    int64_t rows = 0;
    for (int64_t at = 0; at < PIECES; at += window) {
        int32_t bins, n = (int32_t)(PIECES - at < window ? PIECES - at : window);
        int rc = binpack(bench.bin, bench.space, &bins, bench.length + at, n, ROW);
        if (rc < 0) {
            fprintf(stderr, "bench_binpack: %s\n", err_text());
            exit(1);
        }
        rows += bins;
    }
    return rows;
}

static void run(double mean, int64_t window)
{
    double best = 1e9;
    int64_t tokens = 0, rows = 0;
    draw(mean);
    for (int64_t i = 0; i < PIECES; i++)
        tokens += bench.length[i];
    for (int i = 0; i < RUNS; i++) {
        double begun = seconds();
        rows = pack_all(window);
        double took = seconds() - begun;
        best = took < best ? took : best;
    }
    printf("mean %5.0f  window %8lld  rows %8lld  density %8.4f %%  %7.1f M/s\n", mean,
           (long long)window, (long long)rows,
           100 * (double)tokens / ((double)rows * ROW), PIECES / best / 1e6);
}

int main(void)
{
    static const int64_t window[] = {1024, 16384, PIECES};
    for (int i = 0; i < 3; i++)
        run(1000, window[i]);
    for (int i = 0; i < 3; i++)
        run(4000, window[i]);
    return 0;
}
