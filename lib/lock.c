/* SPDX-License-Identifier: MIT */
/* lock.c - flock, which belongs to the open file and not, as POSIX locks do, to the
 * process and every descriptor it happens to close. */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "err.h"
#include "file.h"
#include "mem.h"

static int take(int *out, const char *dir, const char *name, int how)
{
    char *path = file_path(dir, name);
    if (!path)
        return E_MEMORY;
    int rc = 0, fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EACCES && errno != EPERM && errno != EROFS)
        rc = err_errno(errno, "cannot open %s", path);
    else if (fd >= 0 && flock(fd, how | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        rc = err_set(E_AGAIN, "%s: another process is at work here (it holds %s)", dir,
                     path);
    *out = fd + 1;
    mem_free(path);
    return rc;
}

int lock_take(struct lock *l, const char *dir, const char *name, int part, int parts)
{
    char own[64];
    *l = (struct lock){0, 0};
    int rc = take(&l->whole, dir, name, parts == 1 ? LOCK_EX : LOCK_SH);
    if (rc == 0 && parts > 1) {
        snprintf(own, sizeof own, "%s-%d-of-%d", name, part, parts);
        rc = take(&l->part, dir, own, LOCK_EX);
    }
    if (rc < 0)
        lock_give(l);
    return rc;
}

void lock_give(struct lock *l)
{
    if (l->part > 0)
        close(l->part - 1);
    if (l->whole > 0)
        close(l->whole - 1);
    *l = (struct lock){0, 0};
}
