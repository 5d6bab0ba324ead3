/* SPDX-License-Identifier: MIT */
/* test_drafter.c - the drafter against PyTorch: states, loss, counts, every gradient;
 * faults that these must show; what may and may not influence a block. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "drafter_parts.h"
#include "err.h"
#include "kit.h"
#include "kit_drafter.h"
#include "mem.h"

static const double share = 2e-5; // of the largest; the references differ by 2e-6

/* ---- values ---- */

/* times multiplies the head onto states: logits [Q,V], freed by the caller. */
static struct tensor times_head(struct kit_fixture *f, struct tensor hidden)
{
    struct tensor z = kit_tensor_new(DT_F32, T2(hidden.dim[0], f->m.config.vocab));
    op_matmul(f->dev, z, hidden, f->head, false);
    kit_ok(dev_sync(f->dev));
    return z;
}

static void check_states(struct kit_fixture *f, const struct kit_answer *a)
{
    const float *hidden = kit_golden(&f->file, "out.hidden", ST_F32, NULL);
    const float *logits = kit_golden(&f->file, "out.logits", ST_F32, NULL);
    struct tensor z = times_head(f, a->hidden);
    kit_close_max("states", a->hidden.data, hidden, tensor_count(&a->hidden), share);
    kit_close_max("logits", z.data, logits, tensor_count(&z), share);
    kit_tensor_free(&z);
}

static void check_loss(struct kit_fixture *f, const struct kit_answer *a)
{
    const float *loss = kit_golden(&f->file, "out.loss", ST_F32, NULL);
    double mean = a->result.loss / a->result.weight;
    printf("loss %.8f, reference %.8f\n", mean, (double)loss[0]);
    ck_assert_double_le(fabs(mean - (double)loss[0]), 1e-6 * (double)loss[0]);
}

static void check_counts(struct kit_fixture *f, const struct kit_task *t,
                         const struct kit_answer *a)
{
    int64_t block;
    const int32_t *correct = kit_golden(&f->file, "out.correct", ST_I32, &block);
    const int32_t *total = kit_golden(&f->file, "out.total", ST_I32, NULL);
    int32_t right[CONFIG_BLOCK] = {0}, all[CONFIG_BLOCK] = {0};
    for (int64_t i = 0; i < t->labelled; i++) {
        right[t->row[i] % block] += a->hit[i];
        all[t->row[i] % block]++;
    }
    kit_same("labelled slots", all, total, (size_t)block * sizeof *all);
    kit_same("right slots", right, correct, (size_t)block * sizeof *right);
}

/* gradient_off is how far parameter i is from the reference's gradient of the mean
 * loss, as a share of its largest element. */
static double gradient_off(struct kit_fixture *f, const struct kit_answer *a, int64_t i,
                           bool print)
{
    const struct param *p = &f->m.table.param[i];
    struct tensor g = param_view(&f->m.table, i, a->grads);
    int64_t n = tensor_count(&g);
    const float *want = kit_golden(&f->file, kit_path("g.%s", p->name), ST_F32, NULL);
    float *mean = mem_alloc(tensor_bytes(&g));
    for (int64_t k = 0; k < n; k++)
        mean[k] = (float)((double)((const float *)g.data)[k] / a->result.weight);
    struct kit_diff d = kit_diff_f32(mean, want, n, 1, 0);
    if (print)
        kit_close_max(p->name, mean, want, n, share);
    mem_free(mean);
    return d.worst / d.largest;
}

static void check_all(const char *name)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer a;
    kit_fixture_open(&f, name, 1);
    kit_task_make(&t, &f);
    kit_task_run(&a, &f, &t, true);
    printf("%s\n", name);
    check_states(&f, &a);
    check_loss(&f, &a);
    check_counts(&f, &t, &a);
    for (int64_t i = 0; i < f.m.table.params; i++)
        gradient_off(&f, &a, i, true);
    kit_answer_free(&a);
    kit_fixture_close(&f);
}

