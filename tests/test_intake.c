/* SPDX-License-Identifier: MIT */
/* test_intake.c - rows over epochs, seeks to any of them, streams, and what is refused.
 */
#include "kit.h"
#include "kit_train.h"

#include "err.h"
#include "file.h"
#include "train/intake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 10 };

static struct kit_rows rows(void)
{
    return (struct kit_rows){
        .rows = ROWS, .per_shard = 4, .target = 0xabc, .bare = -1, .bad = -1};
}

/* expect_row takes a row and checks which it is; the text of row r begins with the
 * record r * KIT_LENGTH (kit_train.c). */
static void expect_row(struct intake *in, int64_t index, int64_t epoch)
{
    struct intake_row row;
    kit_ok(intake_next(in, &row));
    ck_assert_int_eq(row.row.index, index);
    ck_assert_int_eq(row.epoch, epoch);
    const struct anchor_row *x = &row.row.text;
    ck_assert_int_eq(x->source[x->doc[0] * 3 + 1], index * KIT_LENGTH);
}

static void open_one(struct intake *in, const char *path)
{
    char *const list[] = {(char *)(uintptr_t)path, NULL};
    kit_ok(intake_open(in, list, 1));
}

START_TEST(goes_round_and_seeks)
{
    struct intake in;
    const struct kit_rows k = rows();
    char dir[512];
    snprintf(dir, sizeof dir, "%s", kit_tmp_dir());
    kit_hidden(dir, &k);
    open_one(&in, dir);
    ck_assert_int_eq(in.about.rows, ROWS);
    ck_assert_int_eq(in.about.length, KIT_LENGTH);
    ck_assert_int_eq(in.about.hidden, KIT_HIDDEN);
    ck_assert_int_eq(in.about.taps, 2);
    ck_assert_int_eq(in.about.tap[1], 2);
    ck_assert_str_eq(in.about.taps_text, "1,2");
    ck_assert_uint_eq(in.about.target, 0xabc);
    ck_assert_uint_eq(strlen(in.about.first), 16);
    for (int64_t i = 0; i < 2 * ROWS + 3; i++)
        expect_row(&in, i % ROWS, i / ROWS);
    for (int64_t at = 0; at < 2 * ROWS + 3; at++) {
        kit_ok(intake_seek(&in, at));
        for (int64_t i = at; i < at + 6; i++)
            expect_row(&in, i % ROWS, i / ROWS);
        ck_assert_int_eq(in.taken, at + 6);
    }
    intake_close(&in);
}
END_TEST

/* become_stdin gives the test process a file with the run's bytes as standard input. */
static void become_stdin(const char *dir)
{
    const char *all = kit_path("%s/all", kit_tmp_dir());
    int out = open(all, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(out, 0);
    const char *const name[] = {"00000", "00001", "00002", "end"};
    for (int i = 0; i < 4; i++) {
        struct file_map m;
        kit_ok(file_map(&m, kit_path("%s/hidden-%s.safetensors", dir, name[i])));
        kit_ok(file_put(out, m.data, m.size, "all"));
        file_unmap(&m);
    }
    ck_assert_int_eq(lseek(out, 0, SEEK_SET), 0);
    ck_assert_int_eq(dup2(out, STDIN_FILENO), STDIN_FILENO);
    close(out);
}

START_TEST(reads_a_stream_once)
{
    struct intake in;
    struct intake_row row;
    const struct kit_rows k = rows();
    char dir[512];
    snprintf(dir, sizeof dir, "%s", kit_tmp_dir());
    kit_hidden(dir, &k);
    become_stdin(dir);
    open_one(&in, "-");
    ck_assert_int_eq(in.about.rows, -1);
    expect_row(&in, 0, 0);
    kit_ok(intake_seek(&in, 6)); // forward, over a shard's end
    for (int64_t i = 6; i < ROWS; i++)
        expect_row(&in, i, 0);
    kit_fails(intake_seek(&in, 3), E_CONFIG, "next to train on is 3");
    kit_fails(intake_next(&in, &row), E_CONFIG, "ends after row 10");
    intake_close(&in);
}
END_TEST

START_TEST(refuses_what_is_not_hidden_states)
{
    struct intake in;
    struct kit_rows k = rows();
    char dir[512];
    char *const list[] = {dir, NULL};
    k.stage = "pack";
    snprintf(dir, sizeof dir, "%s", kit_tmp_dir());
    kit_hidden(dir, &k);
    kit_fails(intake_open(&in, list, 1), E_FORMAT, "written by draft-pack");
    const char *const taps[] = {"1,", "x", "1 2", "1,2,3", ","};
    for (size_t i = 0; i < sizeof taps / sizeof *taps; i++) {
        k = rows();
        k.taps = taps[i];
        snprintf(dir, sizeof dir, "%s", kit_tmp_dir());
        kit_hidden(dir, &k);
        int rc = intake_open(&in, list, 1);
        if (i > 0) // one tap of width 128 is as good as two of 64
            ck_assert_int_eq(rc, E_FORMAT);
        intake_close(&in);
    }
}
END_TEST

START_TEST(refuses_runs_of_two_targets)
{
    struct intake in;
    struct kit_rows k = rows();
    char one[512], two[512];
    char *const list[] = {one, two, NULL};
    snprintf(one, sizeof one, "%s", kit_tmp_dir());
    snprintf(two, sizeof two, "%s", kit_tmp_dir());
    kit_hidden(one, &k);
    k.target = 0xabd;
    kit_hidden(two, &k);
    kit_ok(intake_open(&in, list, 2));
    for (int64_t i = 0; i < ROWS; i++)
        expect_row(&in, i, 0);
    struct intake_row row;
    kit_fails(intake_next(&in, &row), E_CONFIG, "target or taps differ");
    intake_close(&in);
}
END_TEST

KIT_MAIN("intake", goes_round_and_seeks, reads_a_stream_once,
         refuses_what_is_not_hidden_states, refuses_runs_of_two_targets)
