/* SPDX-License-Identifier: MIT */
/* test_shard.c - what is written is read; what is damaged in any byte is refused. */
#include "kit_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "shard_source.h"

#define PATHS(...) ((char *[]){__VA_ARGS__})

/* A copy of a path that lasts as long as a test needs it. */
static char *own(const char *path)
{
    static char kept[64][512];
    static int turn;
    char *copy = kept[turn++ % 64];
    ck_assert_uint_lt(strlen(path), sizeof kept[0]);
    memcpy(copy, path, strlen(path) + 1);
    return copy;
}

/* A new folder with a run of `rows` rows. */
static char *new_run(const struct shard_options *o, int64_t rows)
{
    char *dir = own(kit_tmp_dir());
    kit_run_write(dir, o, rows);
    return dir;
}

/* A new file with a run as a stream. */
static char *new_stream(const struct shard_options *o, int64_t rows)
{
    char *path = own(kit_path("%s/stream", kit_tmp_dir()));
    kit_run_stream(path, o, rows);
    return path;
}

static int read_one(char *path, int64_t first, int64_t *rows)
{
    return kit_run_read(&path, 1, first, rows);
}

/* Reads all of an input without the reader's thread, for loops over thousands of
 * damaged files; what the rows hold is not looked at. */
static int drain(const char *path)
{
    struct shard_sources list = {0};
    struct shard_slot slot = {0};
    int rc = shard_source_add(&list, path, -1);
    for (int64_t i = 0; i < list.n && rc >= 0; i++)
        while ((rc = shard_source_next(&list.at[i], &slot, true)) > 0)
            continue;
    shard_slot_drop(&slot);
    shard_source_drop(&list);
    return rc;
}

START_TEST(folder)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 7);
    struct shard_reader *r;
    struct shard_view v;
    struct st_file end;
    uint64_t digest, want;
    kit_ok(shard_open(&r, &dir, 1));
    ck_assert_int_eq(shard_total_rows(r), 7);
    ck_assert_str_eq(shard_meta(r, "options"), "a=1");
    ck_assert_str_eq(shard_meta(r, "late"), "known at the end");
    ck_assert_ptr_null(shard_meta(r, "none"));
    for (int64_t row = 0; row < 7; row += 2) {
        ck_assert_int_eq(shard_next(r, &v), 1);
        ck_assert_int_eq(v.first_row, row);
        ck_assert_int_eq(v.rows, row < 6 ? 2 : 1);
        ck_assert_ptr_nonnull(strstr(v.name, "tiny-0000"));
        kit_run_check(&v, row);
    }
    ck_assert_int_eq(shard_next(r, &v), 0);
    ck_assert_int_eq(shard_next(r, &v), 0);
    kit_ok(shard_digest(r, &digest));
    kit_ok(st_open(&end, kit_path("%s/tiny-end.safetensors", dir)));
    kit_ok(hash_parse(st_meta(&end.header, "header_xxh3"), &want));
    ck_assert_uint_eq(digest, want);
    ck_assert_str_eq(st_meta(&end.header, "rows"), "7");
    ck_assert_str_eq(st_meta(&end.header, "shards"), "4");
    st_close(&end);
    shard_close(r);
}
END_TEST

START_TEST(stream_is_cat)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 5), *stream = new_stream(&o, 5);
    const char *cat = kit_path("%s/cat", dir);
    size_t n, m;
    int64_t rows;
    for (int i = 0; i < 3; i++)
        kit_cat(cat, kit_path("%s/tiny-%05d.safetensors", dir, i));
    kit_cat(cat, kit_path("%s/tiny-end.safetensors", dir));
    char *a = kit_read(stream, &n), *b = kit_read(cat, &m);
    ck_assert_uint_eq(n, m);
    kit_same("stream", a, b, n);
    ck_assert_int_eq(read_one(stream, 0, &rows), 0);
    ck_assert_int_eq(rows, 5);
    mem_free(a);
    mem_free(b);
}
END_TEST

