/* SPDX-License-Identifier: MIT */
/* test_spare.c - memory to spare, as machines and containers tell of it. */
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "kit.h"
#include "spare.h"

static const char *root;

static void tell(const char *file, const char *text)
{
    const char *path = kit_path("%s/%s", root, file);
    char folder[256];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    kit_ok(file_make_dirs(folder));
    kit_write_text(path, text);
}

START_TEST(the_lesser_counts)
{
    root = kit_tmp_dir();
    ck_assert_uint_eq(spare_memory(root), SIZE_MAX);
    tell("proc/meminfo", "MemTotal:       9000 kB\nMemFree:        10 kB\n"
                         "MemAvailable:   5000 kB\nBuffers:        20 kB\n");
    ck_assert_uint_eq(spare_memory(root), 5000 << 10);
    tell("sys/fs/cgroup/memory.max", "max\n");
    tell("sys/fs/cgroup/memory.current", "1000000\n");
    ck_assert_uint_eq(spare_memory(root), 5000 << 10);
    tell("sys/fs/cgroup/memory.max", "3000000\n");
    ck_assert_uint_eq(spare_memory(root), 2000000);
    tell("sys/fs/cgroup/memory.stat", "anon 7\nfile 900000\ninactive_file 600000\n");
    ck_assert_uint_eq(spare_memory(root), 2600000);
    tell("sys/fs/cgroup/memory.current", "500000\n");
    ck_assert_uint_eq(spare_memory(root), 3000000);
    tell("sys/fs/cgroup/memory.current", "4000000\n");
    ck_assert_uint_eq(spare_memory(root), 0);
    tell("sys/fs/cgroup/memory.max", "9000000000000\n");
    ck_assert_uint_eq(spare_memory(root), 5000 << 10);
}
END_TEST

START_TEST(this_machine_has_some)
{
    size_t n = spare_memory("");
    ck_assert_uint_gt(n, 16 << 20);
    ck_assert_uint_lt(n, (size_t)1 << 50);
}
END_TEST

KIT_MAIN("spare", the_lesser_counts, this_machine_has_some)
