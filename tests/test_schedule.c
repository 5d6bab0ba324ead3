/* SPDX-License-Identifier: MIT */
/* test_schedule.c - the learning rate, and what a recipe resolves to. */
#include "kit.h"

#include "err.h"
#include "train/recipe.h"
#include "train/schedule.h"

#include <math.h>
#include <string.h>

static const struct target_config target = {.hidden = 64,
                                            .inter = 192,
                                            .layers = 8,
                                            .heads = 4,
                                            .kv_heads = 2,
                                            .head_dim = 64,
                                            .vocab = 512,
                                            .max_positions = 2048,
                                            .eps = 1e-6,
                                            .rope_theta = 1e6,
                                            .stop = {7},
                                            .stops = 1};

static struct recipe plain(void)
{
    return (struct recipe){.block = 16,
                           .mask_id = 500,
                           .sliding = -1,
                           .causal = "sliding",
                           .anchors = 8,
                           .accumulate = 1,
                           .gamma = -1,
                           .lr = 1e-3,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8,
                           .warmup = 0.04};
}

START_TEST(warms_up_then_falls)
{
    /* By hand: 2 of 6 steps warm up, then cos over fifths of a half turn. */
    const double want[] = {0.5,
                           1,
                           0.904508497187474,
                           0.654508497187474,
                           0.345491502812526,
                           0.0954915028125263};
    for (int t = 1; t <= 6; t++)
        ck_assert_double_eq_tol(schedule_lr(t, 6, 2, 1), want[t - 1], 1e-14);
    ck_assert_double_eq(schedule_lr(1, 1, 0, 3), 1.5);
    ck_assert_double_eq(schedule_lr(1, 1, 1, 3), 3);
    double before = 2;
    for (int t = 40; t <= 1000; t++) {
        double lr = schedule_lr(t, 1000, 40, 1);
        ck_assert(lr > 0 && lr < before);
        before = lr;
    }
}
END_TEST

START_TEST(counts_steps)
{
    struct recipe r = plain();
    r.accumulate = 4;
    r.epochs = 3;
    kit_ok(recipe_steps(&r, 10)); // 30 rows: 7 whole steps
    ck_assert_int_eq(r.steps, 7);
    ck_assert_double_eq(r.warmup, 0); // 0.28 of a step
    r = plain();
    r.steps = 100;
    kit_ok(recipe_steps(&r, -1));
    ck_assert_double_eq(r.warmup, 4);
    kit_ok(recipe_steps(&r, -1)); // resolved once, it stays
    ck_assert_double_eq(r.warmup, 4);
    r = plain();
    kit_ok(recipe_steps(&r, 5)); // six epochs when nothing is said
    ck_assert_int_eq(r.steps, 30);
}
END_TEST

START_TEST(refuses_steps)
{
    struct recipe r = plain();
    kit_fails(recipe_steps(&r, -1), E_USAGE, "--steps is needed");
    r.epochs = 2;
    kit_fails(recipe_steps(&r, -1), E_USAGE, "--epochs 2");
    r = plain();
    r.accumulate = 100;
    r.epochs = 2;
    kit_fails(recipe_steps(&r, 10), E_CONFIG, "less than one step");
    r = plain();
    r.steps = 10;
    r.warmup = 11;
    kit_fails(recipe_steps(&r, 10), E_CONFIG, "--warmup 11");
}
END_TEST

START_TEST(fills_the_shape)
{
    const int64_t tap[] = {1, 3};
    struct recipe r = plain();
    struct drafter_config c;
    r.layers = 3;
    r.window = 128;
    kit_ok(recipe_shape(&r, &c, &target, tap, 2));
    ck_assert_int_eq(c.inter, 192);
    ck_assert_int_eq(c.head_dim, 64);
    ck_assert_int_eq(c.stop, 7);
    ck_assert_int_eq(c.taps, 2);
    ck_assert_int_eq(r.sliding, 2); // all but the last
    ck_assert(c.sliding[0] && c.sliding[1] && !c.sliding[2]);
    ck_assert_int_eq(c.causal, -1);
    ck_assert_double_eq(r.gamma, 7);
    ck_assert_double_eq(r.rope_theta, 1e6);
    const struct {
        int64_t block;
        double gamma;
    } by[] = {{16, 7}, {10, 5}, {8, 4}, {4, 1.75}};
    for (int i = 0; i < 4; i++) {
        r = plain();
        r.block = by[i].block;
        kit_ok(recipe_shape(&r, &c, &target, tap, 2));
        ck_assert_double_eq(r.gamma, by[i].gamma);
        ck_assert_int_eq(c.layers, 5);
        ck_assert_int_eq(c.window, 0);
    }
}
END_TEST

START_TEST(refuses_shapes)
{
    const int64_t tap[] = {1, 9};
    struct recipe r = plain();
    struct drafter_config c;
    kit_fails(recipe_shape(&r, &c, &target, tap, 2), E_CONFIG, "9");
    r.mask_id = 512;
    kit_fails(recipe_shape(&r, &c, &target, tap, 1), E_CONFIG, "512");
    r = plain();
    r.mask_id = -1;
    kit_fails(recipe_check(&r), E_USAGE, "--mask-id");
    r = plain();
    r.sliding = 1;
    kit_fails(recipe_check(&r), E_USAGE, "--sliding");
    r = plain();
    r.causal = "never";
    kit_fails(recipe_check(&r), E_USAGE, "--causal never");
    r = plain();
    r.lr = 0;
    kit_fails(recipe_check(&r), E_USAGE, "--lr");
    r = plain();
    r.block = 65;
    kit_fails(recipe_check(&r), E_USAGE, "--block");
    r = plain();
    r.steps = r.epochs = 1;
    kit_fails(recipe_check(&r), E_USAGE, "--epochs");
    r = plain();
    kit_ok(recipe_check(&r));
}
END_TEST

START_TEST(finds_the_option_that_differs)
{
    char name[16];
    ck_assert_int_eq(recipe_differs(name, 16, "a=1 bb=2 c=3", "a=1 bb=2 c=3"), 0);
    ck_assert_int_eq(recipe_differs(name, 16, "", ""), 0);
    const char *const pair[][3] = {
        {"a=1 bb=2 c=3", "a=1 bb=22 c=3", "bb"},
        {"a=1 bb=22 c=3", "a=1 bb=2 c=3", "bb"},
        {"a=1 bb=2 c=3", "a=1 bb=2 c=4", "c"},
        {"a=1 bb=2", "a=1 bb=2 c=3", "c"},
        {"a=1 bb=2 c=3", "a=1 bb=2", "c"},
    };
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(recipe_differs(name, 16, pair[i][0], pair[i][1]), 1);
        ck_assert_str_eq(name, pair[i][2]);
    }
}
END_TEST

KIT_MAIN("schedule", warms_up_then_falls, counts_steps, refuses_steps, fills_the_shape,
         refuses_shapes, finds_the_option_that_differs)
