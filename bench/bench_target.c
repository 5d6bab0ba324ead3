/* SPDX-License-Identifier: MIT */
/* bench_target.c - the target's forward pass, as extraction runs it.
 *
 *   bench_target [DEVICE [RUNS]]      cpu (small shapes) or cuda; medians of RUNS (5)
 *
 * Weights are drawn on the device in the real shapes, so no checkpoint is needed:
 * Qwen3-8B and Qwen3.6-27B, up to the last of the five layers that published drafters
 * tap.  A pass is a row of 8192 tokens, one document or sixteen, and keeps the five
 * states.  A line each: milliseconds, tokens/s, TFLOP/s of matrix products over the
 * whole time; then where the time goes, operation by operation (kit_clock.h), and what
 * share of the ceilings of the same run products and attention reach: the fastest large
 * product, mma.sync alone.  Last, rows go through the pump of draft-extract into a sink
 * of 1, 2 and 4 GB/s (8, 16 and 32 MB/s on the CPU): tokens/s, and for what share of
 * the time the target waited. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "extract/pump.h"
#include "hash.h"
#include "kit_clock.h"
#include "kit_time.h"
#include "mem.h"
#include "model/target.h"
#include "op.h"
#include "par.h"
#include "rng.h"
#include "span.h"

enum { RUNS_MAX = 99, WARM = 2 };

static int runs = 5;

/* Three DeltaNet layers to one of attention. */
static struct target_config hybrid(struct target_config c)
{
    snprintf(c.type, sizeof c.type, "qwen3_5_text");
    c.hybrid = true;
    for (int64_t l = 0; l < c.layers; l++)
        c.linear[l] = l % 4 != 3;
    return c;
}

static struct target_config dense(struct target_config c)
{
    snprintf(c.type, sizeof c.type, "qwen3");
    return c;
}

struct shape {
    const char *name;
    struct target_config config;
    int64_t length;
};

static const struct target_config qwen3_8b = {.hidden = 4096,
                                              .inter = 12288,
                                              .layers = 36,
                                              .heads = 32,
                                              .kv_heads = 8,
                                              .head_dim = 128,
                                              .vocab = 151936,
                                              .max_positions = 40960,
                                              .eps = 1e-6,
                                              .rope_theta = 1e6,
                                              .rotary = 128,
                                              .head_norm = true};
static const struct target_config qwen36_27b = {.hidden = 5120,
                                                .inter = 17408,
                                                .layers = 64,
                                                .heads = 24,
                                                .kv_heads = 4,
                                                .head_dim = 256,
                                                .vocab = 248320,
                                                .max_positions = 262144,
                                                .eps = 1e-6,
                                                .rope_theta = 1e7,
                                                .rotary = 64,
                                                .head_norm = true,
                                                .delta = {16, 48, 128, 128}};
static const struct target_config small = {.hidden = 128,
                                           .inter = 256,
                                           .layers = 8,
                                           .heads = 4,
                                           .kv_heads = 2,
                                           .head_dim = 64,
                                           .vocab = 1000,
                                           .max_positions = 4096,
                                           .eps = 1e-6,
                                           .rope_theta = 1e6,
                                           .rotary = 64,
                                           .head_norm = true,
                                           .delta = {2, 4, 32, 32}};

/* ---- a pass ---- */

struct bench {
    struct dev *dev;
    struct target *target;
    struct target_config config;
    struct taps taps;
    struct arena work, out;
    struct target_pass pass;
    int32_t *text; /* owns ids, pos, lo, hi, doc */
    double pairs;  /* of query and key that are seen */
};

static int text_new(struct bench *b, int64_t n, int64_t docs)
{
    struct rng r = rng_new(3);
    int32_t *at = b->text = mem_alloc(5 * (size_t)n * sizeof *at);
    if (!at)
        return E_MEMORY;
    int32_t *ids = at, *pos = at + n, *lo = at + 2 * n, *hi = at + 3 * n;
    int32_t *doc = at + 4 * n;
    for (int64_t i = 0; i < n; i++) {
        ids[i] = (int32_t)rng_below(&r, (uint64_t)b->config.vocab);
        doc[i] = (int32_t)(i * docs / n);
    }
    span_docs(pos, lo, hi, doc, n);
    b->pairs = 0;
    for (int64_t i = 0; i < n; i++)
        b->pairs += hi[i] - lo[i];
    b->pass =
        (struct target_pass){.rows = n, .ids = ids, .pos = pos, .lo = lo, .hi = hi};
    return 0;
}

static int row_open(struct bench *b, int64_t n, int64_t docs)
{
    int64_t wide = b->taps.n * b->config.hidden;
    TRY(text_new(b, n, docs));
    TRY(arena_open(&b->work, b->dev, "pass", target_bytes(b->target, n, 0)));
    TRY(arena_open(&b->out, b->dev, "taps", arena_bytes(DT_BF16, T2(n, wide))));
    b->pass.tap = b->taps.layer;
    b->pass.taps = b->taps.n;
    b->pass.aux = arena_tensor(&b->out, DT_BF16, T2(n, wide));
    return 0;
}