START_TEST(golden_full)
{
    check_all("full");
}
END_TEST

START_TEST(golden_sliding)
{
    check_all("sliding");
}
END_TEST

START_TEST(golden_sliding_bidirectional)
{
    check_all("sliding-bidirectional");
}
END_TEST

START_TEST(golden_wide)
{
    check_all("wide");
}
END_TEST

/* ---- faults ---- */

/* off_states and off_gradients are what the comparisons above would see. */
static double off_states(struct kit_fixture *f, const struct kit_answer *a)
{
    const float *want = kit_golden(&f->file, "out.hidden", ST_F32, NULL);
    struct kit_diff d =
        kit_diff_f32(a->hidden.data, want, tensor_count(&a->hidden), 1, 0);
    return d.worst / d.largest;
}

static int off_gradients(struct kit_fixture *f, const struct kit_answer *a)
{
    int n = 0;
    for (int64_t i = 0; i < f->m.table.params; i++)
        n += !(gradient_off(f, a, i, false) <= share);
    return n;
}

/* fault runs a spoiled task and demands that states and gradients show it. */
static void fault(const char *what, struct kit_fixture *f, const struct kit_task *t)
{
    struct kit_answer a;
    kit_task_run(&a, f, t, true);
    double states = off_states(f, &a);
    int gradients = off_gradients(f, &a);
    printf("%s: states off by %.2g, %d of %d gradients show it\n", what, states,
           gradients, (int)f->m.table.params);
    ck_assert_msg(!(states <= share), "%s: the states do not show it", what);
    ck_assert_msg(gradients > 0, "%s: no gradient shows it", what);
    kit_answer_free(&a);
}

/* One element of one span array moves by one: that of a labelled slot whose window is
 * shorter than its context, in a document that is not the first. */
START_TEST(faults_of_spans)
{
    struct kit_fixture f;
    struct kit_task t;
    kit_fixture_open(&f, "sliding", 1);
    kit_task_make(&t, &f);
    int64_t i = 0;
    while (t.lo[t.row[i]] == 0 || t.slide[t.row[i]] == t.lo[t.row[i]])
        i++;
    ck_assert_int_lt(i, t.labelled);
    int32_t q = t.row[i];
    t.hi[q]++;
    fault("one slot sees its anchor's features", &f, &t);
    t.hi[q] -= 2;
    fault("one slot misses the last context row", &f, &t);
    t.hi[q]++;
    t.slide[q]--;
    fault("a window one row too long", &f, &t);
    t.slide[q] += 2;
    fault("a window one row too short", &f, &t);
    t.slide[q]--;
    t.lo[q]--;
    fault("one slot sees the document before", &f, &t);
    t.lo[q]++;
    t.at[q]--;
    fault("a slot at its neighbour's position", &f, &t);
    t.at[q]++;
    t.pos[0]++;
    fault("a context row at the next position", &f, &t);
    t.pos[0]--;
    kit_fixture_close(&f);
}
END_TEST

/* One setting of the drafter is another. */
START_TEST(faults_of_settings)
{
    struct kit_fixture f, full;
    struct kit_task t;
    kit_fixture_open(&f, "sliding", 1);
    kit_fixture_open(&full, "full", 1);
    struct drafter_config *c = &f.m.config;
    kit_task_make(&t, &f);
    c->causal = 0;
    fault("sliding layers that look ahead", &f, &t);
    c->causal = 1;
    fault("a full layer that does not look ahead", &f, &t);
    c->causal = -1;
    c->sliding[1] = false;
    fault("a layer that does not slide", &f, &t);
    c->sliding[1] = true;
    c->window = 7; /* below the block's eight slots; the context's window is t.slide */
    fault("a window inside the block", &f, &t);
    c->window = 12;
    c->eps = 1e-3;
    fault("another epsilon", &f, &t);
    c->eps = 1e-6;
    ((float *)f.m.freq.data)[1] *= 1.001f;
    fault("another rotation", &f, &t);
    kit_fixture_close(&f);

    kit_task_make(&t, &full);
    full.m.config.causal = 1;
    fault("full layers that do not look ahead", &full, &t);
    kit_fixture_close(&full);
}
END_TEST