/* The format may not drift: these bytes were checked by hand against docs/shard.md. */
START_TEST(golden)
{
    struct shard_options o = kit_run_options();
    char *stream = new_stream(&o, 3);
    size_t n;
    char *p = kit_read(stream, &n);
    const char begin[] = "\xf8\x0f\0\0\0\0\0\0{\"__metadata__\":{\"header_xxh3\":\"";
    kit_same("begin", p, begin, sizeof begin - 1);
    ck_assert_uint_eq(n, 3 * 4096 + 16 + 2 * 3 * (4 + 1 + 4) + 32 + 3 * (4 + 1 + 4));
    ck_assert_uint_eq(hash_bytes(p, n), UINT64_C(14081641220468875294));
    mem_free(p);
}
END_TEST

/* ---- damage ---- */

static void overwrite(const char *path, off_t at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    kit_ok(file_pwrite(fd, bytes, n, at, path));
    close(fd);
}

/* With each byte in turn changed in one bit, a file or folder must be refused. */
static void refuses_flips(const char *file, char *input)
{
    size_t n;
    char *p = kit_read(file, &n);
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' && i % 31 != 0) // padding, all bits of which every_bit tries
            continue;
        char wrong = (char)(p[i] ^ 1 << i % 8);
        overwrite(file, (off_t)i, &wrong, 1);
        int rc = i % 97 == 0 ? read_one(input, 0, NULL) : drain(input);
        ck_assert_msg(rc == E_FORMAT, "byte %zu of %s: %d, %s", i, file, rc,
                      err_text());
        ck_assert_msg(strstr(err_text(), input), "no name in: %s", err_text());
        overwrite(file, (off_t)i, &p[i], 1);
    }
    ck_assert_int_eq(read_one(input, 0, NULL), 0);
    mem_free(p);
}

START_TEST(flips_in_folder)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 3);
    refuses_flips(kit_path("%s/tiny-00000.safetensors", dir), dir);
    refuses_flips(kit_path("%s/tiny-end.safetensors", dir), dir);
}
END_TEST

START_TEST(flips_in_stream)
{
    struct shard_options o = kit_run_options();
    char *stream = new_stream(&o, 3);
    refuses_flips(stream, stream);
}
END_TEST

START_TEST(every_bit)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 2);
    struct shard_head h;
    size_t n, size = 4096;
    char *p = kit_read(kit_path("%s/tiny-00000.safetensors", dir), &n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        p[bit / 8] ^= (char)(1 << bit % 8);
        int rc = shard_head_parse(&h, p, size);
        if (rc == 0) {
            ck_assert_uint_ge(bit, 8 * size);
            rc = shard_head_check(&h, p + size);
            shard_head_drop(&h);
        }
        ck_assert_int_eq(rc, E_FORMAT);
        p[bit / 8] ^= (char)(1 << bit % 8);
    }
    mem_free(p);
}
END_TEST

START_TEST(every_cut)
{
    struct shard_options o = kit_run_options();
    char *stream = new_stream(&o, 2);
    size_t n;
    char *p = kit_read(stream, &n);
    for (size_t i = n; i-- > 0;) {
        ck_assert_int_eq(truncate(stream, (off_t)i), 0);
        int fd = open(stream, O_RDONLY);
        dup2(fd, STDIN_FILENO);
        close(fd);
        int rc = i % 97 == 0 ? read_one("-", 0, NULL) : drain("-");
        ck_assert_msg(rc == E_FORMAT, "%zu bytes: %d, %s", i, rc, err_text());
        ck_assert_ptr_nonnull(strstr(err_text(), "cut stream"));
    }
    mem_free(p);
}
END_TEST

START_TEST(cut_file_in_folder)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 3);
    const char *file = kit_path("%s/tiny-00001.safetensors", dir);
    size_t n;
    char *p = kit_read(file, &n);
    kit_cat(file, kit_path("%s/tiny-end.safetensors", dir));
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "bytes behind its data");
    for (size_t i = n; i-- > 0;) {
        ck_assert_int_eq(truncate(file, (off_t)i), 0);
        kit_fails(drain(dir), E_FORMAT, "tiny-00001");
    }
    mem_free(p);
}
END_TEST

/* ---- order ---- */

/* A stream put together from files of a folder, named by `what`: digits are shards, e
 * the end file. */
static char *stream_of(const char *dir, const char *what)
{
    char *path = own(kit_path("%s/stream", kit_tmp_dir()));
    for (; *what; what++)
        kit_cat(path, *what == 'e'
                          ? kit_path("%s/tiny-end.safetensors", dir)
                          : kit_path("%s/tiny-0000%c.safetensors", dir, *what));
    return path;
}

