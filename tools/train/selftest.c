/* SPDX-License-Identifier: MIT */
/* selftest.c - shapes, checks and their table. */
#include "selftest.h"

#include "err.h"
#include "mem.h"
#include "num.h"
#include "par.h"
#include "rng.h"
#include "tool.h"
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, OWN_LENGTH = 8192, OWN_SMALL = 512 };

/* What one run of the program has seen. */
struct selftest {
    struct dev *dev;
    struct log *log;
    bool small; /* shapes for a CPU */
    int wrong;
};

/* ---- the table ---- */

static void line(const char *name, const char *value, const char *note)
{
    printf("  %-22s %-26s %s\n", name, value, note);
    fflush(stdout);
}

/* check adds a line with a verdict; `must` says what the value must be. */
static void check(struct selftest *s, const char *name, const char *value,
                  const char *must, bool good)
{
    char note[160];
    snprintf(note, sizeof note, "%s%s", must, good ? ": ok" : ": WRONG");
    s->wrong += !good;
    line(name, value, note);
}

/* ---- one shape ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int median_ms(struct trial *t, int (*f)(struct trial *), double *ms)
{
    double took[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double begun = log_now();
        TRY(f(t));
        took[i] = 1e3 * (log_now() - begun);
    }
    qsort(took, RUNS, sizeof took[0], ascending);
    *ms = took[RUNS / 2];
    return 0;
}

static void say_size(struct selftest *s, const struct trial *t)
{
    const struct plan *p = &t->room.plan;
    const double million = 1e-6 * (double)p->trained;
    const int64_t taps = t->room.drafter.config.taps;
    const double known = s->small ? 0 : taps == 4 ? 1704.0 : taps == 5 ? 1730.2 : 0;
    char value[64], must[64], bytes[32];
    snprintf(value, sizeof value, "%.1f M", million);
    snprintf(must, sizeof must, "%.1f M", known);
    if (known > 0)
        check(s, "trainable parameters", value, must, fabs(million - known) < 0.05);
    else
        line("trainable parameters", value, "");
    snprintf(value, sizeof value, "%zu", p->bill.total);
    num_bytes(bytes, sizeof bytes, (double)t->room.optim.state.size);
    snprintf(must, sizeof must, "%.2f GB, %s of it the optimizer's",
             1e-9 * (double)p->bill.total, bytes);
    line("bytes planned", value, must);
    snprintf(value, sizeof value, "%zu", t->dev->held);
    check(s, "bytes held", value, "as planned", t->dev->held == p->bill.total);
}

/* say_free tells what became of the card's own count over the steps. */
static void say_free(struct selftest *s, const struct trial *t)
{
    const struct guard *g = &t->room.guard;
    char value[64];
    snprintf(value, sizeof value, "%zu", g->mark.available);
    if (g->mark.total == 0)
        line("free on the device", "not told", "");
    else if (g->mark.shared)
        line("free on the device", value, "not checked: another process is there");
    else
        check(s, "free on the device", value, "unmoved over three steps", g->left == 0);
}

static void say_speed(const struct trial *t, double forward, double step)
{
    char value[64], note[64];
    snprintf(value, sizeof value, "%.2f ms", forward);
    line("forward", value, "");
    snprintf(value, sizeof value, "%.2f ms", step - forward);
    snprintf(note, sizeof note, "median of %d; forward and backward %.2f ms", RUNS,
             step);
    line("backward", value, note);
    snprintf(value, sizeof value, "%.3g TFLOP/s", 1e-9 * trial_flop(t) / step);
    snprintf(note, sizeof note, "of products; %.4g tokens/s",
             1e3 * (double)t->row.context / step);
    line("speed", value, note);
}