/* Labels and weights: the states are right, loss and gradients are not. */
START_TEST(faults_of_labels)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer a;
    kit_fixture_open(&f, "full", 1);
    for (int fault_no = 0; fault_no < 3; fault_no++) {
        kit_task_make(&t, &f);
        if (fault_no == 0) /* the next token instead of this one */
            memmove(t.label, t.label + 1, (size_t)(t.labelled - 1) * sizeof *t.label);
        if (fault_no == 1) /* a slot's neighbour */
            t.row[t.labelled - 1]--;
        if (fault_no == 2) /* no decay */
            for (int64_t i = 0; i < t.labelled; i++)
                t.weight[i] = 1;
        if (fault_no == 1) /* rows stay distinct */
            t.labelled--, t.row[t.labelled - 1]++;
        kit_task_run(&a, &f, &t, true);
        const float *loss = kit_golden(&f.file, "out.loss", ST_F32, NULL);
        double mean = a.result.loss / a.result.weight;
        printf("labels, fault %d: loss %.6f, reference %.6f, %d gradients\n", fault_no,
               mean, (double)loss[0], off_gradients(&f, &a));
        ck_assert_double_gt(fabs(mean - (double)loss[0]), 1e-6 * (double)loss[0]);
        ck_assert_int_gt(off_gradients(&f, &a), 0);
        kit_answer_free(&a);
    }
    kit_fixture_close(&f);
}
END_TEST

/* ---- what a block sees ---- */

static const float *block_rows(const struct kit_fixture *f, const struct kit_answer *a,
                               int64_t j)
{
    return (const float *)a->hidden.data + j * f->m.config.block * f->m.config.hidden;
}

static size_t block_bytes(const struct kit_fixture *f)
{
    return (size_t)(f->m.config.block * f->m.config.hidden) * sizeof(float);
}

/* The anchor's own features, and all behind it, change nothing in its block; those of
 * the token before it do. */
START_TEST(features_before_the_anchor)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer before, after;
    kit_fixture_open(&f, "sliding", 1);
    kit_task_make(&t, &f);
    kit_task_run(&before, &f, &t, false);
    int64_t width = f.aux.dim[1];
    size_t bytes = (size_t)width * sizeof(float);
    float *saved = mem_alloc(3 * bytes);
    for (int64_t j = 0; j < f.anchors; j++) {
        int64_t a = f.anchor[j];
        float *row = (float *)f.aux.data + a * width; /* anchors have a successor */
        ck_assert_int_gt(t.pos[a], 0);
        memcpy(saved, row - width, 3 * bytes);
        row[5] += 3;
        row[width + 5] += 3;
        kit_task_run(&after, &f, &t, false);
        kit_same("a block, its anchor's features changed", block_rows(&f, &after, j),
                 block_rows(&f, &before, j), block_bytes(&f));
        kit_answer_free(&after);
        memcpy(row - width, saved, 3 * bytes);
        row[5 - width] += 3;
        kit_task_run(&after, &f, &t, false);
        ck_assert(memcmp(block_rows(&f, &after, j), block_rows(&f, &before, j),
                         block_bytes(&f)) != 0);
        kit_answer_free(&after);
        memcpy(row - width, saved, 3 * bytes);
    }
    mem_free(saved);
    kit_answer_free(&before);
    kit_fixture_close(&f);
}
END_TEST

