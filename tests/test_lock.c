/* SPDX-License-Identifier: MIT */
/* test_lock.c - who excludes whom: whole runs, parts, processes that ended. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "kit.h"
#include "lock.h"

START_TEST(whole_runs_and_parts)
{
    const char *dir = kit_path("%s", kit_tmp_dir());
    struct lock a, b, c;
    kit_ok(lock_take(&a, dir, ".l", 0, 1));
    kit_fails(lock_take(&b, dir, ".l", 0, 1), E_AGAIN, "another process is at work");
    kit_fails(lock_take(&b, dir, ".l", 1, 3), E_AGAIN, "/.l)");
    kit_ok(lock_take(&b, dir, ".other", 0, 1));
    lock_give(&b);
    lock_give(&a);
    kit_ok(lock_take(&a, dir, ".l", 0, 3));
    kit_ok(lock_take(&b, dir, ".l", 2, 3));
    kit_fails(lock_take(&c, dir, ".l", 2, 3), E_AGAIN, "/.l-2-of-3)");
    kit_fails(lock_take(&c, dir, ".l", 0, 1), E_AGAIN, "/.l)");
    lock_give(&a);
    kit_fails(lock_take(&c, dir, ".l", 0, 1), E_AGAIN, "/.l)");
    lock_give(&b);
    kit_ok(lock_take(&c, dir, ".l", 0, 1));
    lock_give(&c);
    lock_give(&c);
}
END_TEST

START_TEST(the_lock_of_a_killed_process)
{
    const char *dir = kit_path("%s", kit_tmp_dir());
    struct lock l;
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        byte = lock_take(&l, dir, "l", 0, 1) == 0;
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 1);
    kit_fails(lock_take(&l, dir, "l", 0, 1), E_AGAIN, dir);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    kit_ok(lock_take(&l, dir, "l", 0, 1));
    lock_give(&l);
}
END_TEST

START_TEST(folders_without_locks)
{
    const char *dir = kit_path("%s", kit_tmp_dir());
    struct lock l;
    kit_fails(lock_take(&l, kit_path("%s/none", dir), "l", 0, 1), E_MISSING, "none/l");
    if (geteuid() == 0) // root writes anywhere
        return;
    ck_assert_int_eq(chmod(dir, 0555), 0);
    kit_ok(lock_take(&l, dir, "l", 0, 1));
    lock_give(&l);
    ck_assert_int_eq(chmod(dir, 0755), 0);
}
END_TEST

KIT_MAIN("lock", whole_runs_and_parts, the_lock_of_a_killed_process,
         folders_without_locks)
