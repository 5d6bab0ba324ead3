/* SPDX-License-Identifier: MIT */
/* test_file.c - files, folders, checksums: what is whole, what is left out, and what
 * the messages name. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "kit.h"
#include "mem.h"

START_TEST(writes_and_reads)
{
    const char *path = kit_path("%s/a", kit_tmp_dir());
    size_t n;
    kit_ok(file_write(path, "one\0two", 7));
    char *data = kit_read(path, &n);
    ck_assert_uint_eq(n, 7);
    ck_assert_int_eq(memcmp(data, "one\0two", 8), 0); // a NUL behind
    mem_free(data);
    ck_assert_int_eq(file_size(path), 7);
    kit_ok(file_write(path, NULL, 0));
    data = kit_read(path, &n);
    ck_assert(n == 0 && *data == 0);
    mem_free(data);
    ck_assert(!file_exists(kit_path("%s.tmp", path)));
    kit_ok(file_read("/proc/self/stat", &data, &n)); // says its size is 0
    ck_assert_uint_gt(n, 0);
    mem_free(data);
}
END_TEST

START_TEST(failures_name_the_path)
{
    char *data;
    size_t n;
    struct file_map m;
    const char *dir = kit_tmp_dir(), *none = kit_path("%s/none", dir);
    kit_fails(file_read(none, &data, &n), E_MISSING, none);
    kit_fails(file_read(dir, &data, &n), E_IO, dir);
    kit_fails(file_map(&m, none), E_MISSING, none);
    kit_fails(file_map(&m, "/dev/null"), E_IO, "/dev/null: not a regular file");
    kit_fails((int)file_size(none), E_MISSING, none);
    kit_fails(file_write(kit_path("%s/no/file", dir), "", 0), E_MISSING, "no/file.tmp");
    kit_fails(file_sync_dir(none), E_MISSING, none);
    kit_fails(file_write("/dev/full/x", "", 0), E_IO, "/dev/full/x.tmp");
    int fd = open("/dev/full", O_WRONLY);
    kit_fails(file_put(fd, "x", 1, "the disk"), E_IO,
              "cannot write the disk: No space");
    close(fd);
}
END_TEST

/* A rename that cannot happen leaves neither the temporary nor a changed target. */
START_TEST(failed_commit_leaves_nothing)
{
    const char *dir = kit_tmp_dir(), *path = kit_path("%s/d", dir);
    struct file_new f;
    kit_ok(file_make_dirs(kit_path("%s/d/full", dir)));
    kit_ok(file_new_create(&f, path));
    kit_ok(file_put(f.fd, "x", 1, path));
    kit_fails(file_new_commit(&f), E_IO, "cannot rename");
    ck_assert(!file_exists(kit_path("%s.tmp", path)) && file_is_dir(path));
}
END_TEST

START_TEST(new_files_in_steps)
{
    const char *dir = kit_tmp_dir(), *path = kit_path("%s/a", dir);
    const char *tmp = kit_path("%s/a.tmp", dir);
    struct file_new f;
    size_t n;
    kit_write_text(path, "old");
    kit_write_text(tmp, "left over from a crash, and longer");
    kit_ok(file_new_create(&f, path));
    kit_ok(file_put(f.fd, "new", 3, path));
    kit_ok(file_pwrite(f.fd, "N", 1, 0, path));
    char *data = kit_read(path, &n);
    ck_assert_str_eq(data, "old");
    mem_free(data);
    kit_ok(file_new_commit(&f));
    data = kit_read(path, &n);
    ck_assert_str_eq(data, "New");
    mem_free(data);
    kit_ok(file_new_create(&f, path));
    file_new_abandon(&f);
    ck_assert(!file_exists(tmp) && file_exists(path));
}
END_TEST

START_TEST(devices_keep_their_place)
{
    const char *link = kit_path("%s/null", kit_tmp_dir());
    ck_assert_int_eq(symlink("/dev/null", link), 0);
    kit_ok(file_write(link, "gone", 4));
    struct file_new f;
    kit_ok(file_new_create(&f, link));
    file_new_abandon(&f);
    struct stat st;
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert(!file_exists(kit_path("%s.tmp", link)));
}
END_TEST

START_TEST(bare_names_lie_in_the_working_folder)
{
    ck_assert_int_eq(chdir(kit_tmp_dir()), 0);
    kit_ok(file_write("bare", "x", 1));
    ck_assert_int_eq(file_size("bare"), 1);
}
END_TEST

