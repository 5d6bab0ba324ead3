/* SPDX-License-Identifier: MIT */
/* test_plan.c - memory planned for cards that are not here, and what watches over it.
 */
#include "kit.h"

#include <stdio.h>
#include <string.h>

#include "err.h"
#include "par.h"
#include "train/guard.h"
#include "train/plan.h"
#include "train/trial.h"

static const double gib = 1024.0 * 1024 * 1024;

/* The published drafter on a card, planned without one. */
struct published {
    struct dev card;
    struct drafter_config config;
    struct plan_for ask;
    struct plan plan;
};

static void plan_published(struct published *p, int64_t length, int64_t anchors)
{
    p->config = trial_published(4);
    kit_ok(dev_outline(&p->card, "cuda"));
    p->ask = (struct plan_for){
        .dev = &p->card,
        .shape = {.config = &p->config, .length = length, .anchors = anchors},
        .vocabulary = 2 * (size_t)p->config.vocab * (size_t)p->config.hidden * 2};
    kit_ok(plan_make(&p->plan, &p->ask));
}

static size_t line_of(const struct plan *p, const char *name)
{
    for (int i = 0; i < p->bill.lines; i++)
        if (strcmp(p->bill.line[i].name, name) == 0)
            return p->bill.line[i].bytes;
    ck_abort_msg("no line %s", name);
}

/* What a step holds beside the optimizer's state is below what the best of others hold
 * (29.2 and 17.1 GiB); the weights are two bytes each. */
START_TEST(published_sizes)
{
    static const struct {
        int64_t length, anchors;
        double most;
    } shape[] = {{8192, 512, 18}, {4096, 128, 13.5}};
    for (int i = 0; i < 2; i++) {
        struct published p;
        plan_published(&p, shape[i].length, shape[i].anchors);
        double beside = (double)(p.plan.bill.total - line_of(&p.plan, "optimizer"));
        ck_assert_msg(beside / gib <= shape[i].most, "%.2f GiB", beside / gib);
        ck_assert_double_eq_tol((double)line_of(&p.plan, "weights"),
                                2.0 * (double)p.plan.trained, 1e4);
        ck_assert_double_eq_tol((double)line_of(&p.plan, "optimizer"),
                                12.0 * (double)p.plan.trained, 1e5);
        ck_assert_uint_eq(p.plan.own, (64 + 32 + 512) << 20);
        ck_assert_uint_eq(p.plan.own, line_of(&p.plan, "scratch") +
                                          line_of(&p.plan, "products") +
                                          line_of(&p.plan, "logits"));
    }
}
END_TEST

/* The lines add up; a stream's fp8 rows and sums in f32 take what they take. */
START_TEST(lines_add_up)
{
    struct published p, q;
    size_t sum = 0;
    plan_published(&p, 8192, 512);
    for (int i = 0; i < p.plan.bill.lines; i++)
        sum += p.plan.bill.line[i].bytes;
    ck_assert_uint_eq(sum, p.plan.bill.total);
    plan_published(&q, 8192, 512);
    q.ask.accumulate = true;
    kit_ok(plan_make(&q.plan, &q.ask));
    ck_assert_uint_eq(line_of(&q.plan, "gradients"), 2 * line_of(&p.plan, "gradients"));
    struct dev cpu;
    kit_ok(dev_outline(&cpu, "cpu"));
    q.ask.dev = &cpu;
    kit_ok(plan_make(&q.plan, &q.ask));
    ck_assert_uint_eq(q.plan.own, 0);
    kit_fails(dev_outline(&cpu, "gpu"), E_CONFIG, "gpu");
}
END_TEST

/* with is the plan's total for other anchors or layers. */
static size_t with(const struct published *p, int64_t anchors, int64_t layers)
{
    struct published q = *p;
    q.config.layers = layers;
    q.ask.dev = &q.card;
    q.ask.shape.config = &q.config;
    q.ask.shape.anchors = anchors;
    kit_ok(plan_make(&q.plan, &q.ask));
    return q.plan.bill.total;
}

