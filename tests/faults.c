/* SPDX-License-Identifier: MIT */
/* faults.c - a library to preload: the n-th durable step of a process fails.
 *
 * Counts the calls of write, pwrite, fsync, fdatasync, syncfs and rename that the
 * program itself makes (stdio's own do not pass here, so messages are not counted).
 * With FAULT_AT=n the n-th call does not happen: FAULT_HOW=kill ends the process as a
 * power cut would, after half of a write's bytes; a number makes the call fail with
 * that errno. FAULT_COUNT=FILE stores the number of calls when the process ends.  Used
 * by scripts/faults.sh; the idea is jq's inject_errors.c. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;

/* due counts a call and tells whether it is the one that fails. */
static int due(void)
{
    const char *at = getenv("FAULT_AT");
    long n = atomic_fetch_add(&calls, 1) + 1;
    return at && strtol(at, NULL, 10) == n;
}

/* strike kills the process, or sets errno and returns -1. */
static int strike(void)
{
    const char *how = getenv("FAULT_HOW");
    if (!how || strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    errno = how ? (int)strtol(how, NULL, 10) : EIO;
    return -1;
}

/* next finds libc's own function; the union turns the object pointer into a function.
 */
#define NEXT(name, type)                                                               \
    static type real_##name;                                                           \
    static type next_##name(void)                                                      \
    {                                                                                  \
        union {                                                                        \
            void *object;                                                              \
            type function;                                                             \
        } u = {dlsym(RTLD_NEXT, #name)};                                               \
        return real_##name ? real_##name : (real_##name = u.function);                 \
    }

typedef ssize_t write_fn(int, const void *, size_t);
typedef ssize_t pwrite_fn(int, const void *, size_t, off_t);
typedef int sync_fn(int);
typedef int rename_fn(const char *, const char *);
NEXT(write, write_fn *)
NEXT(pwrite, pwrite_fn *)
NEXT(fsync, sync_fn *)
NEXT(fdatasync, sync_fn *)
NEXT(syncfs, sync_fn *)
NEXT(rename, rename_fn *)

ssize_t write(int fd, const void *data, size_t n)
{
    if (!due())
        return next_write()(fd, data, n);
    next_write()(fd, data, n / 2);
    return strike();
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (!due())
        return next_pwrite()(fd, data, n, at);
    next_pwrite()(fd, data, n / 2, at);
    return strike();
}

int fsync(int fd)
{
    return due() ? strike() : next_fsync()(fd);
}

int fdatasync(int fd)
{
    return due() ? strike() : next_fdatasync()(fd);
}

int syncfs(int fd)
{
    return due() ? strike() : next_syncfs()(fd);
}

int rename(const char *from, const char *to)
{
    return due() ? strike() : next_rename()(from, to);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("FAULT_COUNT");
    if (!path)
        return;
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, "%ld\n", atomic_load(&calls));
    fclose(f);
}