START_TEST(blocks_do_not_meet)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer before, after;
    kit_fixture_open(&f, "full", 1);
    kit_task_make(&t, &f);
    kit_task_run(&before, &f, &t, false);
    for (int64_t j = 0; j < f.anchors; j++) {
        int32_t *id = &t.id[j * f.m.config.block + 3];
        *id = 4;
        kit_task_run(&after, &f, &t, false);
        *id = (int32_t)f.m.config.mask_id;
        for (int64_t i = 0; i < f.anchors; i++) {
            bool same = memcmp(block_rows(&f, &after, i), block_rows(&f, &before, i),
                               block_bytes(&f)) == 0;
            ck_assert_msg(same == (i != j), "block %d, with block %d changed", (int)i,
                          (int)j);
        }
        kit_answer_free(&after);
    }
    kit_answer_free(&before);
    kit_fixture_close(&f);
}
END_TEST

static void check_alone(const char *name)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer packed, alone;
    kit_fixture_open(&f, name, 1);
    kit_task_make(&t, &f);
    kit_task_run(&packed, &f, &t, false);
    for (int64_t j = 0; j < f.anchors;) {
        kit_task_document(&t, &f, f.doc[f.anchor[j]]);
        kit_task_run(&alone, &f, &t, false);
        kit_same("a document alone", alone.hidden.data, block_rows(&f, &packed, j),
                 (size_t)t.blocks * block_bytes(&f));
        kit_answer_free(&alone);
        j += t.blocks;
    }
    kit_answer_free(&packed);
    kit_fixture_close(&f);
}

START_TEST(alone_equals_packed)
{
    check_alone("full");
    check_alone("sliding");
}
END_TEST

/* With fc the identity on one tap, ctx is the norm of that tap: inputs lie tap by tap,
 * and the norm comes after the projection. */
START_TEST(fusion_order)
{
    struct kit_fixture f;
    kit_fixture_open(&f, "full", 1);
    int64_t h = f.m.config.hidden, s = f.length, width = f.aux.dim[1];
    struct tensor tap = kit_tensor_new(DT_F32, T2(s, h));
    struct tensor ctx = kit_tensor_new(DT_F32, T2(s, h));
    struct tensor want = kit_tensor_new(DT_F32, T2(s, h));
    for (int k = 0; k < f.m.config.taps; k++) {
        float *fc = f.m.w->fc.data;
        memset(fc, 0, (size_t)(h * width) * sizeof *fc);
        for (int64_t i = 0; i < h; i++)
            fc[i * width + k * h + i] = 1;
        for (int64_t t = 0; t < s; t++)
            memcpy((float *)tap.data + t * h,
                   (const float *)f.aux.data + t * width + k * h,
                   (size_t)h * sizeof(float));
        op_rmsnorm(f.dev, want, tap, f.m.w->hidden_norm, (float)f.m.config.eps);
        drafter_fuse(&f.m, ctx, ctx, f.aux);
        kit_ok(dev_sync(f.dev));
        kit_same("ctx", ctx.data, want.data, tensor_bytes(&want));
    }
    kit_tensor_free(&tap);
    kit_tensor_free(&ctx);
    kit_tensor_free(&want);
    kit_fixture_close(&f);
}
END_TEST

/* ---- one step in several ways ---- */

START_TEST(threads_do_not_matter)
{
    struct kit_answer one, many;
    for (int threads = 1; threads <= 3; threads++) {
        struct kit_fixture f;
        struct kit_task t;
        kit_fixture_open(&f, "sliding", threads);
        kit_task_make(&t, &f);
        kit_task_run(threads == 1 ? &one : &many, &f, &t, true);
        if (threads > 1) {
            kit_same("states", many.hidden.data, one.hidden.data,
                     tensor_bytes(&one.hidden));
            kit_same("gradients", many.grads.data, one.grads.data,
                     tensor_bytes(&one.grads));
            ck_assert(many.result.loss == one.result.loss);
            kit_answer_free(&many);
        }
        kit_fixture_close(&f);
    }
    kit_answer_free(&one);
}
END_TEST

