/* SPDX-License-Identifier: MIT */
/* place.c - the order is the point: bytes, then names, then the manifest's claim. */
#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "file.h"
#include "log.h"
#include "mem.h"

/* ---- open and close ---- */

static bool is_kept(const char *name)
{
    size_t n = strlen(name), end = strlen(PLACE_KEPT);
    return n > end && strcmp(name + n - end, PLACE_KEPT) == 0;
}

/* Removes the temporaries, and their folder when nothing in it is kept. */
static int sweep(const char *tmp)
{
    char **names;
    int64_t n;
    int rc = 0;
    if (!file_is_dir(tmp))
        return 0;
    TRY(file_list(tmp, &names, &n));
    for (int64_t i = 0; i < n && rc == 0; i++) {
        if (is_kept(names[i]))
            continue;
        char *path = file_path(tmp, names[i]);
        rc = path ? file_remove_tree(path) : E_MEMORY;
        mem_free(path);
    }
    file_list_free(names, n);
    rmdir(tmp);
    return rc;
}

/* Removes what killed parts have left; a whole run excludes parts that are at work. */
static int sweep_parts(const char *dir)
{
    int rc = 0;
    DIR *d = opendir(dir);
    if (!d)
        return err_errno(errno, "cannot list %s", dir);
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (strncmp(e->d_name, "tmp-", 4) != 0)
            continue;
        char *path = file_path(dir, e->d_name);
        rc = path ? file_remove_tree(path) : E_MEMORY;
        mem_free(path);
    }
    closedir(d);
    return rc;
}

