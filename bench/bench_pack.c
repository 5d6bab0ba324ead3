/* SPDX-License-Identifier: MIT */
/* bench_pack.c - what draft-pack does behind its readers, in nanoseconds a token.
 *
 *     DIR=/dev/shm/bench TOKENS=200000000 bench_pack      both optional
 *
 * Documents lie ready in memory; they go through counting, window, bins, rows and
 * checksums into a folder on tmpfs, on one thread.  A line a case: mean length, tokens,
 * rows, nanoseconds of processor time a token, of them in the system; what this would
 * be in int64 ids and masks. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "err.h"
#include "file.h"
#include "kit_docs.h"
#include "tools/pack/flow.h"

enum { ROW = 8192, BATCH = 1 << 20 };

static void must(int rc)
{
    if (rc < 0) {
        fprintf(stderr, "bench_pack: %s\n", err_text());
        exit(1);
    }
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

static double spent(double *kernel)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    *kernel = seconds(&u.ru_stime);
    return seconds(&u.ru_utime) + *kernel;
}

/* Text for all documents; each takes a stretch of it. */
static void fill(struct documents *d)
{
    enum { TEXT = 4 * BATCH };
    struct rng r = rng_new(1);
    int32_t *ids = (int32_t *)(void *)buf_room(&d->ids, TEXT * sizeof *ids);
    uint8_t *mask = (uint8_t *)buf_room(&d->mask, TEXT);
    if (!ids || !mask)
        must(E_MEMORY);
    kit_docs_fill(&r, ids, mask, TEXT);
}

/* A batch of about BATCH tokens. */
static void draw(struct documents *d, struct rng *r, double mean)
{
    d->n = 0;
    for (int64_t tokens = 0; tokens < BATCH; tokens += d->at[d->n - 1].n) {
        must(document_add(d, d->n, kit_docs_length(r, mean)));
        d->at[d->n - 1].at = (int64_t)rng_below(r, 3 * BATCH);
    }
}

static void run(const char *dir, double mean, int64_t tokens)
{
    struct documents d = {0};
    struct ledger l = {0};
    struct flow f = {.cut = {CUT_SPLIT, ROW, 16, 0, 0, 0, 0}, .ledger = &l};
    struct emit_of of = {"train", "", "0", ROW, 0, 1};
    double before, after;
    struct rng r = rng_new(2);
    fill(&d);
    f.min_supervised = 2;
    f.train_side.ledger = &l.train;
    must(emit_open(&f.train_side.emit, dir, &of));
    window_open(&f.train_side.window, &f.train_side.emit, ROW, 16384, 0, 0);
    double begun = spent(&before);
    while (l.train.document_tokens < tokens) {
        draw(&d, &r, mean);
        must(flow_take(&f, &d, 0));
    }
    must(window_end(&f.train_side.window));
    must(emit_finish(&f.train_side.emit, "0", "[]"));
    double took = spent(&after) - begun, n = (double)l.train.tokens;
    printf("mean %5.0f  tokens %10.0f  rows %7lld  density %.4f %%  %6.2f ns a token, "
           "%5.2f system  %7.0f MB/s\n",
           mean, n, (long long)f.train_side.emit.rows,
           100 * n / (double)(f.train_side.emit.rows * ROW), took / n * 1e9,
           (after - before) / n * 1e9, n * 16 / took / 1e6);
    window_close(&f.train_side.window);
    documents_drop(&d);
    must(file_remove_tree(dir));
}

int main(void)
{
    const char *dir = getenv("DIR"), *tokens = getenv("TOKENS");
    int64_t n = tokens ? strtoll(tokens, NULL, 10) : 200000000;
    dir = dir ? dir : "/dev/shm/drafthorse-bench";
    run(dir, 1000, n);
    run(dir, 4000, n);
    return 0;
}