START_TEST(maps)
{
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct file_map m;
    kit_write_text(path, "mapped");
    kit_ok(file_map(&m, path));
    ck_assert(m.size == 6 && memcmp(m.data, "mapped", 6) == 0);
    file_unmap(&m);
    ck_assert(!m.data && m.size == 0);
    file_unmap(&m);
    kit_write_text(path, "");
    kit_ok(file_map(&m, path));
    ck_assert(!m.data && m.size == 0);
}
END_TEST

START_TEST(transfers)
{
    int fd[2];
    char got[32] = "";
    ck_assert_int_eq(pipe(fd), 0);
    kit_ok(file_put(fd[1], "hello", 5, "pipe"));
    close(fd[1]);
    ck_assert_int_eq(file_get(fd[0], got, 3, "pipe"), 3);
    ck_assert_int_eq(file_get(fd[0], got + 3, 20, "pipe"), 2); // the end
    ck_assert_str_eq(got, "hello");
    close(fd[0]);
    kit_fails((int)file_get(fd[0], got, 1, "pipe"), E_IO, "cannot read pipe");
    const char *path = kit_path("%s/a", kit_tmp_dir());
    kit_write_text(path, "0123456789");
    int file = open(path, O_RDONLY);
    kit_ok(file_pread(file, got, 4, 3, path));
    ck_assert_int_eq(memcmp(got, "3456", 4), 0);
    kit_fails(file_pread(file, got, 4, 8, path), E_FORMAT, "ends at byte 10, 2 short");
    kit_fails(file_pwrite(file, got, 4, 8, path), E_IO, path);
    close(file);
}
END_TEST

START_TEST(lists_inputs_only)
{
    const char *dir = kit_tmp_dir();
    static const char *const made[] = {"b",     "a10", "a2", ".hidden",
                                       "c.tmp", "Z",   "tmp"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        kit_write_text(kit_path("%s/%s", dir, made[i]), "");
    kit_ok(file_make_dirs(kit_path("%s/folder", dir)));
    ck_assert_int_eq(symlink("b", kit_path("%s/link", dir)), 0);
    ck_assert_int_eq(symlink("nowhere", kit_path("%s/dead", dir)), 0);
    char **names;
    int64_t n;
    kit_ok(file_list(dir, &names, &n));
    static const char *const want[] = {"Z", "a10", "a2", "b", "link", "tmp"};
    ck_assert_int_eq(n, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(names[i], want[i]);
    file_list_free(names, n);
    kit_ok(file_list(kit_path("%s/folder", dir), &names, &n));
    ck_assert_int_eq(n, 0);
    file_list_free(names, n);
    kit_fails(file_list(kit_path("%s/b", dir), &names, &n), E_IO, "/b: Not a dir");
    kit_fails(file_list(kit_path("%s/none", dir), &names, &n), E_MISSING, "/none");
}
END_TEST

START_TEST(folders)
{
    const char *dir = kit_tmp_dir(), *deep = kit_path("%s/a/b//c/", dir);
    kit_ok(file_make_dirs(deep));
    kit_ok(file_make_dirs(deep));
    ck_assert(file_is_dir(deep));
    kit_write_text(kit_path("%s/a/b/file", dir), "x");
    kit_fails(file_make_dirs(kit_path("%s/a/b/file", dir)), E_IO, "a/b/file");
    kit_fails(file_make_dirs(kit_path("%s/a/b/file/c", dir)), E_IO, "a/b/file/c");
    kit_write_text(kit_path("%s/outside", dir), "x");
    ck_assert_int_eq(symlink("../outside", kit_path("%s/a/link", dir)), 0);
    kit_ok(file_make_dirs(kit_path("%s/other", dir)));
    kit_write_text(kit_path("%s/other/kept", dir), "x");
    ck_assert_int_eq(symlink("../other", kit_path("%s/a/folder", dir)), 0);
    kit_ok(file_sync_dir(dir));
    kit_ok(file_remove_tree(kit_path("%s/a", dir)));
    ck_assert(file_exists(kit_path("%s/other/kept", dir)));
    ck_assert(!file_exists(kit_path("%s/a", dir)));
    ck_assert(file_exists(kit_path("%s/outside", dir))); // links are not followed
    kit_ok(file_remove_tree(kit_path("%s/a", dir)));
    kit_ok(file_remove_tree(kit_path("%s/outside", dir)));
}
END_TEST

START_TEST(paths)
{
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}};
    for (int i = 0; i < 4; i++) {
        char *p = file_path(cases[i][0], cases[i][1]);
        ck_assert_str_eq(p, cases[i][2]);
        mem_free(p);
    }
}
END_TEST