/* Validation shares memory between layers; it gives the bits of training. */
START_TEST(without_gradients)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer with, without;
    kit_fixture_open(&f, "sliding", 1);
    kit_task_make(&t, &f);
    kit_task_run(&with, &f, &t, true);
    kit_task_run(&without, &f, &t, false);
    kit_same("states", without.hidden.data, with.hidden.data,
             tensor_bytes(&with.hidden));
    kit_same("hits", without.hit, with.hit, (size_t)t.labelled * sizeof *with.hit);
    ck_assert(with.result.loss == without.result.loss);
    ck_assert_uint_lt(drafter_bytes(&f.m, t.context, 96, t.labelled, false),
                      drafter_bytes(&f.m, t.context, 96, t.labelled, true) / 2);
    kit_answer_free(&with);
    kit_answer_free(&without);
    kit_fixture_close(&f);
}
END_TEST

/* Gradients add up: two halves of the anchors give the whole, to rounding. */
START_TEST(gradients_accumulate)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer whole, half;
    kit_fixture_open(&f, "full", 1);
    kit_task_make(&t, &f);
    kit_task_run(&whole, &f, &t, true);
    float *sum = mem_zero((size_t)f.m.table.count, sizeof *sum);
    int64_t all = f.anchors;
    for (int part = 0; part < 2; part++) {
        f.anchors = part ? all - 5 : 5;
        if (part)
            memmove(f.anchor, f.anchor + 5, (size_t)f.anchors * sizeof *f.anchor);
        kit_task_make(&t, &f);
        kit_task_run(&half, &f, &t, true);
        for (int64_t i = 0; i < f.m.table.count; i++)
            sum[i] += ((const float *)half.grads.data)[i];
        kit_answer_free(&half);
    }
    kit_close_max("sum of halves", sum, whole.grads.data, f.m.table.count, 3e-6);
    mem_free(sum);
    kit_answer_free(&whole);
    kit_fixture_close(&f);
}
END_TEST

/* A row without labels, or without blocks at all, has loss 0 and no gradient. */
START_TEST(nothing_to_learn)
{
    struct kit_fixture f;
    struct kit_task t;
    struct kit_answer a;
    kit_fixture_open(&f, "full", 1);
    kit_task_make(&t, &f);
    t.labelled = 0;
    for (int i = 0; i < 2; i++) {
        kit_task_run(&a, &f, &t, true);
        ck_assert(a.result.loss == 0 && a.result.weight == 0);
        for (int64_t k = 0; k < f.m.table.count; k++)
            ck_assert(((const float *)a.grads.data)[k] == 0);
        kit_answer_free(&a);
        t.blocks = 0;
    }
    kit_fixture_close(&f);
}
END_TEST

START_TEST(wrong_ids)
{
    struct kit_fixture f;
    struct kit_task t;
    struct arena work;
    struct drafter_result out = {0};
    kit_fixture_open(&f, "full", 1);
    kit_task_make(&t, &f);
    struct drafter_row r = {t.aux, t.context, t.pos,   t.blocks, t.id,
                            t.at,  t.lo,      t.slide, t.hi,     t.labelled,
                            t.row, t.label,   t.weight};
    struct tensor none = {0};
    kit_arena(&work, f.dev, drafter_bytes(&f.m, t.context, 96, t.labelled, false));
    t.id[9] = 97;
    kit_fails(drafter_step(&f.m, &r, none, none, &out, &work), E_FORMAT,
              "block rows: token 9: id 97 is not in the vocabulary of 97");
    t.id[9] = 1;
    t.label[2] = -1;
    kit_fails(drafter_step(&f.m, &r, none, none, &out, &work), E_FORMAT,
              "labels: token 2: id -1");
    t.label[2] = 1;
    kit_ok(drafter_step(&f.m, &r, none, none, &out, &work));
    arena_close(&work);
    kit_fixture_close(&f);
}
END_TEST

KIT_MAIN("drafter", golden_full, golden_sliding, golden_sliding_bidirectional,
         golden_wide, faults_of_spans, faults_of_settings, faults_of_labels,
         features_before_the_anchor, blocks_do_not_meet, alone_equals_packed,
         fusion_order, threads_do_not_matter, without_gradients, gradients_accumulate,
         nothing_to_learn, wrong_ids)
