/* SPDX-License-Identifier: MIT */
/* place.c - the order is the point: bytes, then names, then the manifest's claim. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "mem.h"

/* ---- open and close ---- */

static int open_tmp(struct place *p, const char *dir, int part, int parts)
{
    char name[48] = "tmp";
    if (parts > 1)
        snprintf(name, sizeof name, "tmp-%d-of-%d", part, parts);
    if (!(p->tmp = file_path(dir, name)))
        return E_MEMORY;
    TRY(file_remove_tree(p->tmp));
    return file_make_dirs(p->tmp);
}

int place_open(struct place *p, const char *dest, int part, int parts)
{
    *p = (struct place){.dest_fd = -1};
    char *dir = file_path(dest, ".draft-fetch");
    p->dest = mem_text(dest);
    p->at = mem_zero(PLACE_GROUP, sizeof *p->at);
    int rc = dir && p->dest && p->at ? 0 : E_MEMORY;
    TRY_GOTO(rc, rc, out);
    TRY_GOTO(rc, file_make_dirs(dir), out);
    TRY_GOTO(rc, lock_take(&p->lock, dir, "lock", part, parts), out);
    TRY_GOTO(rc, open_tmp(p, dir, part, parts), out);
    p->dest_fd = open(dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->dest_fd < 0)
        rc = err_errno(errno, "cannot open %s", dest);
out:
    mem_free(dir);
    if (rc < 0)
        place_close(p);
    return rc;
}

void place_close(struct place *p)
{
    place_clear(p);
    if (p->tmp)
        file_remove_tree(p->tmp);
    if (p->dest_fd >= 0)
        close(p->dest_fd);
    lock_give(&p->lock);
    mem_free(p->at);
    mem_free(p->dest);
    mem_free(p->tmp);
    *p = (struct place){.dest_fd = -1};
}

/* ---- temporaries ---- */

static char *tmp_path(const struct place *p, int64_t number)
{
    struct buf path = {0};
    buf_addf(&path, "%s/%lld", p->tmp, (long long)number);
    if (buf_check(&path) < 0)
        buf_drop(&path);
    return path.p;
}

int place_create(const struct place *p, int64_t number)
{
    char *path = tmp_path(p, number);
    if (!path)
        return E_MEMORY;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        fd = err_errno(errno, "cannot create %s", path);
    mem_free(path);
    return fd;
}

int place_written(const struct place *p, int64_t number, int fd, int64_t size,
                  int64_t mtime_ns)
{
    /* The source's time on the copy tells a later run that nobody touched it. */
    struct timespec t = {mtime_ns / 1000000000, mtime_ns % 1000000000};
    if (t.tv_nsec < 0) {
        t.tv_sec--;
        t.tv_nsec += 1000000000;
    }
    struct timespec times[2] = {{0, UTIME_OMIT}, t};
    int rc = 0;
    if (futimens(fd, times) != 0)
        rc = err_errno(errno, "cannot set the time of a file in %s", p->tmp);
    else if (size >= PLACE_LARGE && fsync(fd) != 0)
        rc = err_errno(errno, "cannot write a file in %s", p->tmp);
    if (close(fd) != 0 && rc == 0)
        rc = err_errno(errno, "cannot write a file in %s", p->tmp);
    if (rc < 0)
        place_discard(p, number, -1);
    return rc;
}

void place_discard(const struct place *p, int64_t number, int fd)
{
    char *path = tmp_path(p, number);
    if (fd >= 0)
        close(fd);
    if (path)
        unlink(path);
    mem_free(path);
}

/* ---- the group ---- */

int place_add(struct place *p, const struct placed *what)
{
    p->at[p->n++] = *what;
    p->bytes += what->size;
    p->small += what->size < PLACE_LARGE;
    return p->n == PLACE_GROUP || p->bytes >= PLACE_GROUP_BYTES;
}

static int put_one(const struct place *p, const struct placed *o)
{
    char *from = tmp_path(p, o->number), *to = file_path(p->dest, o->key);
    int rc = from && to ? 0 : E_MEMORY;
    if (rc == 0) {
        char *slash = strrchr(to, '/');
        *slash = 0;
        rc = file_make_dirs(to);
        *slash = '/';
    }
    if (rc == 0 && rename(from, to) != 0)
        rc = err_errno(errno, "cannot rename %s to %s", from, to);
    if (rc < 0 && from)
        unlink(from);
    mem_free(from);
    mem_free(to);
    return rc;
}

static int fail(struct placed *o, int code)
{
    o->code = code;
    o->why = mem_text(err_text());
    return o->why ? 0 : E_MEMORY;
}

static size_t folder_length(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash ? (size_t)(slash - key) : 0;
}

/* Does an object lie in the folder of the one before it? */
static bool same_folder(const struct placed *a, const struct placed *b)
{
    size_t n = folder_length(a->key);
    return n == folder_length(b->key) && memcmp(a->key, b->key, n) == 0;
}

static int sync_folder(const struct place *p, const char *key)
{
    char *path = file_path(p->dest, key);
    if (!path)
        return E_MEMORY;
    path[strlen(path) - strlen(key) + folder_length(key)] = 0;
    int rc = file_sync_dir(path);
    mem_free(path);
    return rc;
}

/* Keys come sorted, so the names of a folder are neighbours. */
static int sync_folders(const struct place *p)
{
    bool waiting = false;
    for (int i = 0; i < p->n; i++) {
        waiting |= p->at[i].code == 0;
        bool last = i + 1 == p->n || !same_folder(&p->at[i], &p->at[i + 1]);
        if (!last || !waiting)
            continue;
        TRY(sync_folder(p, p->at[i].key));
        waiting = false;
    }
    return 0;
}

int place_flush(struct place *p, struct manifest *m)
{
    if (p->small > 0 && syncfs(p->dest_fd) != 0)
        return err_errno(errno, "cannot write %s", p->dest);
    for (int i = 0; i < p->n; i++) {
        int rc = put_one(p, &p->at[i]);
        if (rc < 0)
            TRY(fail(&p->at[i], rc));
    }
    TRY(sync_folders(p));
    for (int i = 0; i < p->n; i++) {
        const struct placed *o = &p->at[i];
        if (o->code == 0)
            TRY(manifest_add(m, o->key, o->size, o->mtime_ns, o->xxh3));
    }
    return 0;
}

void place_clear(struct place *p)
{
    for (int i = 0; i < p->n; i++)
        mem_free(p->at[i].why);
    p->n = p->small = 0;
    p->bytes = 0;
}