static int say_numbers(struct selftest *s, struct trial *t)
{
    double chance, band, norm, again, loss = t->result.loss;
    char value[64], must[64];
    TRY(trial_norm(t, &norm));
    TRY(trial_step(t));
    TRY(trial_norm(t, &again));
    trial_chance(t, &chance, &band);
    double mean = loss / t->result.weight;
    snprintf(value, sizeof value, "%.4f", mean);
    snprintf(must, sizeof must, "%.3f within %.3f", chance, band);
    check(s, "loss", value, must, fabs(mean - chance) <= band);
    snprintf(value, sizeof value, "%.4g", norm);
    check(s, "gradient norm", value, "finite, not zero", isfinite(norm) && norm > 0);
    bool same = t->result.loss == loss && again == norm;
    check(s, "the same step again", same ? "equal" : "differs", "equal to the bit",
          same);
    return 0;
}

static int run_shape(struct selftest *s, const struct trial_shape *shape,
                     const char *original)
{
    const struct drafter_config *c = &shape->config;
    struct trial t;
    double forward, step;
    int rc;
    printf("S=%lld, %lld anchors of %lld slots, %lld layers, %d taps\n",
           (long long)shape->length, (long long)shape->anchors, (long long)c->block,
           (long long)c->layers, c->taps);
    TRY(trial_open(&t, s->dev, shape, s->log));
    say_size(s, &t);
    for (int i = 1; i <= 1 + GUARD_STEPS; i++) { // the first may meet new shapes
        TRY_GOTO(rc, trial_step(&t), out);
        TRY_GOTO(rc, guard_step(&t.room.guard, i, s->log), out);
    }
    say_free(s, &t);
    TRY_GOTO(rc, median_ms(&t, trial_forward, &forward), out);
    TRY_GOTO(rc, median_ms(&t, trial_step, &step), out);
    say_speed(&t, forward, step);
    rc = say_numbers(s, &t);
    if (*original)
        line("the original run", "", original);
out:
    trial_close(&t);
    return rc;
}

/* ---- the gradient against differences ---- */

enum { ROW_LENGTH = 80, ROW_ANCHORS = 8 };

/* direction fills u [n] with half the gradient's direction and half a random one: the
 * first makes the slope large, the second meets what the gradient may lack. */
static void direction(double *u, const float *g, int64_t n)
{
    struct rng r = rng_new(5);
    double gg = 0, rr = 0;
    for (int64_t i = 0; i < n; i++) {
        u[i] = rng_normal(&r);
        gg += (double)g[i] * (double)g[i];
        rr += u[i] * u[i];
    }
    for (int64_t i = 0; i < n; i++)
        u[i] = (double)g[i] / sqrt(gg) + u[i] / sqrt(rr);
}

/* loss_at gives the loss at w + h u. */
static int loss_at(struct trial *t, float *room, const float *w, const double *u,
                   double h, double *loss)
{
    const int64_t n = tensor_count(&t->room.optim.master);
    for (int64_t i = 0; i < n; i++)
        room[i] = (float)((double)w[i] + h * u[i]);
    TRY(optimizer_start(&t->room.optim, room));
    TRY(trial_forward(t));
    *loss = t->result.loss;
    return 0;
}

static int slopes(struct trial *t, double *backward, double *difference)
{
    static const double h = 0.001;
    const struct tensor master = t->room.optim.master, grads = t->room.optim.grads;
    const int64_t n = tensor_count(&master);
    float *w = mem_alloc((size_t)n * sizeof *w), *g = mem_alloc((size_t)n * sizeof *g);
    double *u = mem_alloc((size_t)n * sizeof *u), above, below;
    int rc = w && g && u ? trial_step(t) : E_MEMORY;
    if (rc == 0)
        rc = dev_get(t->dev, w, master.data, tensor_bytes(&master));
    if (rc == 0)
        rc = dev_get(t->dev, g, grads.data, tensor_bytes(&grads));
    if (rc < 0)
        goto out;
    direction(u, g, n);
    *backward = 0;
    for (int64_t i = 0; i < n; i++)
        *backward += (double)g[i] * u[i];
    TRY_GOTO(rc, loss_at(t, g, w, u, h, &above), out);
    TRY_GOTO(rc, loss_at(t, g, w, u, -h, &below), out);
    *difference = (above - below) / (2 * h);
out:
    mem_free(w);
    mem_free(g);
    mem_free(u);
    return rc;
}