static int open_tmp(struct place *p, const char *dir, int part, int parts)
{
    char name[48] = "tmp";
    if (parts > 1)
        snprintf(name, sizeof name, "tmp-%d-of-%d", part, parts);
    if (!(p->tmp = file_path(dir, name)))
        return E_MEMORY;
    TRY(parts > 1 ? 0 : sweep_parts(dir));
    TRY(sweep(p->tmp));
    TRY(file_make_dirs(p->tmp));
    p->tmp_fd = open(p->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return p->tmp_fd < 0 ? err_errno(errno, "cannot open %s", p->tmp) : 0;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

int place_open(struct place *p, const char *dest, int part, int parts)
{
    *p = (struct place){.dest_fd = -1, .tmp_fd = -1};
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
    if (p->at)
        place_clear(p);
    if (p->tmp_fd >= 0)
        sweep(p->tmp);
    close_fd(p->tmp_fd);
    close_fd(p->dest_fd);
    lock_give(&p->lock);
    mem_free(p->at);
    mem_free(p->dest);
    mem_free(p->tmp);
    *p = (struct place){.dest_fd = -1, .tmp_fd = -1};
}

/* ---- temporaries ---- */

char *place_temp(char out[PLACE_NAME], int64_t number)
{
    snprintf(out, PLACE_NAME, "%lld", (long long)number);
    return out;
}

int place_create(const struct place *p, const char *temp)
{
    int fd = openat(p->tmp_fd, temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? err_errno(errno, "cannot create %s/%s", p->tmp, temp) : fd;
}

int place_written(const struct place *p, const char *temp, int fd, int64_t size,
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
    else if (size >= PLACE_LARGE)
        file_let_go(fd);
    if (close(fd) != 0 && rc == 0)
        rc = err_errno(errno, "cannot write a file in %s", p->tmp);
    if (rc < 0)
        place_discard(p, temp, -1);
    return rc;
}

void place_discard(const struct place *p, const char *temp, int fd)
{
    close_fd(fd);
    unlinkat(p->tmp_fd, temp, 0);
}

/* ---- the group ---- */

static const double OLD = 2; // seconds that a kill may cost

bool place_due(const struct place *p)
{
    return p->n > 0 && log_now() - p->since >= OLD;
}

int place_add(struct place *p, const struct placed *what)
{
    if (p->n == 0)
        p->since = log_now();
    p->at[p->n++] = *what;
    p->bytes += what->entry.size;
    p->small += what->entry.size < PLACE_LARGE;
    return p->n == PLACE_GROUP || p->bytes >= PLACE_GROUP_BYTES || place_due(p);
}

static size_t folder_length(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash ? (size_t)(slash - key) : 0;
}

/* Does an object lie in the folder of the one before it? */
static bool same_folder(const struct placed *a, const struct placed *b)
{
    size_t n = folder_length(a->entry.key);
    return n == folder_length(b->entry.key) &&
           memcmp(a->entry.key, b->entry.key, n) == 0;
}

/* DEST and the folder of a key; owned by the caller, NULL: E_MEMORY. */
static char *folder_path(const struct place *p, const char *key)
{
    char *path = file_path(p->dest, key);
    if (path)
        path[strlen(path) - strlen(key) + folder_length(key)] = 0;
    return path;
}

static int make_folder(const struct place *p, const char *key)
{
    char *path = folder_path(p, key);
    int rc = path ? file_make_dirs(path) : E_MEMORY;
    mem_free(path);
    return rc;
}

/* What a syncfs has written: the next files take its memory instead of new pages. */
static void let_go(const struct place *p, const struct placed *o)
{
    if (o->entry.size <= PLACE_CACHED || o->entry.size >= PLACE_LARGE)
        return;
    int fd = openat(p->tmp_fd, o->temp, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        file_let_go(fd);
    close_fd(fd);
}

static int put_one(const struct place *p, const struct placed *o, bool new_folder)
{
    const char *key = o->entry.key;
    int rc = new_folder ? make_folder(p, key) : 0;
    let_go(p, o);
    if (rc == 0 && renameat(p->tmp_fd, o->temp, p->dest_fd, key) != 0)
        rc = err_errno(errno, "cannot rename %s/%s to %s/%s", p->tmp, o->temp, p->dest,
                       key);
    if (rc < 0)
        unlinkat(p->tmp_fd, o->temp, 0);
    return rc;
}

static int fail(struct placed *o, int code)
{
    o->code = code;
    o->why = mem_text(err_text());
    return o->why ? 0 : E_MEMORY;
}

static int sync_folder(const struct place *p, const char *key)
{
    char *path = folder_path(p, key);
    int rc = path ? file_sync_dir(path) : E_MEMORY;
    mem_free(path);
    return rc;
}

/* The names of a folder are neighbours. */
static int sync_folders(const struct place *p)
{
    bool waiting = false;
    for (int i = 0; i < p->n; i++) {
        waiting |= p->at[i].code == 0;
        bool last = i + 1 == p->n || !same_folder(&p->at[i], &p->at[i + 1]);
        if (!last || !waiting)
            continue;
        TRY(sync_folder(p, p->at[i].entry.key));
        waiting = false;
    }
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct placed *)a)->entry.key,
                  ((const struct placed *)b)->entry.key);
}

int place_flush(struct place *p, struct manifest *m)
{
    if (p->n == 0)
        return 0;
    qsort(p->at, (size_t)p->n, sizeof *p->at, by_key);
    if (p->small > 0 && syncfs(p->dest_fd) != 0)
        return err_errno(errno, "cannot write %s", p->dest);
    for (int i = 0; i < p->n; i++) {
        bool same =
            i > 0 && p->at[i - 1].code == 0 && same_folder(&p->at[i - 1], &p->at[i]);
        int rc = put_one(p, &p->at[i], !same);
        if (rc < 0)
            TRY(fail(&p->at[i], rc));
    }
    TRY(sync_folders(p));
    for (int i = 0; i < p->n; i++)
        if (p->at[i].code == 0)
            TRY(manifest_add(m, &p->at[i].entry));
    return manifest_flush(m);
}

void place_clear(struct place *p)
{
    for (int i = 0; i < p->n; i++)
        mem_free(p->at[i].why);
    p->n = p->small = 0;
    p->bytes = 0;
}
