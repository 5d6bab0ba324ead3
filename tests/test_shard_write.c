/* SPDX-License-Identifier: MIT */
/* test_shard_write.c - a run that was interrupted anywhere ends as if it never was. */
#include "kit_shard.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"

enum {
    ROWS = 7,
    FILES = 5
}; // 2 rows a shard: four shards, the last short, and the end

static const char *const names[FILES] = {
    "tiny-00000.safetensors", "tiny-00001.safetensors", "tiny-00002.safetensors",
    "tiny-00003.safetensors", "tiny-end.safetensors"};

static struct shard_options options(void)
{
    return kit_run_options();
}

/* A text that lasts as long as a test needs it. */
static char *own(const char *path)
{
    static char kept[16][512];
    static int turn;
    char *copy = kept[turn++ % 16];
    ck_assert_uint_lt(strlen(path), sizeof kept[0]);
    memcpy(copy, path, strlen(path) + 1);
    return copy;
}

static char *whole_run(void)
{
    struct shard_options o = options();
    char *dir = own(kit_tmp_dir());
    kit_run_write(dir, &o, ROWS);
    return dir;
}

static char *copy_of(const char *dir, int files)
{
    char *copy = own(kit_tmp_dir());
    for (int i = 0; i < files; i++)
        kit_cat(kit_path("%s/%s", copy, names[i]), kit_path("%s/%s", dir, names[i]));
    return copy;
}

static void same_folders(const char *a, const char *b)
{
    char **list;
    int64_t n;
    for (int i = 0; i < FILES; i++) {
        size_t na, nb;
        char *x = kit_read(kit_path("%s/%s", a, names[i]), &na);
        char *y = kit_read(kit_path("%s/%s", b, names[i]), &nb);
        ck_assert_uint_eq(na, nb);
        kit_same(names[i], x, y, na);
        mem_free(x);
        mem_free(y);
    }
    kit_ok(file_list(a, &list, &n));
    ck_assert_int_eq(n, FILES);
    file_list_free(list, n);
    for (int i = 0; i < FILES; i++)
        ck_assert(!file_exists(kit_path("%s/%s.tmp", a, names[i])));
}

/* What shard_create says of a folder; the writer, if any, is given up. */
static int create(const char *dir, const struct shard_options *o, int64_t *have)
{
    struct shard_writer *w;
    int rc = shard_create(&w, dir, o, have);
    ck_assert((w == NULL) == (rc != 0));
    shard_abandon(w);
    return rc;
}

