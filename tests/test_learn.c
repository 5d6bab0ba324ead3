/* SPDX-License-Identifier: MIT */
/* test_learn.c - rows of hidden states make a drafter better; gradients add up over
 * rows whatever way they are cut; a step is a function of its inputs to the bit. */
#include "kit.h"
#include "kit_train.h"

#include "err.h"
#include "mem.h"
#include "train/batch.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/valid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 6, ANCHORS = 24, ROWS = 6, LENGTH = 2 * KIT_LENGTH };

struct bench {
    char target[512], hidden[512];
    struct kit_dev kit;
    struct intake in;
    struct drafter drafter;
    struct optimizer optim;
    struct batch batch;
    struct arena work;
};

static void set_up(struct bench *b, int threads)
{
    const struct drafter_config config = kit_drafter(BLOCK);
    memset(b, 0, sizeof *b);
    snprintf(b->target, sizeof b->target, "%s", kit_tmp_dir());
    snprintf(b->hidden, sizeof b->hidden, "%s", kit_tmp_dir());
    uint64_t digest = kit_target(b->target);
    const struct kit_rows rows = {
        .rows = ROWS, .per_shard = 4, .target = digest, .bare = -1, .bad = -1};
    kit_hidden(b->hidden, &rows);
    kit_dev_open(&b->kit, b->target, threads);
    struct dev *d = b->kit.dev;
    char *const path[] = {b->hidden, NULL};
    kit_ok(intake_open(&b->in, path, 1));
    kit_ok(drafter_new(&b->drafter, d, &config, target_embed(b->kit.target),
                       target_head(b->kit.target)));
    kit_ok(optimizer_open(&b->optim, d, b->drafter.flat, true));
    b->optim.base = (struct adamw){.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    b->optim.clip = 1;
    struct batch_shape shape = {.config = &config,
                                .length = LENGTH,
                                .anchors = 2 * ANCHORS,
                                .seed = 3,
                                .gamma = 3};
    kit_ok(batch_open(&b->batch, d, &shape));
    b->batch.anchors = ANCHORS;
    kit_ok(arena_open(&b->work, d, "work",
                      drafter_bytes(&b->drafter, LENGTH, 2 * ANCHORS * BLOCK,
                                    2 * ANCHORS * (BLOCK - 1), true)));
    int64_t count = b->drafter.table.count;
    float *master = mem_alloc((size_t)count * sizeof *master);
    param_init(master, &b->drafter.table, 3, NULL);
    kit_ok(optimizer_start(&b->optim, master));
    mem_free(master);
}

static void tear_down(struct bench *b)
{
    arena_close(&b->work);
    batch_close(&b->batch);
    optimizer_close(&b->optim);
    drafter_drop(&b->drafter);
    intake_close(&b->in);
    kit_dev_close(&b->kit);
}

/* pass takes the next row. */
static void pass(struct bench *b, struct metrics *m)
{
    struct intake_row row;
    kit_ok(intake_next(&b->in, &row));
    kit_ok(batch_pass(&b->batch, &b->drafter, &row, row.epoch, b->optim.grads, &b->work,
                      m));
}

static void learn(struct bench *b, int steps)
{
    for (int t = 1; t <= steps; t++) {
        struct metrics m = {0};
        double norm;
        pass(b, &m);
        pass(b, &m);
        double lr = schedule_lr(t, steps, 4, 3e-3);
        kit_ok(optimizer_step(&b->optim, m.weight, lr, t, &norm));
    }
}

static struct metrics validate(struct bench *b)
{
    struct valid v;
    struct metrics m;
    kit_ok(valid_open(&v, b->hidden, &b->in.about));
    kit_ok(valid_run(&v, &b->batch, &b->drafter, &b->work, &m));
    valid_close(&v);
    return m;
}

START_TEST(learns)
{
    static struct bench b;
    set_up(&b, 1);
    struct metrics before = validate(&b);
    ck_assert_double_eq(before.rows, ROWS);
    ck_assert_double_gt(metrics_loss(&before), 3.5); // about log 96
    ck_assert_double_lt(metrics_acceptance(&before), 1.2);
    learn(&b, 60);
    struct metrics after = validate(&b);
    printf("loss %.3f -> %.3f, acceptance %.3f -> %.3f\n", metrics_loss(&before),
           metrics_loss(&after), metrics_acceptance(&before),
           metrics_acceptance(&after));
    ck_assert_double_lt(metrics_loss(&after), 0.8);
    ck_assert_double_gt(metrics_acceptance(&after), 4);
    tear_down(&b);
}
END_TEST

START_TEST(validates_on_the_same_anchors)
{
    static struct bench b;
    struct metrics by_hand = {0};
    set_up(&b, 1);
    struct metrics m = validate(&b), again = validate(&b);
    kit_same("again", &again, &m, sizeof m);
    for (int i = 0; i < ROWS; i++) {
        struct intake_row row;
        kit_ok(intake_next(&b.in, &row));
        kit_ok(batch_pass(&b.batch, &b.drafter, &row, 0, (struct tensor){0}, &b.work,
                          &by_hand));
    }
    kit_same("by hand", &m, &by_hand, sizeof m);
    tear_down(&b);
}
END_TEST

START_TEST(is_bit_equal_for_any_threads)
{
    static struct bench one, three;
    set_up(&one, 1);
    set_up(&three, 3);
    learn(&one, 5);
    learn(&three, 5);
    size_t bytes = tensor_bytes(&one.optim.master);
    kit_same("master", three.optim.master.data, one.optim.master.data, bytes);
    kit_same("m", three.optim.m.data, one.optim.m.data, bytes);
    kit_same("v", three.optim.v.data, one.optim.v.data, bytes);
    tear_down(&one);
    tear_down(&three);
}
END_TEST

/* Two rows joined into one of twice the length; documents of the second are numbered
 * behind those of the first. */
struct joined {
    int32_t ids[LENGTH], doc[LENGTH];
    uint8_t mask[LENGTH];
    int64_t source[LENGTH][3];
    uint16_t aux[LENGTH * KIT_TAPS * KIT_HIDDEN];
    int64_t docs;
    struct intake_row row;
};

static void join(struct joined *j, const struct intake_row *in, int64_t half)
{
    const struct anchor_row *x = &in->row.text;
    int64_t at = half * KIT_LENGTH, width = KIT_TAPS * KIT_HIDDEN;
    memcpy(j->ids + at, x->ids, KIT_LENGTH * sizeof *j->ids);
    memcpy(j->mask + at, x->mask, KIT_LENGTH);
    memcpy(j->source + j->docs, x->source, (size_t)x->docs * sizeof *j->source);
    memcpy(j->aux + at * width, in->row.aux, KIT_LENGTH * (size_t)width * 2);
    for (int64_t t = 0; t < KIT_LENGTH; t++)
        j->doc[at + t] = x->doc[t] < 0 ? -1 : x->doc[t] + (int32_t)j->docs;
    j->docs += x->docs;
    j->row = *in;
    j->row.row.aux = j->aux;
    j->row.row.text = (struct anchor_row){
        LENGTH, j->ids, j->mask, j->doc, (const int64_t *)j->source, j->docs};
}

START_TEST(adds_up_over_rows)
{
    static struct bench b;
    static struct joined both;
    struct metrics apart = {0}, together = {0};
    set_up(&b, 1);
    /* All candidates of a row are drawn, so both ways have the same anchors. */
    b.batch.anchors = 2 * ANCHORS;
    for (int half = 0; half < 2; half++) {
        struct intake_row row;
        uint8_t mask[KIT_LENGTH];
        kit_ok(intake_next(&b.in, &row));
        memset(mask, 0, sizeof mask);
        memcpy(mask, row.row.text.mask, 30);
        row.row.text.mask = mask;
        join(&both, &row, half);
        kit_ok(
            batch_pass(&b.batch, &b.drafter, &row, 0, b.optim.grads, &b.work, &apart));
    }
    int64_t count = b.drafter.table.count;
    float *sum = mem_alloc((size_t)count * sizeof *sum);
    memcpy(sum, b.optim.grads.data, (size_t)count * sizeof *sum);
    op_fill(b.kit.dev, b.optim.grads, 0);
    kit_ok(batch_pass(&b.batch, &b.drafter, &both.row, 0, b.optim.grads, &b.work,
                      &together));
    ck_assert_double_gt(apart.blocks, 20);
    ck_assert_double_eq(apart.blocks, together.blocks);
    ck_assert_double_eq(apart.accepted, together.accepted);
    ck_assert_double_eq_tol(apart.weight, together.weight, 1e-9 * together.weight);
    ck_assert_double_eq_tol(apart.loss, together.loss, 1e-6 * together.loss);
    kit_close_max("gradients", sum, b.optim.grads.data, count, 2e-6);
    mem_free(sum);
    tear_down(&b);
}
END_TEST

START_TEST(divides_once_then_clips)
{
    /* First step of AdamW by hand: m / (1 - b1) = g, v / (1 - b2) = g^2, so a weight
     * moves by lr g / (|g| + eps): with eps = 1, lr g / (|g| + 1). */
    static struct bench b;
    const double clip[] = {0, 1e9, 0.5};
    for (int i = 0; i < 3; i++) {
        double norm;
        set_up(&b, 1);
        int64_t count = b.drafter.table.count;
        float *w = b.optim.master.data, *g = b.optim.grads.data, w0 = w[0], w1 = w[1];
        g[0] = 12;
        g[1] = -16;
        b.optim.clip = clip[i];
        b.optim.base.eps = 1;
        kit_ok(optimizer_step(&b.optim, 4, 0.25, 1, &norm)); // mean gradient (3, -4)
        ck_assert_double_eq_tol(norm, 5, 1e-12);
        double cut = i == 2 ? 0.1 : 1;
        ck_assert_double_eq_tol(w0 - w[0], 0.25 * 3 * cut / (3 * cut + 1), 1e-6);
        ck_assert_double_eq_tol(w1 - w[1], -0.25 * 4 * cut / (4 * cut + 1), 1e-6);
        for (int64_t k = 0; k < count; k++)
            ck_assert(g[k] == 0);
        tear_down(&b);
    }
}
END_TEST

START_TEST(refuses_what_is_not_finite)
{
    static struct bench b;
    double norm;
    set_up(&b, 1);
    size_t bytes = tensor_bytes(&b.optim.master);
    char *was = mem_alloc(bytes);
    memcpy(was, b.optim.master.data, bytes);
    ((float *)b.optim.grads.data)[7] = INFINITY;
    kit_fails(optimizer_step(&b.optim, 1, 1e-3, 1, &norm), E_FORMAT,
              "gradient is not finite");
    kit_same("weights", b.optim.master.data, was, bytes);
    mem_free(was);
    tear_down(&b);
}
END_TEST

KIT_MAIN("learn", learns, validates_on_the_same_anchors, is_bit_equal_for_any_threads,
         adds_up_over_rows, divides_once_then_clips, refuses_what_is_not_finite)