static void row_close(struct bench *b)
{
    arena_close(&b->work);
    arena_close(&b->out);
    mem_free(b->text);
    b->text = NULL;
}

/* ---- work ---- */

/* products counts the elements of the matrices that a token is multiplied with. */
static double products(const struct target_config *c, int64_t layers)
{
    double h = (double)c->hidden, sum = 0;
    double q = (double)(c->heads * c->head_dim),
           kv = (double)(c->kv_heads * c->head_dim);
    double keys = (double)(c->delta.k_heads * c->delta.k_dim);
    double values = (double)(c->delta.v_heads * c->delta.v_dim);
    for (int64_t l = 0; l < layers; l++) {
        sum += 3 * h * (double)c->inter;
        if (c->linear[l])
            sum += h * (2 * keys + 3 * values + 2 * (double)c->delta.v_heads);
        else
            sum += h * (q * (c->hybrid ? 3 : 2) + 2 * kv);
    }
    return sum;
}

static double attention_flop(const struct bench *b, int64_t layers)
{
    const struct target_config *c = &b->config;
    double full = 0;
    for (int64_t l = 0; l < layers; l++)
        full += !c->linear[l];
    return 4 * b->pairs * full * (double)(c->heads * c->head_dim);
}

/* ---- measuring ---- */

static struct {
    double product, mma; /* operations a second; 0: not known */
} ceiling;

static int find_ceilings(struct dev *d)
{
    enum { M = 8192, N = 17408, K = 5120, TOGETHER = 8, TIMES = 5 };
    struct arena a;
    TRY(arena_open(&a, d, "ceiling", (size_t)2 << 30));
    struct tensor x = arena_tensor(&a, DT_BF16, T2(M, K));
    struct tensor w = arena_tensor(&a, DT_BF16, T2(N, K));
    struct tensor y = arena_tensor(&a, DT_BF16, T2(M, N));
    op_normal(d, x, 1, 1);
    op_normal(d, w, 2, 1);
    for (int i = -1; i < TIMES; i++) {
        double begun = kit_now();
        for (int k = 0; k < TOGETHER; k++)
            op_matmul(d, y, x, w, false);
        int rc = dev_sync(d);
        if (rc < 0) {
            arena_close(&a);
            return rc;
        }
        double rate = 2.0 * M * N * K * TOGETHER / (kit_now() - begun);
        ceiling.product = i >= 0 ? fmax(ceiling.product, rate) : 0;
    }
    arena_close(&a);
    ceiling.mma = kit_mma_peak(d);
    printf("# ceilings: products %.0f, mma.sync %.0f TFLOP/s\n",
           1e-12 * ceiling.product, 1e-12 * ceiling.mma);
    return 0;
}

static int median_ms(struct bench *b, double *ms)
{
    double took[RUNS_MAX];
    for (int i = -WARM; i < runs; i++) {
        double begun = kit_now();
        TRY(target_forward(b->target, &b->pass, &b->work));
        if (i >= 0)
            took[i] = (kit_now() - begun) * 1e3;
    }
    *ms = kit_median(took, runs);
    return 0;
}

static void share(const char *what, double seconds, double sum, double flop,
                  double most)
{
    printf("#   %-16s %5.1f %%", what, 100 * seconds / sum);
    if (flop > 0)
        printf("  %7.1f TFLOP/s", 1e-12 * flop / seconds);
    if (flop > 0 && most > 0)
        printf(", %.0f %% of the ceiling", 100 * flop / seconds / most);
    printf("\n");
}

static int shares(struct bench *b, double flop, double attention)
{
    struct kit_clock c;
    kit_clock_on(b->dev, &c);
    int rc = target_forward(b->target, &b->pass, &b->work);
    kit_clock_off(b->dev);
    TRY(rc);
    double sum = kit_clock_sum(&c);
    share("matrix products", c.seconds[CLOCK_PRODUCT], sum, flop, ceiling.product);
    share("attention", c.seconds[CLOCK_ATTENTION], sum, attention, ceiling.mma);
    share("Gated DeltaNet", c.seconds[CLOCK_DELTA], sum, 0, 0);
    share("elementwise", c.seconds[CLOCK_ELEMENT], sum, 0, 0);
    share("copies", c.seconds[CLOCK_COPY], sum, 0, 0);
    return 0;
}

/* ---- into a sink ---- */

enum { SINK_ROWS = 8 };

/* What writing costs: a copy into the shard, its checksum, and `rate` bytes a second.
 */
struct sink {
    const struct bench *bench;
    struct hidden_form form;
    int64_t given;
    char *shard;
    size_t bytes; /* of a row */
    double rate;
    uint64_t sum;
};