START_TEST(nothing_to_do)
{
    struct shard_options o = options();
    char *dir = whole_run();
    struct stat before, after;
    int64_t have;
    ck_assert_int_eq(stat(kit_path("%s/%s", dir, names[4]), &before), 0);
    ck_assert_int_eq(create(dir, &o, &have), 1);
    ck_assert_int_eq(have, ROWS);
    ck_assert_int_eq(stat(kit_path("%s/%s", dir, names[4]), &after), 0);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

/* The last full shard can be looked at. */
static void check_resumed(const char *dir, const struct shard_options *o, int64_t have)
{
    struct shard_writer *w;
    kit_ok(shard_create(&w, dir, o, &have));
    const struct shard_view *v = shard_resumed(w);
    ck_assert((v == NULL) == (have == 0));
    if (v)
        kit_run_check(v, have - 2);
    shard_abandon(w);
}

/* Killed after any number of files, with the next begun under its temporary name. */
START_TEST(killed_anywhere)
{
    struct shard_options o = options();
    char *dir = whole_run();
    for (int files = 0; files < FILES; files++)
        for (int begun = 0; begun < 2; begun++) {
            char *copy = copy_of(dir, files);
            int64_t have;
            if (begun)
                kit_write(kit_path("%s/%s.tmp", copy, names[files]), "half", 4);
            ck_assert_int_eq(create(copy, &o, &have), 0);
            ck_assert_int_eq(have, files < 3 ? 2 * files : 6); // a short one is redone
            check_resumed(copy, &o, have);
            kit_run_write(copy, &o, ROWS);
            same_folders(copy, dir);
        }
}
END_TEST

START_TEST(abandoned)
{
    struct shard_options o = options();
    char *dir = own(kit_path("%s/a/b", kit_tmp_dir())), *want = whole_run();
    struct shard_writer *w;
    int64_t have;
    kit_ok(shard_create(&w, dir, &o, &have));
    ck_assert_ptr_null(shard_resumed(w));
    kit_run_fill(w, 0, 5);
    shard_abandon(w); // two shards are written, the fifth row is lost
    kit_ok(shard_create(&w, dir, &o, &have));
    ck_assert_int_eq(have, 4);
    const struct shard_view *v = shard_resumed(w);
    ck_assert_int_eq(v->first_row, 2);
    kit_run_check(v, 2);
    kit_run_fill(w, 4, ROWS);
    ck_assert_ptr_null(shard_resumed(w));
    kit_ok(shard_end_meta(w, "late", "known at the end"));
    kit_ok(shard_finish(w));
    same_folders(dir, want);
}
END_TEST

/* Any shard lost from a whole run: the end file goes first, then the gap is filled. */
START_TEST(shard_lost)
{
    struct shard_options o = options();
    char *dir = whole_run();
    for (int lost = 0; lost < FILES - 1; lost++) {
        char *copy = copy_of(dir, FILES);
        int64_t have;
        kit_ok(unlink(kit_path("%s/%s", copy, names[lost])));
        ck_assert_int_eq(create(copy, &o, &have), 0);
        ck_assert_int_eq(have, 2 * lost);
        ck_assert(!file_exists(kit_path("%s/%s", copy, names[4])));
        kit_fails(kit_run_read(&copy, 1, 0, NULL), E_FORMAT, "incomplete");
        kit_run_write(copy, &o, ROWS);
        same_folders(copy, dir);
    }
}
END_TEST

static void damage(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    char c;
    kit_ok(file_pread(fd, &c, 1, at, path));
    c ^= 1;
    kit_ok(file_pwrite(fd, &c, 1, at, path));
    close(fd);
}

START_TEST(damaged)
{
    struct shard_options o = options();
    char *dir = whole_run();
    int64_t have;
    for (int i = 0; i < FILES; i++) {
        char *copy = copy_of(dir, FILES);
        damage(kit_path("%s/%s", copy, names[i]), 3000);
        kit_fails(create(copy, &o, &have), E_FORMAT, names[i]);
    }
    char *copy = copy_of(dir, 3);
    damage(kit_path("%s/%s", copy, names[2]), 4100); // the data of the last one
    kit_fails(create(copy, &o, &have), E_FORMAT, "checksum does not match");
    kit_ok(unlink(kit_path("%s/%s", copy, names[2])));
    kit_run_write(copy, &o, ROWS);
    same_folders(copy, dir);
}
END_TEST

static void refuses(const struct shard_options *o, const char *text)
{
    char *dir = whole_run(), *copy = copy_of(dir, 2);
    int64_t have;
    kit_fails(create(dir, o, &have), E_CONFIG, text);
    kit_fails(create(copy, o, &have), E_CONFIG, text);
    same_folders(dir, whole_run()); // and nothing was touched
}

START_TEST(other_content)
{
    static const char *const changed[] = {"input", "fedcba9876543210", "options",
                                          "a=1"};
    static const char *const more[] = {"input", "0123456789abcdef", "options",
                                       "a=1",   "options2",         "b=2"};
    struct shard_options o = options();
    o.meta = changed;
    refuses(&o, "input is \"0123456789abcdef\", now \"fedcba9876543210\"");
    o = options();
    o.meta = more;
    o.metas = 3;
    refuses(&o, "another run");
    o = options();
    o.metas = 1;
    refuses(&o, "options");
    o = options();
    o.stage = "other";
    refuses(&o, "stage is \"test\", now \"other\"");
    o = options();
    o.rows_per_shard = 1;
    refuses(&o, "number of rows is 2, now 1");
    o = options();
    o.first_row = 1;
    refuses(&o, "first row is 0, now 1");
    o = options();
    o.column[3].dim[1] = 4;
    refuses(&o, "x is 2, now 4");
    o = options();
    o.column[3].type = ST_F16;
    refuses(&o, "x is \"BF16\", now \"F16\"");
    o = options();
    o.columns = 3;
    refuses(&o, "number of tensors is 4, now 3");
    o = options();
    o.parts = 2;
    refuses(&o, "a run in 1 parts; this is one of 2");
}
END_TEST

/* More rows a shard than before: seen as short shards, so it must not pass for resumed.
 */
START_TEST(other_shard_size)
{
    struct shard_options o = options();
    char *dir = whole_run();
    int64_t have;
    o.rows_per_shard = 3;
    kit_fails(create(dir, &o, &have), E_CONFIG, "number of rows is 2, now 3");
    for (int i = 1; i < FILES - 1; i++)
        kit_ok(unlink(kit_path("%s/%s", dir, names[i])));
    kit_fails(create(dir, &o, &have), E_CONFIG, "number of rows is 2, now 3");
    ck_assert(file_exists(kit_path("%s/%s", dir, names[4])));
}
END_TEST

START_TEST(two_names_in_a_folder)
{
    struct shard_options o = options();
    char *dir = whole_run();
    o.name = "other";
    kit_run_write(dir, &o, ROWS);
    kit_fails(kit_run_read(&dir, 1, 0, NULL), E_CONFIG, "two runs, other and tiny");
}
END_TEST

/* Data that no disk takes: the message names the output, nothing is left behind. */
START_TEST(full_disk)
{
    struct shard_options o = options();
    struct shard_writer *w;
    int64_t have;
    fflush(stdout);
    int full = open("/dev/full", O_WRONLY), out = dup(STDOUT_FILENO);
    dup2(full, STDOUT_FILENO);
    kit_ok(shard_create(&w, "-", &o, &have));
    kit_run_fill(w, 0, 1);
    int rc = shard_finish(w);
    dup2(out, STDOUT_FILENO);
    kit_fails(rc, E_IO, "cannot write standard output");
    close(full);
    close(out);
}
END_TEST

START_TEST(rows_by_size)
{
    struct shard_options o = options();
    struct shard_writer *w;
    void *first[SHARD_COLUMNS], *at[SHARD_COLUMNS];
    int64_t have;
    o.rows_per_shard = 0;
    o.columns = 1;
    o.column[0] = (struct shard_column){
        .name = "big", .type = ST_U8, .rank = 1, .dim = {60 << 20}};
    char *dir = own(kit_tmp_dir());
    kit_ok(shard_create(&w, dir, &o, &have));
    kit_ok(shard_row(w, first));
    for (int i = 1; i < 4; i++) { // 4 x 60 MiB fit 256 MiB: not yet written
        kit_ok(shard_row(w, at));
        ck_assert_ptr_eq(at[0], (char *)first[0] + i * (60 << 20));
    }
    shard_abandon(w);
    o.column[0].dim[0] = INT64_MAX / 2;
    kit_fails(create(dir, &o, &have), E_CONFIG, "out of range");
}
END_TEST

KIT_MAIN("shard_write", nothing_to_do, killed_anywhere, abandoned, shard_lost, damaged,
         other_content, other_shard_size, two_names_in_a_folder, full_disk,
         rows_by_size)
