/* SPDX-License-Identifier: MIT */
/* file.c - system calls that name the path when they fail, retry EINTR and never give
 * half a transfer.  Durability is an fsync of the file before its rename and of its
 * folder after it: a name that survives a crash then has its content behind it. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "mem.h"

/* Linux moves at most 2 GiB - 4 KiB per call; a lower limit of ours changes nothing. */
static const size_t CALL_MAX = (size_t)1 << 30;

static size_t call_size(size_t n)
{
    return n < CALL_MAX ? n : CALL_MAX;
}

static int open_read(const char *path, struct stat *st, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0)
        return err_errno(errno, "cannot open %s", path);
    int rc = 0;
    if (fstat(fd, st) != 0)
        rc = err_errno(errno, "cannot read %s", path);
    else if (S_ISDIR(st->st_mode))
        rc = err_errno(EISDIR, "cannot read %s", path);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    return fd;
}

int file_map(struct file_map *m, const char *path)
{
    struct stat st;
    *m = (struct file_map){0};
    int fd = open_read(path, &st, O_NONBLOCK); // a pipe would wait for its writer
    if (fd < 0)
        return fd;
    int rc = 0;
    if (!S_ISREG(st.st_mode)) {
        rc = err_set(E_IO, "cannot map %s: not a regular file", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            rc = err_errno(errno, "cannot map %s", path);
        else
            *m = (struct file_map){p, (size_t)st.st_size};
    }
    close(fd);
    return rc;
}

void file_unmap(struct file_map *m)
{
    if (m->data)
        munmap((void *)(uintptr_t)m->data, m->size);
    *m = (struct file_map){0};
}

int file_read(const char *path, char **out, size_t *size)
{
    struct stat st;
    struct buf text = {0};
    int64_t got = 1;
    int fd = open_read(path, &st, 0);
    if (fd < 0)
        return fd;
    /* The size is a hint: files of /proc say 0 and a pipe has none. */
    size_t step =
        S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : 65536;
    while (got > 0) {
        char *room = buf_room(&text, step);
        got = room ? file_get(fd, room, step, path) : buf_check(&text);
        if (got > 0)
            text.len += (size_t)got;
    }
    close(fd);
    if (got < 0) {
        buf_drop(&text);
        return (int)got;
    }
    text.p[text.len] = 0;
    *out = text.p;
    *size = text.len;
    return 0;
}

/* What is there and no regular file keeps its place: a terminal, /dev/null, a pipe. */
static bool is_straight(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int create_straight(struct file_new *f, const char *path)
{
    f->straight = true;
    f->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (f->fd < 0)
        return err_errno(errno, "cannot write %s", path);
    if ((f->path = mem_text(path)))
        return 0;
    file_new_abandon(f);
    return E_MEMORY;
}

int file_new_create(struct file_new *f, const char *path)
{
    struct buf tmp = {0};
    *f = (struct file_new){NULL, -1, false};
    if (is_straight(path))
        return create_straight(f, path);
    buf_addf(&tmp, "%s.tmp", path);
    int rc = buf_check(&tmp);
    if (rc == 0) {
        f->fd = open(tmp.p, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (f->fd < 0)
            rc = err_errno(errno, "cannot create %s", tmp.p);
    }
    buf_drop(&tmp);
    if (rc == 0 && !(f->path = mem_text(path))) {
        file_new_abandon(f);
        rc = E_MEMORY;
    }
    return rc;
}

static void new_drop(struct file_new *f)
{
    if (f->fd >= 0)
        close(f->fd);
    mem_free(f->path);
    *f = (struct file_new){NULL, -1, false};
}

static int close_straight(struct file_new *f)
{
    int fd = f->fd, rc = 0;
    f->fd = -1;
    if (close(fd) != 0)
        rc = err_errno(errno, "cannot write %s", f->path);
    new_drop(f);
    return rc;
}

/* The folder of a path, "." for a bare name; owned by the caller. */
static char *folder_of(const char *path)
{
    char *dir = mem_text(path);
    if (!dir)
        return NULL;
    char *slash = strrchr(dir, '/');
    if (!slash) {
        mem_free(dir);
        return mem_text(".");
    }
    slash[slash == dir ? 1 : 0] = 0;
    return dir;
}

int file_new_commit(struct file_new *f)
{
    if (f->straight)
        return close_straight(f);
    struct buf tmp = {0};
    char *dir = folder_of(f->path);
    bool placed = false;
    int fd = f->fd;
    buf_addf(&tmp, "%s.tmp", f->path);
    int rc = dir ? buf_check(&tmp) : E_MEMORY;
    TRY_GOTO(rc, rc, out);
    if (fsync(fd) != 0) {
        rc = err_errno(errno, "cannot write %s", tmp.p);
        goto out;
    }
    f->fd = -1;
    if (close(fd) != 0)
        rc = err_errno(errno, "cannot write %s", tmp.p);
    else if (rename(tmp.p, f->path) != 0)
        rc = err_errno(errno, "cannot rename %s to %s", tmp.p, f->path);
    else
        placed = true;
    TRY_GOTO(rc, rc, out);
    rc = file_sync_dir(dir);
out:
    if (!placed && tmp.p)
        unlink(tmp.p);
    mem_free(dir);
    buf_drop(&tmp);
    new_drop(f);
    return rc;
}

void file_new_abandon(struct file_new *f)
{
    struct buf tmp = {0};
    if (f->path && !f->straight) {
        buf_addf(&tmp, "%s.tmp", f->path);
        if (!tmp.failed)
            unlink(tmp.p);
    }
    buf_drop(&tmp);
    new_drop(f);
}

int file_write(const char *path, const void *data, size_t n)
{
    struct file_new f;
    TRY(file_new_create(&f, path));
    int rc = file_put(f.fd, data, n, path);
    if (rc < 0) {
        file_new_abandon(&f);
        return rc;
    }
    return file_new_commit(&f);
}

int file_put(int fd, const void *data, size_t n, const char *name)
{
    const char *p = data;
    while (n > 0) {
        ssize_t done = write(fd, p, call_size(n));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_errno(errno, "cannot write %s", name);
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int64_t file_get(int fd, void *data, size_t n, const char *name)
{
    char *p = data;
    size_t have = 0;
    while (have < n) {
        ssize_t got = read(fd, p + have, call_size(n - have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(errno, "cannot read %s", name);
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (int64_t)have;
}

int file_pread(int fd, void *data, size_t n, off_t at, const char *name)
{
    char *p = data;
    while (n > 0) {
        ssize_t got = pread(fd, p, call_size(n), at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(errno, "cannot read %s", name);
        if (got == 0)
            return err_set(E_FORMAT, "cannot read %s: it ends at byte %lld, %zu short",
                           name, (long long)at, n);
        p += got;
        n -= (size_t)got;
        at += got;
    }
    return 0;
}

int file_pwrite(int fd, const void *data, size_t n, off_t at, const char *name)
{
    const char *p = data;
    while (n > 0) {
        ssize_t done = pwrite(fd, p, call_size(n), at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_errno(errno, "cannot write %s", name);
        p += done;
        n -= (size_t)done;
        at += done;
    }
    return 0;
}

void file_let_go(int fd)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool file_is_input(const char *name)
{
    size_t n = strlen(name);
    return name[0] != '.' && !(n >= 4 && strcmp(name + n - 4, ".tmp") == 0);
}

bool file_stays_below(const char *name)
{
    bool below = *name && *name != '/';
    for (const char *p = name; p && below; p = strchr(p, '/')) {
        p += *p == '/';
        below = strncmp(p, "..", 2) != 0 || (p[2] != '/' && p[2]);
    }
    return below;
}

size_t file_mark(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

const char *file_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_plain(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

/* A list of names that grows; n counts, cap is room. */
struct names {
    char **at;
    int64_t n, cap;
};

static int names_add(struct names *l, const char *name)
{
    char **at = mem_room(l->at, l->n, &l->cap, sizeof *at);
    if (!at)
        return E_MEMORY;
    l->at = at;
    if (!(l->at[l->n] = mem_text(name)))
        return E_MEMORY;
    l->n++;
    return 0;
}

int file_list(const char *dir, char ***names, int64_t *n)
{
    struct names list = {0};
    int rc = 0;
    DIR *d = opendir(dir);
    if (!d)
        return err_errno(errno, "cannot list %s", dir);
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e)
            break;
        if (file_is_input(e->d_name) && is_plain(dirfd(d), e->d_name))
            TRY_GOTO(rc, names_add(&list, e->d_name), out);
    }
    if (errno)
        rc = err_errno(errno, "cannot list %s", dir);
out:
    closedir(d);
    if (rc < 0) {
        file_list_free(list.at, list.n);
        return rc;
    }
    if (list.n > 0)
        qsort(list.at, (size_t)list.n, sizeof *list.at, by_name);
    *names = list.at;
    *n = list.n;
    return 0;
}

void file_list_free(char **names, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        mem_free(names[i]);
    mem_free(names);
}

int file_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "cannot open folder %s", path);
    int rc = fsync(fd) == 0 ? 0 : err_errno(errno, "cannot write folder %s", path);
    close(fd);
    return rc;
}

/* A new folder is only there after a crash if its parent was written. */
static int make_dir(const char *path)
{
    if (mkdir(path, 0777) != 0)
        return errno == EEXIST ? 0 : err_errno(errno, "cannot create folder %s", path);
    char *above = folder_of(path);
    int rc = above ? file_sync_dir(above) : E_MEMORY;
    mem_free(above);
    return rc;
}

int file_make_dirs(const char *path)
{
    char *p = mem_text(path);
    if (!p)
        return E_MEMORY;
    size_t len = strlen(p);
    while (len > 1 && p[len - 1] == '/')
        p[--len] = 0;
    int rc = 0;
    for (char *c = p + 1; *p && *c && rc == 0; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        rc = file_is_dir(p) ? 0 : make_dir(p);
        *c = '/';
    }
    if (rc == 0 && !file_is_dir(p))
        rc = make_dir(p);
    mem_free(p);
    /* A file in the way also says EEXIST. */
    if (rc == 0 && !file_is_dir(path))
        rc = err_errno(ENOTDIR, "cannot create folder %s", path);
    return rc;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    if (remove(path) == 0 || errno == ENOENT)
        return 0;
    return err_errno(errno, "cannot remove %s", path);
}

int file_remove_tree(const char *path)
{
    int rc = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (rc == -1)
        return errno == ENOENT ? 0 : err_errno(errno, "cannot remove %s", path);
    return rc;
}

bool file_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino && !S_ISCHR(x.st_mode);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int64_t file_size(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return err_errno(errno, "cannot read %s", path);
    return st.st_size;
}

char *file_path(const char *dir, const char *name)
{
    struct buf path = {0};
    size_t len = strlen(dir);
    buf_adds(&path, dir);
    if (len > 0 && dir[len - 1] != '/')
        buf_addc(&path, '/');
    buf_adds(&path, name);
    if (buf_check(&path) < 0) {
        buf_drop(&path);
        return NULL;
    }
    return path.p;
}