/* run_slope works in f32, as tests do, whatever the device's type. */
static int run_slope(struct selftest *s)
{
    const struct trial_shape shape = {trial_small(4), ROW_LENGTH, ROW_ANCHORS, 3};
    const enum dtype act = s->dev->act;
    struct trial t;
    double backward = 0, difference = 0;
    char value[64], must[64];
    printf("the gradient in f32, S=%d, %d anchors, hidden size %lld\n", ROW_LENGTH,
           ROW_ANCHORS, (long long)shape.config.hidden);
    s->dev->act = DT_F32;
    int rc = trial_open(&t, s->dev, &shape, s->log);
    if (rc == 0) {
        rc = slopes(&t, &backward, &difference);
        trial_close(&t);
    }
    s->dev->act = act;
    TRY(rc);
    snprintf(value, sizeof value, "%.4f", backward);
    snprintf(must, sizeof must, "%.4f by differences, within 0.5 %%", difference);
    check(s, "slope by backward", value, must,
          fabs(backward - difference) <= 0.005 * fabs(difference));
    return 0;
}

/* ---- all ---- */

/* own_config is the recipe's shape on the published target. */
static int own_config(struct drafter_config *c, struct recipe r, bool small)
{
    const struct drafter_config p = small ? trial_small(5) : trial_published(5);
    const struct target_config t = {.hidden = p.hidden,
                                    .inter = p.inter,
                                    .layers = p.target_layers,
                                    .heads = p.heads,
                                    .kv_heads = p.kv_heads,
                                    .head_dim = p.head_dim,
                                    .vocab = p.vocab,
                                    .max_positions = p.max_positions,
                                    .eps = p.eps,
                                    .rope_theta = p.rope_theta};
    if (!r.layers)
        r.layers = p.layers;
    if (r.mask_id < 0 || r.mask_id >= p.vocab)
        r.mask_id = p.mask_id;
    return recipe_shape(&r, c, &t, p.tap, p.taps);
}

static int run_all(struct selftest *s, const struct recipe *r)
{
    static const char *const original[] = {
        "weights and three vocabulary matrices: 11.04 GB",
        "peaks 19.64 GB forward, 17.59 GB backward; 2.76 s and 2.30 s"};
    const int64_t length[] = {80, s->small ? 256 : 4096};
    const int64_t anchors[] = {8, s->small ? 32 : 128};
    char identity[DEV_IDENTITY];
    struct trial_shape own = {.length = s->small ? OWN_SMALL : OWN_LENGTH,
                              .anchors = r->anchors,
                              .seed = (uint64_t)r->seed};
    for (int i = 0; i < 2; i++) {
        const struct trial_shape shape = {
            s->small ? trial_small(4) : trial_published(4), length[i], anchors[i], 0};
        TRY(run_shape(s, &shape, s->small ? "" : original[i]));
    }
    TRY(own_config(&own.config, *r, s->small));
    if (s->small && own.anchors > OWN_SMALL / 8)
        own.anchors = OWN_SMALL / 8;
    TRY(run_shape(s, &own, ""));
    TRY(run_slope(s));
    dev_identity(s->dev, identity);
    printf("on %s\n", identity);
    return 0;
}

int selftest_run(const char *device, const struct recipe *recipe, struct log *log)
{
    struct selftest s = {.log = log};
    struct par *par = NULL;
    int rc;
    TRY_GOTO(rc, par_open(&par, (int)tool_common.threads), out);
    TRY_GOTO(rc, dev_open(&s.dev, device, par), out);
    s.small = s.dev->act == DT_F32;
    if (s.small)
        printf("on a CPU: small shapes of the same structure\n");
    TRY_GOTO(rc, run_all(&s, recipe), out);
    if (s.wrong)
        rc = err_set(E_DEVICE, "self-test: %d of the figures above are wrong", s.wrong);
    else
        printf("all as it must be\n");
out:
    dev_close(s.dev);
    par_close(par);
    return rc;
}
