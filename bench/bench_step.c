/* SPDX-License-Identifier: MIT */
/* bench_step.c - a training step of the 1704.0M drafter on a GPU: forward and backward.
 *
 *   bench_step [RUNS]        medians of RUNS (9), after two that are not counted
 *
 * The drafter of Qwen3.6-27B with four taps, five full layers, blocks of 16, one
 * document a row; random weights, tokens and hidden states.  A step is what training
 * does with a row whose hidden states are on the card: spans up, gradients set to zero,
 * forward, loss, backward, loss down.  The optimizer's update is not in the time, its
 * memory not in `bytes`.  TFLOP/s are of matrix products that are needed (trial_flop).
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "kit_time.h"
#include "train/trial.h"

enum { RUNS_MAX = 99, WARM = 2 };

static const struct {
    int64_t length, anchors;
} shapes[] = {{8192, 512}, {4096, 128}};

static int runs = 9;
static struct log silent;

static int median_ms(struct trial *t, int (*f)(struct trial *), double *ms)
{
    double took[RUNS_MAX];
    for (int i = -WARM; i < runs; i++) {
        double begun = kit_now();
        TRY(f(t));
        TRY(dev_sync(t->dev));
        if (i >= 0)
            took[i] = (kit_now() - begun) * 1e3;
    }
    *ms = kit_median(took, runs);
    return 0;
}

static int measure(struct dev *d, int64_t length, int64_t anchors)
{
    const struct trial_shape s = {trial_published(4), length, anchors, 0};
    struct trial t;
    double forward, step, norm;
    TRY(trial_open(&t, d, &s, &silent));
    size_t bytes = d->held - t.room.optim.state.size;
    int rc = median_ms(&t, trial_forward, &forward);
    if (rc == 0)
        rc = median_ms(&t, trial_step, &step);
    if (rc == 0)
        rc = trial_norm(&t, &norm);
    if (rc == 0)
        printf("%.1f\t%lld\t%lld\t%.2f\t%.2f\t%.0f\t%.0f\t%zu\t%.2f\t%zu\t%.4f\t%.4g\n",
               1e-6 * (double)t.room.plan.trained, (long long)length,
               (long long)anchors, forward, step, 1e3 * (double)length / step,
               1e-9 * trial_flop(&t) / step, bytes, (double)bytes / 0x1p30,
               t.room.optim.state.size, t.result.loss / t.result.weight, norm);
    trial_close(&t);
    return rc;
}

static int bench(struct dev *d)
{
    printf(
        "million\tlength\tanchors\tforward_ms\tstep_ms\ttokens_s\ttflop_s\tbytes\tgib\t"
        "optimizer_bytes\tloss\tnorm\n");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        TRY(measure(d, shapes[i].length, shapes[i].anchors));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        runs = (int)strtol(argv[1], NULL, 10);
    if (runs < 1 || runs > RUNS_MAX)
        return 64;
    return kit_bench("bench_step", "cuda", 0, bench);
}