/* XXH3_64bits of nothing and of one byte with seed 0, from xxHash's own test vectors
 * (the pattern byte generator begins with 0x00). */
START_TEST(names_that_others_wrote)
{
    static const char *const below[] = {"a",     "a/b", "..a", "a../b",
                                        "a/..b", "./a", "a/.b"},
                             *const above[] = {"",     "/",    "/a",     "..",
                                               "../a", "a/..", "a/../b", "./../a"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        ck_assert_msg(file_stays_below(below[i]), "%s", below[i]);
    for (size_t i = 0; i < sizeof above / sizeof *above; i++)
        ck_assert_msg(!file_stays_below(above[i]), "%s", above[i]);
    ck_assert_str_eq(file_last_name("a/b.c"), "b.c");
    ck_assert_str_eq(file_last_name("b.c"), "b.c");
    ck_assert_str_eq(file_last_name("a/"), "");
}
END_TEST

/* The part of a file that is in memory; -1 where the file system decides. */
static double in_memory(const char *path)
{
    unsigned char page[64] = {0};
    struct statfs fs;
    struct file_map m;
    double n = 0;
    ck_assert_int_eq(statfs(path, &fs), 0);
    if (fs.f_type != EXT4_SUPER_MAGIC && fs.f_type != XFS_SUPER_MAGIC &&
        fs.f_type != OVERLAYFS_SUPER_MAGIC)
        return -1;
    kit_ok(file_map(&m, path));
    ck_assert_int_eq(mincore((void *)(uintptr_t)m.data, m.size, page), 0);
    for (int i = 0; i < 64; i++)
        n += page[i] & 1;
    file_unmap(&m);
    return n / 64;
}

START_TEST(lets_go_of_what_is_written)
{
    const char *path = kit_path("%s/a", kit_tmp_dir());
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    char *data = mem_zero(64, 4096);
    kit_ok(file_put(fd, data, 64 * 4096, path));
    if (in_memory(path) >= 0) {
        ck_assert_double_eq(in_memory(path), 1);
        ck_assert_int_eq(fsync(fd), 0);
        file_let_go(fd);
        ck_assert_double_eq(in_memory(path), 0);
    }
    file_let_go(-1);
    kit_ok(file_pread(fd, data, 64 * 4096, 0, path));
    mem_free(data);
    close(fd);
}
END_TEST

START_TEST(checksums)
{
    unsigned char data[1000];
    char text[HASH_TEXT];
    uint64_t back;
    ck_assert_uint_eq(hash_bytes("", 0), 0x2d06800538d394c2);
    ck_assert_uint_eq(hash_bytes("\0", 1), 0xc44bdff4074eecdb);
    for (int i = 0; i < 1000; i++)
        data[i] = (unsigned char)(i * 37);
    struct hash *h = hash_open();
    ck_assert_uint_eq(hash_value(h), hash_bytes(data, 0));
    for (size_t at = 0, step = 1; at < 1000; at += step, step = step * 2 % 301) {
        if (step > 1000 - at)
            step = 1000 - at;
        hash_add(h, data + at, step);
        ck_assert_uint_eq(hash_value(h), hash_bytes(data, at + step));
    }
    hash_close(h);
    hash_close(NULL);
    ck_assert_str_eq(hash_text(text, 0x2d06800538d394c2), "2d06800538d394c2");
    kit_ok(hash_parse(text, &back));
    ck_assert_uint_eq(back, 0x2d06800538d394c2);
    static const char *const bad[] = {"",
                                      "2d06800538d394c",
                                      "2d06800538d394c22",
                                      "2D06800538d394c2",
                                      "2d06800538d394cg",
                                      " d06800538d394c2"};
    for (int i = 0; i < 6; i++)
        kit_fails(hash_parse(bad[i], &back), E_FORMAT, "not a checksum");
}
END_TEST

KIT_MAIN("file, hash", writes_and_reads, failures_name_the_path,
         failed_commit_leaves_nothing, new_files_in_steps, devices_keep_their_place,
         bare_names_lie_in_the_working_folder, maps, transfers, lists_inputs_only,
         folders, paths, names_that_others_wrote, lets_go_of_what_is_written, checksums)