static void refuses_order(const char *dir, const char *what, const char *text)
{
    char *stream = stream_of(dir, what);
    kit_fails(drain(stream), E_FORMAT, text);
}

START_TEST(order)
{
    struct shard_options o = kit_run_options(), other = o;
    const char *const meta[] = {"input", "0123456789abcdef", "options", "a=2"};
    char *dir = new_run(&o, 5);
    refuses_order(dir, "102e", "shard 1, expected 0");
    refuses_order(dir, "021e", "shard 2, expected 1");
    refuses_order(dir, "0012e", "shard 0, expected 1");
    refuses_order(dir, "02e", "shard 2, expected 1");
    refuses_order(dir, "01e", "end after shard 3, expected 2");
    refuses_order(dir, "012", "cut stream: the end file is missing");
    refuses_order(dir, "0120", "shard 0, expected 3");
    refuses_order(dir, "012e0", "cut stream: the end file is missing");
    refuses_order(dir, "012ee", "end after shard 3, expected 0");

    /* The right name, number and rows, but of a run made with other options. */
    other.meta = meta;
    char *dir2 = new_run(&other, 5);
    kit_ok(rename(kit_path("%s/tiny-00001.safetensors", dir2),
                  kit_path("%s/tiny-00001.safetensors", dir)));
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "digest does not match");
    refuses_order(dir, "012e", "digest does not match");
}
END_TEST

START_TEST(incomplete_folder)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 5);
    char *one = own(kit_path("%s/tiny-00001.safetensors", dir));
    kit_write(kit_path("%s/tiny-00009.safetensors.tmp", dir), "x", 1);
    kit_write(kit_path("%s/.tiny-00009.safetensors", dir), "x", 1);
    kit_write(kit_path("%s/report.json", dir), "x", 1);
    ck_assert_int_eq(read_one(dir, 0, NULL), 0);
    kit_ok(rename(one, kit_path("%s/tiny-00003.safetensors", dir)));
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "incomplete: no tiny-00001");
    kit_ok(rename(kit_path("%s/tiny-00003.safetensors", dir), one));
    kit_ok(rename(kit_path("%s/tiny-end.safetensors", dir), kit_path("%s/e", dir)));
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "incomplete: no tiny-end");
    kit_ok(rename(kit_path("%s/e", dir), kit_path("%s/tiny-end.safetensors", dir)));
    kit_ok(unlink(kit_path("%s/tiny-00002.safetensors", dir)));
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "incomplete: no tiny-00002");
    kit_cat(kit_path("%s/tiny-00002.safetensors", dir), one);
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "tiny-00002.safetensors: out of order");
    kit_cat(kit_path("%s/tiny-00003.safetensors", dir), one);
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "4 shards");
    kit_fails(read_one(own(kit_tmp_dir()), 0, NULL), E_MISSING, "no shards");
    kit_fails(read_one(own(kit_path("%s/none", dir)), 0, NULL), E_MISSING, "none");
}
END_TEST

/* ---- headers that lie ---- */

/* Replaces a text of the header by one of the same length and makes the checksum fit.
 */
static void forge(const char *file, const char *find, const char *put)
{
    size_t n;
    char sum[HASH_TEXT], *p = kit_read(file, &n), *at = strstr(p + 8, find);
    ck_assert_msg(at && strlen(find) == strlen(put), "no %s in %s", find, file);
    memcpy(at, put, strlen(put));
    memset(p + 40, '0', 16);
    memcpy(p + 40, hash_text(sum, hash_bytes(p, 4096)), 16);
    overwrite(file, 0, p, n);
    mem_free(p);
}

