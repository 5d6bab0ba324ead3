/* SPDX-License-Identifier: MIT */
/* local.c - a walk over folders, and a copy that adds up what it moves.
 *
 * The source's size and time are compared before and after the copy: a file that was
 * changed meanwhile is not taken for whole. */
#include "local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "crc.h"
#include "err.h"
#include "file.h"
#include "mem.h"
#include "scheme.h"
#include "tool.h"
#include "url.h"

/* ---- names ---- */

/* The path of a source, owned by the caller: itself, or file://[localhost]/path. */
static int path_of(char **out, const char *url)
{
    static const char begin[] = "file://", here[] = "localhost/";
    struct buf path = {0};
    if (strncmp(url, begin, strlen(begin)) != 0)
        return (*out = mem_text(url)) ? 0 : E_MEMORY;
    const char *s = url + strlen(begin);
    if (strncmp(s, here, strlen(here)) == 0)
        s += strlen(here) - 1;
    int rc = *s == '/' && url_unescape(&path, s, false) == 0
                 ? buf_check(&path)
                 : err_set(E_USAGE, "%s: not file:///path with %%XX escapes", url);
    if (rc < 0)
        buf_drop(&path);
    *out = path.p; // what a buf owns is freed with mem_free, too
    return rc;
}

/* The real path of a destination that need not exist yet: of the nearest folder above
 * it that does.  Freed with free(); NULL when there is none. */
static char *real_above(const char *path)
{
    char *p = mem_text(path), *real = NULL;
    while (p && !(real = realpath(p, NULL))) {
        char *slash = strrchr(p, '/');
        if (!slash || slash == p)
            break;
        *slash = 0;
    }
    if (p && !real)
        real = realpath(*p == '/' ? "/" : ".", NULL);
    mem_free(p);
    return real;
}

int local_apart(const char *url, const char *dest)
{
    char *path;
    TRY(path_of(&path, url));
    char *from = realpath(path, NULL), *to = real_above(dest);
    size_t n = from ? strlen(from) : 0;
    bool inside = from && to && strncmp(from, to, n) == 0 && (!to[n] || to[n] == '/');
    free(from);
    free(to);
    mem_free(path);
    if (inside)
        return err_set(E_CONFIG, "the destination %s lies inside the source %s", dest,
                       url);
    return 0; // a source that does not exist is for the listing to report
}

/* ---- the walk ---- */

static int64_t mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int add_file(struct objects *out, const char *key, const char *path,
                    const struct stat *st)
{
    struct object *o = object_add(out, key, path);
    if (!o)
        return E_MEMORY;
    o->size = st->st_size;
    o->mtime_ns = mtime_ns(st);
    return 0;
}

static int add_refused(struct objects *out, const char *key, const char *path, int code)
{
    struct object *o = object_add(out, key, path);
    return o ? object_refuse(out, o, code) : E_MEMORY;
}

/* Appends "/name" to a path, "name" to an empty key; returns the length before. */
static size_t push(struct buf *path, const char *name)
{
    size_t before = path->len;
    if (before > 0 && path->p[before - 1] != '/')
        buf_addc(path, '/');
    buf_adds(path, name);
    return before;
}

static void pop(struct buf *path, size_t before)
{
    path->len = before;
    path->p[before] = 0;
}

static int walk(struct objects *out, struct buf *path, struct buf *key);

/* One entry of a folder; path and key already end in its name. */
static int visit(struct objects *out, struct buf *path, struct buf *key)
{
    struct stat link, st;
    int rc = 0;
    if (lstat(path->p, &link) != 0 || stat(path->p, &st) != 0)
        rc = err_errno(errno, "cannot read %s", path->p);
    else if (S_ISREG(st.st_mode))
        return add_file(out, key->p, path->p, &st);
    else if (!S_ISDIR(st.st_mode))
        rc = err_set(E_FORMAT, "%s: refused: neither file nor folder", path->p);
    else if (S_ISLNK(link.st_mode))
        rc = err_set(E_FORMAT, "%s: refused: a link to a folder", path->p);
    else
        rc = walk(out, path, key);
    return rc < 0 ? add_refused(out, key->p, path->p, rc) : 0;
}

/* The entries of a folder.  A failure is the folder's own; what is below is listed or
 * refused by its own name.  Folders are few against files, so recursion is cheap, and
 * its depth is bounded by the length of a path. */
static int walk(struct objects *out, struct buf *path, struct buf *key)
{
    int rc = 0;
    DIR *d = opendir(path->p);
    if (!d)
        return err_errno(errno, "cannot list %s", path->p);
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e)
            break;
        if (!file_is_input(e->d_name))
            continue;
        size_t path_len = push(path, e->d_name), key_len = push(key, e->d_name);
        TRY_GOTO(rc, buf_check(path), out);
        TRY_GOTO(rc, buf_check(key), out);
        TRY_GOTO(rc, visit(out, path, key), out);
        pop(path, path_len);
        pop(key, key_len);
    }
    if (errno)
        rc = err_errno(errno, "cannot list %s", path->p);
out:
    closedir(d);
    return rc;
}

int local_list(struct source *s, struct objects *out)
{
    char *path;
    struct buf at = {0}, key = {0};
    struct stat st;
    TRY(path_of(&path, s->url));
    int rc = 0;
    if (stat(path, &st) != 0) {
        rc = err_errno(errno, "cannot read %s", path);
    } else if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(path, '/');
        rc = add_file(out, slash ? slash + 1 : path, path, &st);
    } else if (!S_ISDIR(st.st_mode)) {
        rc = err_set(E_FORMAT, "%s: neither file nor folder", path);
    } else {
        buf_adds(&at, path);
        rc = buf_check(&at) < 0 ? E_MEMORY : walk(out, &at, &key);
    }
    buf_drop(&at);
    buf_drop(&key);
    mem_free(path);
    return rc;
}

/* ---- the copy ---- */

static int check_unchanged(const struct object *o, int from)
{
    struct stat st;
    if (fstat(from, &st) != 0)
        return err_errno(errno, "cannot read %s", o->from);
    if (st.st_size == o->size && mtime_ns(&st) == o->mtime_ns)
        return 0;
    return err_set(E_AGAIN, "%s changed while it was fetched", o->from);
}

int local_get(const struct object *o, int fd, uint64_t *sum, void *buffer, size_t size)
{
    int rc = 0, from = open(o->from, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return err_errno(errno, "cannot open %s", o->from);
    *sum = 0;
    for (int64_t done = 0; done < o->size;) {
        int64_t got = file_get(from, buffer, size, o->from);
        TRY_GOTO(rc, (int)(got < 0 ? got : 0), out);
        if (got == 0)
            break;
        if (tool_stop)
            TRY_GOTO(rc, err_set(E_AGAIN, "stopped by a signal"), out);
        *sum = crc_add(CRC64NVME, *sum, buffer, (size_t)got);
        TRY_GOTO(rc, file_put(fd, buffer, (size_t)got, o->key), out);
        done += got;
    }
    rc = check_unchanged(o, from);
out:
    close(from);
    return rc;
}
