/* SPDX-License-Identifier: MIT */
/* test_metrics.c - counts and means by hand; the log, cut back and written again. */
#include "kit.h"

#include "err.h"
#include "file.h"
#include "mem.h"
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(counts_slots_and_blocks)
{
    /* Three blocks of four: right, right, wrong / wrong, right / one slot, right. */
    const int32_t row[] = {1, 2, 3, 5, 6, 9}, hit[] = {1, 1, 0, 0, 1, 1};
    int32_t accepted[3], labelled[3];
    struct metrics m = {.loss = 6, .weight = 4};
    char text[80];
    metrics_add(&m, hit, row, 6, 3, 4, accepted, labelled);
    ck_assert_double_eq(m.blocks, 3);
    ck_assert_double_eq(m.accepted, 3);
    ck_assert_double_eq(m.hit[1], 2);
    ck_assert_double_eq(m.seen[1], 3);
    ck_assert_double_eq(m.hit[2], 2);
    ck_assert_double_eq(m.seen[2], 2);
    ck_assert_double_eq(m.hit[3], 0);
    ck_assert_double_eq(m.seen[3], 1);
    ck_assert_double_eq(metrics_acceptance(&m), 2);
    ck_assert_double_eq(metrics_accuracy(&m), 4.0 / 6);
    metrics_add(&m, hit, row, 6, 3, 4, accepted, labelled); // sums go on
    ck_assert_double_eq(m.blocks, 6);
    ck_assert_double_eq(metrics_acceptance(&m), 2);
    ck_assert_double_eq(metrics_loss(&m), 1.5);
    metrics_say(text, sizeof text, &m);
    ck_assert_str_eq(text, "loss 1.5000 accuracy 0.667 acceptance 2.000");
}
END_TEST

/* write_log writes steps from .. to, a validation behind every second one. */
static void write_log(const char *path, int64_t from, int64_t to)
{
    struct metrics_log l;
    kit_ok(metrics_open(&l, path, from - 1, 3));
    for (int64_t t = from; t <= to; t++) {
        struct metrics m = {.loss = (double)t, .weight = 2, .blocks = 1, .rows = 1};
        const struct metrics_record r = {t, 0, 2 * t, 0.1 * (double)t, 1};
        m.seen[1] = 1;
        kit_ok(metrics_step(&l, &r, &m));
        if (t % 2 == 0)
            kit_ok(metrics_valid(&l, t, &m));
    }
    kit_ok(metrics_sync(&l));
    metrics_close(&l);
}

START_TEST(writes_one_record_a_line)
{
    size_t n;
    const char *path = kit_path("%s/log", kit_tmp_dir());
    write_log(path, 1, 2);
    char *got = kit_read(path, &n);
    ck_assert_str_eq(
        got,
        "{\"kind\":\"step\",\"step\":1,\"epoch\":0,\"next_row\":2,\"rate\":0.1,"
        "\"norm\":1.0,\"loss\":0.5,\"accuracy\":0.0,\"acceptance\":1.0,\"slots\":[0.0,"
        "null],"
        "\"weight\":2.0,\"blocks\":1,\"rows\":1,\"tokens\":0}\n"
        "{\"kind\":\"step\",\"step\":2,\"epoch\":0,\"next_row\":4,\"rate\":0.2,"
        "\"norm\":1.0,\"loss\":1.0,\"accuracy\":0.0,\"acceptance\":1.0,\"slots\":[0.0,"
        "null],"
        "\"weight\":2.0,\"blocks\":1,\"rows\":1,\"tokens\":0}\n"
        "{\"kind\":\"valid\",\"step\":2,\"loss\":1.0,\"accuracy\":0.0,\"acceptance\":1."
        "0,"
        "\"slots\":[0.0,null],\"weight\":2.0,\"blocks\":1,\"rows\":1,\"tokens\":0}\n");
    mem_free(got);
}
END_TEST

START_TEST(goes_on_at_any_step_and_byte)
{
    size_t n;
    char whole[512], part[512];
    snprintf(whole, sizeof whole, "%s/whole", kit_tmp_dir());
    snprintf(part, sizeof part, "%s/part", kit_tmp_dir());
    write_log(whole, 1, 6);
    char *want = kit_read(whole, &n);
    for (size_t cut = n / 2; cut <= n; cut += 7) { // the cut holds step 3 whole
        kit_write(part, want, cut);
        write_log(part, 4, 6);
        size_t m;
        char *got = kit_read(part, &m);
        ck_assert_uint_eq(m, n);
        kit_same("log", got, want, n);
        mem_free(got);
    }
    write_log(part, 1, 6); // a run from the start begins a new log
    char *got = kit_read(part, &n);
    ck_assert_str_eq(got, want);
    mem_free(got);
    mem_free(want);
}
END_TEST

START_TEST(does_without_a_log)
{
    struct metrics_log l;
    const struct metrics m = {.weight = 1};
    const struct metrics_record r = {.step = 1};
    kit_ok(metrics_open(&l, NULL, 0, 3));
    kit_ok(metrics_step(&l, &r, &m));
    kit_ok(metrics_valid(&l, 1, &m));
    kit_ok(metrics_sync(&l));
    metrics_close(&l);
    kit_fails(metrics_open(&l, "/nonexistent/log", 0, 3), E_MISSING, "/nonexistent");
}
END_TEST

KIT_MAIN("metrics", counts_slots_and_blocks, writes_one_record_a_line,
         goes_on_at_any_step_and_byte, does_without_a_log)