static int64_t number_behind(const char *option)
{
    long long n = -1;
    const char *at = strstr(err_text(), option);
    ck_assert_msg(at != NULL, "no %s in: %s", option, err_text());
    sscanf(at + strlen(option), " %lld", &n);
    return n;
}

START_TEST(too_large_names_an_option)
{
    struct published p;
    plan_published(&p, 8192, 512);
    kit_ok(plan_fits(&p.plan, &p.ask, p.plan.bill.total));
    size_t card = p.plan.bill.total - 1;
    for (int i = 0; i < 2; i++, card = p.plan.bill.total - (size_t)(3 * gib)) {
        kit_fails(plan_fits(&p.plan, &p.ask, card), E_CONFIG, "--anchors");
        int64_t n = number_behind("--anchors");
        ck_assert_int_eq(n % 8, 0);
        ck_assert_uint_le(with(&p, n, 5), card);
        ck_assert_uint_gt(with(&p, n + 8, 5), card);
    }
    card = with(&p, 1, 5) - 1; // not even one anchor
    kit_fails(plan_fits(&p.plan, &p.ask, card), E_CONFIG, "--layers");
    int64_t n = number_behind("--layers");
    ck_assert_uint_le(with(&p, 512, n), card);
    ck_assert_uint_gt(with(&p, 512, n + 1), card);
    kit_fails(plan_fits(&p.plan, &p.ask, 1 << 20), E_CONFIG, "no number of");
}
END_TEST

/* ---- what watches ---- */

enum { PLANTED = 4 << 20 };

START_TEST(planted_memory_is_found)
{
    struct par *par;
    struct dev *d;
    struct trial t;
    struct log silent = {0};
    void *planted;
    char both[96];
    kit_ok(par_open(&par, 1));
    kit_ok(dev_open(&d, "cpu", par));
    kit_ok(trial_open(&t, d, &(struct trial_shape){trial_small(4), 80, 8, 0}, &silent));
    struct guard *g = &t.room.guard;
    kit_ok(trial_step(&t));
    kit_ok(guard_step(g, 1, &silent));
    size_t planned = t.room.plan.bill.total;
    kit_ok(dev_alloc(d, &planted, PLANTED));
    snprintf(both, sizeof both, "%zu bytes are planned, %zu are held", planned,
             planned + PLANTED);
    kit_fails(guard_step(g, 2, &silent), E_DEVICE, both);
    dev_free(d, planted, PLANTED);
    kit_ok(guard_step(g, 3, &silent));
    trial_close(&t);
    dev_close(d);
    par_close(par);
}
END_TEST

START_TEST(arenas_must_be_full)
{
    struct dev *d;
    struct arena a;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_ok(arena_open(&a, d, "toys", 1024));
    arena_tensor(&a, DT_U8, T1(512));
    kit_fails(guard_arena(&a), E_DEVICE, "toys: 1024 bytes are planned, 512 are used");
    arena_tensor(&a, DT_U8, T1(512));
    arena_reset(&a, 0);
    kit_ok(guard_arena(&a));
    arena_close(&a);
    dev_close(d);
}
END_TEST

/* A warm-up leaves nothing: moments and gradients are zero. */
START_TEST(warm_up_leaves_nothing)
{
    struct dev *d;
    struct trial t;
    struct log silent = {0};
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_ok(trial_open(&t, d, &(struct trial_shape){trial_small(5), 64, 4, 0}, &silent));
    const struct tensor list[] = {t.room.optim.m, t.room.optim.v, t.room.optim.grads};
    for (int i = 0; i < 3; i++) {
        const float *x = list[i].data;
        for (int64_t k = 0; k < tensor_count(&list[i]); k++)
            ck_assert(x[k] == 0);
    }
    trial_close(&t);
    dev_close(d);
}
END_TEST

KIT_MAIN("plan", published_sizes, lines_add_up, too_large_names_an_option,
         planted_memory_is_found, arenas_must_be_full, warm_up_leaves_nothing)