static int give(void *ctx, struct hidden_row *row)
{
    struct sink *s = ctx;
    size_t n = (size_t)s->form.length;
    if (s->given == SINK_ROWS)
        return 0;
    row->index = s->given++;
    memcpy(row->ids, s->bench->pass.ids, n * sizeof *row->ids);
    memset(row->doc, 0, n * sizeof *row->doc);
    return 1;
}

static int take(void *ctx, const struct hidden_row *row)
{
    struct sink *s = ctx;
    double begun = kit_now();
    memcpy(s->shard, row->aux, s->bytes);
    s->sum ^= hash_bytes(s->shard, s->bytes);
    double left = begun + (double)s->bytes / s->rate - kit_now();
    struct timespec t = {(time_t)left, (long)(1e9 * (left - floor(left)))};
    if (left > 0)
        nanosleep(&t, NULL);
    return 0;
}

static int into_sink(struct bench *b, double rate)
{
    struct fit fit;
    struct pump pump;
    struct sink s = {.bench = b, .rate = rate};
    const struct pump_ends ends = {give, take, &s};
    s.form = (struct hidden_form){
        .length = b->pass.rows, .width = b->config.hidden, .taps = b->taps.n};
    s.bytes = (size_t)(s.form.length * s.form.width * s.form.taps) * 2;
    const struct fit_ask ask = {
        .target = b->target, .dev = b->dev, .form = s.form, .rows = FIT_ROWS};
    TRY(fit_make(&fit, &ask));
    TRY(pump_open(&pump, b->target, b->dev, &b->taps, &s.form, &fit));
    s.shard = mem_alloc(s.bytes);
    int rc = s.shard ? pump_run(&pump, &ends) : E_MEMORY;
    double took = pump.left - pump.begun;
    if (rc == 0)
        printf("#   sink of %g MB/s: %.0f tokens/s, waited %.1f %% of the time\n",
               1e-6 * rate, SINK_ROWS * (double)s.form.length / took,
               100 * pump_waiting(&pump));
    mem_free(s.shard);
    pump_close(&pump);
    return rc;
}

static int into_sinks(struct bench *b, int64_t length, double unit)
{
    int rc = text_new(b, length, 1);
    for (int i = 1; i <= 4 && rc == 0; i *= 2)
        rc = into_sink(b, i * unit);
    row_close(b);
    return rc;
}

/* ---- a model ---- */

static int measure_row(struct bench *b, const struct shape *s, int64_t docs)
{
    int64_t layers = b->taps.layer[b->taps.n - 1] + 1;
    double ms, n = (double)s->length;
    int rc;
    TRY_GOTO(rc, row_open(b, s->length, docs), out);
    TRY_GOTO(rc, median_ms(b, &ms), out);
    double flop = 2 * n * products(&b->config, layers);
    printf("%s\t%lld\t%lld\t%lld\t%.2f\t%.0f\t%.1f\n", s->name, (long long)docs,
           (long long)(s->length / docs), (long long)layers, ms, 1e3 * n / ms,
           1e-9 * flop / ms);
    rc = shares(b, flop, attention_flop(b, layers));
out:
    row_close(b);
    return rc;
}

static int measure(struct dev *d, const struct shape *s, double unit)
{
    struct bench b = {.dev = d, .config = s->config};
    int rc;
    TRY(taps_parse(&b.taps, s->config.layers < 24 ? "1,2,3,4,5" : "",
                   s->config.layers));
    TRY(target_random(&b.target, d, &s->config, b.taps.layer[b.taps.n - 1] + 1, 1));
    TRY_GOTO(rc, measure_row(&b, s, 1), out);
    TRY_GOTO(rc, measure_row(&b, s, 16), out);
    rc = into_sinks(&b, s->length, unit);
out:
    target_close(b.target);
    return rc;
}

static const char *device = "cpu";

static int bench(struct dev *d)
{
    const bool gpu = strncmp(device, "cuda", 4) == 0;
    const struct shape large[] = {{"qwen3-8b", dense(qwen3_8b), 8192},
                                  {"qwen3.6-27b", hybrid(qwen36_27b), 8192}};
    const struct shape tiny[] = {{"dense-small", dense(small), 256},
                                 {"hybrid-small", hybrid(small), 256}};
    if (gpu)
        TRY(find_ceilings(d));
    printf("model\tdocuments\ttokens\tlayers\tms\ttokens_s\ttflop_s\n");
    for (int i = 0; i < 2; i++)
        TRY(measure(d, gpu ? &large[i] : &tiny[i], gpu ? 1e9 : 8e6));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        device = argv[1];
    if (argc > 2)
        runs = (int)strtol(argv[2], NULL, 10);
    if (runs < 1 || runs > RUNS_MAX)
        return 64;
    return kit_bench("bench_target", device, 0, bench);
}