START_TEST(forged)
{
    static const struct {
        const char *file, *find, *put, *text;
    } cases[] = {
        {"00001", "\"first_row\":\"2\"", "\"first_row\":\"3\"", "row 3, expected 2"},
        {"00001", "\"first_row\":\"2\"", "\"first_row\":\"x\"", "\"x\" is not a count"},
        {"00001", "\"first_row\":\"2\"", "\"first_row\":\"\" ", "\"\" is not a count"},
        {"00001", "\"first_row\":\"2\"", "\"first_roW\":\"2\"", "no \"first_row\""},
        {"00001", "\"shard\":\"1\"", "\"shard\":\"2\"", "shard 2, expected 1"},
        {"00001", "\"rows\":\"2\"", "\"rows\":\"3\"", "does not have 3 rows"},
        {"00001", "\"rows\":\"2\"", "\"rows\":\"0\"", "without rows"},
        {"00001", "\"part\":\"0\"", "\"part\":\"1\"", "part 1 of 1"},
        {"00001", "\"name\":\"tiny\"", "\"name\":\"tinY\"", "run tinY inside"},
        {"00001", "\"shard_format\":\"1\"", "\"shard_format\":\"2\"", "shard format 2"},
        {"00001", "\"xxh3.ids\"", "\"xxh3.idz\"", "no \"xxh3.ids\""},
        {"00000", "\"fixed\":\"doc\"", "\"fixed\":\"ids\"",
         "tensor doc: does not have"},
        {"00001", "\"stage\":\"test\"", "\"stage\":\"tesT\"", "digest does not match"},
        {"end", "\"rows\":\"5\"", "\"rows\":\"6\"", "tells of 6 rows, there are 5"},
        {"end", "\"shards\":\"3\"", "\"shards\":\"2\"", "3 shards"},
        {"end", "\"shards\":\"3\"", "\"shards\":\"4\"", "no tiny-00003"}};
    struct shard_options o = kit_run_options();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *dir = new_run(&o, 5);
        forge(kit_path("%s/tiny-%s.safetensors", dir, cases[i].file), cases[i].find,
              cases[i].put);
        kit_fails(drain(dir), E_FORMAT, cases[i].text);
    }
}
END_TEST

/* ---- parts and runs ---- */

static void write_part(const char *dir, int part, int parts, int64_t first,
                       int64_t rows)
{
    struct shard_options o = kit_run_options();
    o.part = part;
    o.parts = parts;
    o.first_row = first;
    kit_run_write(dir, &o, rows);
}

START_TEST(parts)
{
    char *dir = own(kit_tmp_dir());
    int64_t rows;
    for (int i = 11; i >= 0; i--) {
        if (i < 11)
            kit_fails(read_one(dir, 0, NULL), E_FORMAT, "incomplete");
        write_part(dir, i, 12, 3 * i, 3);
    }
    ck_assert(file_exists(kit_path("%s/tiny-02-of-12-00001.safetensors", dir)));
    ck_assert_int_eq(read_one(dir, 0, &rows), 0);
    ck_assert_int_eq(rows, 36);
    kit_ok(unlink(kit_path("%s/tiny-03-of-12-end.safetensors", dir)));
    kit_fails(read_one(dir, 0, NULL), E_FORMAT, "no tiny-03-of-12-end");
    write_part(dir, 3, 12, 9, 3);
    ck_assert_int_eq(read_one(dir, 0, NULL), 0);
    struct shard_options o = kit_run_options();
    struct shard_writer *w;
    int64_t have;
    kit_fails(shard_create(&w, dir, &o, &have), E_CONFIG, "12 parts");
}
END_TEST

START_TEST(parts_in_a_stream)
{
    struct shard_options o = kit_run_options();
    char *path = own(kit_path("%s/all", kit_tmp_dir()));
    int64_t rows;
    o.parts = 3;
    for (o.part = 0; o.part < 3; o.part++) {
        o.first_row = 4 * o.part;
        char *one = new_stream(&o, 4);
        ck_assert_int_eq(read_one(one, o.first_row, &rows), 0); // each stands alone
        kit_cat(path, one);
    }
    ck_assert_int_eq(read_one(path, 0, &rows), 0);
    ck_assert_int_eq(rows, 12);
    o.part = o.first_row = 0;
    kit_cat(path, new_stream(&o, 4)); // a second time round
    kit_cat(path, new_stream(&o, 4)); // but not part 0 again
    kit_fails(drain(path), E_FORMAT, "part 0, expected 1");
}
END_TEST

START_TEST(runs_in_a_row)
{
    static const int64_t starts[] = {0, 2, 3, 5};
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 3), *twice = stream_of(dir, "01e01e");
    struct shard_reader *r;
    struct shard_view v;
    uint64_t a, b, one;
    kit_ok(shard_open(&r, &dir, 1));
    kit_ok(shard_digest(r, &one));
    shard_close(r);
    kit_ok(shard_open(&r, PATHS(dir, dir), 2));
    ck_assert_int_eq(shard_total_rows(r), 6);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(shard_next(r, &v), 1);
        ck_assert_int_eq(v.first_row, starts[i]);
        kit_run_check(&v, i % 2 * 2);
    }
    ck_assert_int_eq(shard_next(r, &v), 0);
    kit_ok(shard_digest(r, &a));
    shard_close(r);
    ck_assert_uint_ne(a, one);

    kit_ok(shard_open(&r, &twice, 1));
    ck_assert_int_eq(shard_total_rows(r), -1);
    ck_assert_ptr_null(shard_meta(r, "late"));
    for (int i = 0; i < 4; i++) {
        kit_fails(shard_digest(r, &b), E_AGAIN, "at its end");
        ck_assert_int_eq(shard_next(r, &v), 1);
        ck_assert_int_eq(v.first_row, starts[i]);
        kit_run_check(&v, i % 2 * 2);
    }
    ck_assert_int_eq(shard_next(r, &v), 0);
    kit_ok(shard_digest(r, &b));
    ck_assert_uint_eq(a, b);
    ck_assert_str_eq(shard_meta(r, "late"), "known at the end");
    shard_close(r);
}
END_TEST

START_TEST(empty_run)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 0), *stream = new_stream(&o, 0), *full = new_run(&o, 2);
    int64_t rows;
    ck_assert_int_eq(read_one(dir, 0, &rows), 0);
    ck_assert_int_eq(read_one(stream, 0, &rows), 0);
    ck_assert_int_eq(kit_run_read(PATHS(dir, full, stream), 3, 0, &rows), 0);
    ck_assert_int_eq(rows, 2);
}
END_TEST

START_TEST(single_files)
{
    struct shard_options o = kit_run_options();
    char *dir = new_run(&o, 4);
    char *a = own(kit_path("%s/tiny-00000.safetensors", dir));
    char *b = own(kit_path("%s/tiny-00001.safetensors", dir));
    char *end = own(kit_path("%s/tiny-end.safetensors", dir));
    int64_t rows;
    ck_assert_int_eq(kit_run_read(PATHS(a, b), 2, 0, &rows), 0);
    ck_assert_int_eq(rows, 4);
    ck_assert_int_eq(kit_run_read(PATHS(b), 1, 2, &rows), 0);
    ck_assert_int_eq(rows, 2);
    kit_fails(kit_run_read(PATHS(a, b, end), 3, 0, &rows), E_CONFIG, "their folder");
}
END_TEST

START_TEST(unlike_inputs)
{
    struct shard_options o = kit_run_options(), p = o;
    char *dir = new_run(&o, 2), *other, *stream;
    p.stage = "other";
    other = new_run(&p, 2);
    kit_fails(kit_run_read(PATHS(dir, other), 2, 0, NULL), E_CONFIG,
              "written by other");
    p = o;
    p.column[3].type = ST_F16;
    other = new_run(&p, 2);
    kit_fails(kit_run_read(PATHS(dir, other), 2, 0, NULL), E_CONFIG, "tensor x");
    stream = new_stream(&p, 2);
    kit_fails(kit_run_read(PATHS(dir, stream), 2, 0, NULL), E_CONFIG, "tensor x");
}
END_TEST

/* ---- going about ---- */

START_TEST(seek)
{
    struct shard_options o = kit_run_options();
    o.first_row = 10;
    char *a = new_run(&o, 5);
    o.first_row = 0;
    char *b = new_run(&o, 3);
    struct shard_reader *r;
    struct shard_view v;
    kit_ok(shard_open(&r, PATHS(a, b), 2));
    for (int64_t row = 17; row >= 10; row--) {
        static const int64_t first[] = {10, 10, 12, 12, 14, 15, 15, 17};
        kit_ok(shard_seek(r, row));
        ck_assert_str_eq(shard_meta(r, "options"), "a=1");
        for (int64_t at = first[row - 10]; at < 18; at += v.rows) {
            ck_assert_int_eq(shard_next(r, &v), 1);
            ck_assert_int_eq(v.first_row, at);
            kit_run_check(&v, at < 15 ? at : at - 15);
        }
        ck_assert_int_eq(shard_next(r, &v), 0);
    }
    kit_ok(shard_seek(r, 18));
    ck_assert_int_eq(shard_next(r, &v), 0);
    kit_fails(shard_seek(r, 9), E_CONFIG, "no row 9: the input has 10 to 17");
    kit_fails(shard_seek(r, 19), E_CONFIG, "no row 19");
    kit_ok(shard_seek(r, 11));
    ck_assert_int_eq(shard_next(r, &v), 1);
    shard_close(r);
    char *stream = new_stream(&o, 3);
    kit_ok(shard_open(&r, &stream, 1));
    kit_fails(shard_seek(r, 0), E_CONFIG, "stream");
    shard_close(r);
}
END_TEST

/* Makes the calling process's stdin the reading end of a pipe; returns the other. */
static int pipe_to_stdin(void)
{
    int fd[2];
    ck_assert_int_eq(pipe(fd), 0);
    dup2(fd[0], STDIN_FILENO);
    close(fd[0]);
    return fd[1];
}

START_TEST(stdin_in_crumbs)
{
    struct shard_options o = kit_run_options();
    char *stream = new_stream(&o, 5), *dash = "-";
    int to = pipe_to_stdin(), status;
    size_t n;
    int64_t rows;
    char *p = kit_read(stream, &n);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0, step = 1; i < n; i += step, step = step % 997 + 1)
            if (file_put(to, p + i, step < n - i ? step : n - i, "pipe") < 0)
                _exit(1);
        _exit(0);
    }
    close(to);
    ck_assert_int_eq(read_one(dash, 0, &rows), 0);
    ck_assert_int_eq(rows, 5);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    mem_free(p);
}
END_TEST

/* Reading ends early: the writer learns it at once, quietly and with E_IO. */
START_TEST(reader_leaves)
{
    char *dash = "-";
    struct shard_reader *r;
    struct shard_view v;
    int to = pipe_to_stdin(), status;
    signal(SIGPIPE, SIG_IGN);
    pid_t child = fork();
    if (child == 0) {
        struct shard_options o = kit_run_options();
        struct shard_writer *w;
        int64_t have;
        void *at[SHARD_COLUMNS];
        dup2(to, STDOUT_FILENO);
        close(to);
        close(STDIN_FILENO);
        int rc = shard_create(&w, "-", &o, &have);
        for (int i = 0; i < 100000 && rc == 0; i++)
            if ((rc = shard_row(w, at)) == 0) {
                memset(at[0], 0, 12);
                memset(at[1], 0, 3);
                memset(at[3], 0, 12);
            }
        shard_abandon(w);
        _exit(rc == E_IO && strstr(err_text(), strerror(EPIPE)) ? 0 : 1);
    }
    close(to);
    kit_ok(shard_open(&r, &dash, 1));
    ck_assert_int_eq(shard_next(r, &v), 1);
    shard_close(r);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* A reader that waits for a silent writer can be closed, and told to stop. */
START_TEST(silent_writer)
{
    struct shard_options o = kit_run_options();
    char *stream = new_stream(&o, 4), *dash = "-";
    volatile sig_atomic_t stop = 0;
    struct shard_reader *r;
    struct shard_view v;
    int to = pipe_to_stdin();
    size_t n;
    char *p = kit_read(stream, &n);
    kit_ok(file_put(to, p, 5000, "pipe")); // a shard and some of the next
    kit_ok(shard_open(&r, &dash, 1));
    shard_watch(r, &stop);
    ck_assert_int_eq(shard_next(r, &v), 1);
    stop = 1;
    kit_fails(shard_next(r, &v), E_AGAIN, "stopped");
    shard_close(r);
    close(to);
    mem_free(p);
}
END_TEST

KIT_MAIN("shard", folder, stream_is_cat, golden, flips_in_folder, flips_in_stream,
         every_bit, every_cut, cut_file_in_folder, order, incomplete_folder, forged,
         parts, parts_in_a_stream, runs_in_a_row, empty_run, single_files,
         unlike_inputs, seek, stdin_in_crumbs, reader_leaves, silent_writer)
