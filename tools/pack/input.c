/* SPDX-License-Identifier: MIT */
/* input.c - a walk, and a pass over the files that hashes them.
 *
 * The pass reads everything once before anything is parsed.  That is what lets a rerun
 * know, before it does the work, that the work is done; reading is many times faster
 * than parsing. */
#include "input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "json.h"
#include "mds_index.h"
#include "mem.h"
#include "read_megatron.h"
#include "read_packed.h"

static int add(struct input *in, const char *path, const char *name, int64_t size)
{
    struct input_file *at = mem_room(in->at, in->n, &in->cap, sizeof *at);
    if (!at)
        return E_MEMORY;
    in->at = at;
    struct input_file *f = &in->at[in->n++];
    *f = (struct input_file){
        .path = mem_text(path), .name = mem_text(name), .size = size};
    f->shown = f->name;
    return f->path && f->name ? 0 : E_MEMORY;
}

static bool is_wanted(const struct input *in, const char *path)
{
    const struct reader *format = in->choice.format;
    return format ? reader_takes(format, path) : reader_of_name(path) != NULL;
}

static int walk(struct input *in, const char *dir, size_t root);

/* One entry of a folder.  A link to a folder may lead in a circle and is an error. */
static int visit(struct input *in, const char *path, size_t root)
{
    struct stat st, link;
    if (stat(path, &st) != 0 || lstat(path, &link) != 0)
        return err_errno(errno, "cannot read %s", path);
    if (S_ISDIR(st.st_mode) && S_ISLNK(link.st_mode))
        return err_set(E_FORMAT, "%s: a link to a folder is not followed", path);
    if (S_ISDIR(st.st_mode))
        return walk(in, path, root);
    if (S_ISREG(st.st_mode) && is_wanted(in, path))
        return add(in, path, path + root, st.st_size);
    in->ignored++;
    return 0;
}

static int visit_name(struct input *in, const char *dir, const char *name, size_t root)
{
    char *path = file_path(dir, name);
    int rc = path ? visit(in, path, root) : E_MEMORY;
    mem_free(path);
    return rc;
}

static int walk_entries(struct input *in, const char *dir, size_t root)
{
    int rc = 0;
    DIR *d = opendir(dir);
    if (!d)
        return err_errno(errno, "cannot list %s", dir);
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e)
            break;
        if (file_is_input(e->d_name))
            TRY_GOTO(rc, visit_name(in, dir, e->d_name, root), out);
    }
    if (errno)
        rc = err_errno(errno, "cannot list %s", dir);
out:
    closedir(d);
    return rc;
}

/* The files of a saved dataset, in its order. */
static int add_set(struct input *in, const char *dir, size_t root, char *const *names,
                   int64_t n)
{
    in->sets++;
    for (int64_t i = 0; i < n; i++) {
        int64_t before = in->n;
        TRY(visit_name(in, dir, names[i], root));
        for (; before < in->n; before++) {
            in->at[before].set = in->sets;
            in->at[before].place = i;
        }
    }
    return 0;
}

/* The shards that an index of MosaicML's lists: 1, or 0 when there is none. */
static int add_mds(struct input *in, const char *dir, size_t root)
{
    char **names;
    int64_t n, before = in->n;
    if (in->choice.format && strcmp(in->choice.format->name, "mds") != 0)
        return 0;
    int rc = mds_index(&names, &n, dir);
    if (rc <= 0)
        return rc;
    rc = add_set(in, dir, root, names, n);
    if (rc == 0 && in->n - before != n)
        rc = err_set(E_FORMAT, "%s: shards compressed in a way that is not read", dir);
    file_list_free(names, n);
    return rc < 0 ? rc : 1;
}

static int walk(struct input *in, const char *dir, size_t root)
{
    char *split = NULL, **names;
    int64_t n;
    int is = dataset_split(&split, dir, in->choice.split, &in->said);
    if (is > 0) {
        in->splits++;
        is = visit_name(in, dir, split, root);
        mem_free(split);
        return is;
    }
    TRY(is);
    is = add_mds(in, dir, root);
    if (is != 0)
        return is < 0 ? is : 0;
    is = dataset_files(&names, &n, dir);
    if (is == 0)
        return walk_entries(in, dir, root);
    TRY(is);
    int rc = add_set(in, dir, root, names, n);
    file_list_free(names, n);
    return rc;
}

/* By name, and the files of a saved dataset, which lie below one folder, by their list.
 */
static int by_name(const void *a, const void *b)
{
    const struct input_file *x = a, *y = b;
    if (x->set && x->set == y->set)
        return (x->place > y->place) - (x->place < y->place);
    return strcmp(x->name, y->name);
}

/* Runs of packed rows, which are known by their names, must be whole. */
static int check_runs(const struct input *in, int64_t first)
{
    char *dir = NULL;
    int rc = 0;
    for (int64_t i = first; i < in->n && rc == 0; i++) {
        const char *path = in->at[i].path, *name = file_last_name(path);
        size_t n = (size_t)(name - path);
        if (!packed_names(name) || (dir && strncmp(dir, path, n) == 0 && !dir[n]))
            continue; // nothing of ours, or checked with the one before
        mem_free(dir);
        dir = mem_text(path);
        if (!dir)
            return E_MEMORY;
        dir[n] = 0;
        rc = packed_whole(dir);
    }
    mem_free(dir);
    return rc;
}

static int add_folder(struct input *in, const char *dir)
{
    int64_t first = in->n;
    size_t root = strlen(dir);
    TRY(walk(in, dir, root + (dir[root - 1] != '/')));
    if (in->n == first)
        return err_set(E_MISSING, "%s: no file of a format that is read here", dir);
    qsort(in->at + first, (size_t)(in->n - first), sizeof *in->at, by_name);
    return check_runs(in, first);
}

/* A file and the other half that it is read with, in the order of their names, unless
 * naming the other half has brought it already. */
static int add_pair(struct input *in, const char *path, const char *other, int64_t size)
{
    bool first = strcmp(path, other) < 0;
    int64_t more = file_size(other);
    TRY((int)(more < 0 ? more : 0));
    for (int64_t i = 0; i < in->n; i++)
        if (strcmp(in->at[i].path, path) == 0)
            return 0;
    if (first)
        TRY(add(in, path, file_last_name(path), size));
    TRY(add(in, other, file_last_name(other), more));
    return first ? 0 : add(in, path, file_last_name(path), size);
}

static int add_file(struct input *in, const char *path, int64_t size)
{
    char *other = in->choice.format && strcmp(in->choice.format->name, "megatron") != 0
                      ? NULL
                      : megatron_other(path);
    int rc = other ? add_pair(in, path, other, size)
                   : add(in, path, file_last_name(path), size);
    mem_free(other);
    return rc;
}

static int add_operand(struct input *in, const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        if (in->stream)
            return err_set(E_USAGE, "stdin is given twice");
        in->stream = true;
        return add(in, path, "-", 0);
    }
    if (stat(path, &st) != 0)
        return err_errno(errno, "cannot read %s", path);
    if (S_ISDIR(st.st_mode))
        return add_folder(in, path);
    if (!S_ISREG(st.st_mode))
        return err_set(E_FORMAT, "%s: neither file nor folder", path);
    return add_file(in, path, st.st_size);
}

static int by_text(const void *a, const void *b)
{
    const struct input_file *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Files of two operands that have one name are shown by their paths; what is written of
 * them keeps the name, and so does not depend on where they lie. */
static int tell_apart(struct input *in)
{
    struct input_file **f = mem_zero((size_t)in->n + 1, sizeof *f);
    int rc = f ? 0 : E_MEMORY;
    for (int64_t i = 0; i < in->n && rc == 0; i++)
        f[i] = &in->at[i];
    if (rc == 0)
        qsort(f, (size_t)in->n, sizeof *f, by_text);
    for (int64_t i = 0, same; i < in->n && rc == 0; i += same) {
        for (same = 1; i + same < in->n && by_text(&f[i], &f[i + same]) == 0; same++)
            ;
        for (int64_t k = i; same > 1 && k < i + same; k++)
            f[k]->shown = f[k]->path;
    }
    mem_free(f);
    return rc;
}

int input_list(struct input *in, char *const *operand,
               const struct input_choice *choice)
{
    *in = (struct input){.choice = *choice};
    for (; *operand; operand++)
        TRY(add_operand(in, *operand));
    if (choice->split && in->splits == 0)
        return err_set(E_USAGE, "--split %s: no folder has splits", choice->split);
    TRY(tell_apart(in));
    return buf_check(&in->said);
}

static bool is_stream(const struct input_file *f)
{
    return strcmp(f->path, "-") == 0;
}

static int hash_one(struct input_file *f, void *buffer, size_t size)
{
    struct hash *h = hash_open();
    if (!h)
        return E_MEMORY;
    int fd = is_stream(f) ? dup(STDIN_FILENO) : open(f->path, O_RDONLY | O_CLOEXEC);
    int64_t got = fd < 0 ? err_errno(errno, "cannot open %s", f->path) : 1;
    f->size = 0;
    while (got > 0 && (got = file_get(fd, buffer, size, f->path)) > 0) {
        hash_add(h, buffer, (size_t)got);
        f->size += got;
    }
    f->xxh3 = hash_value(h);
    hash_close(h);
    if (fd >= 0)
        close(fd);
    return (int)got;
}

enum { SIZE = 1 << 20 };

static int hash_piece(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct input *in = ctx;
    void *buffer = mem_alloc(SIZE);
    int rc = buffer ? 0 : E_MEMORY;
    (void)worker;
    for (int64_t i = begin; i < end && rc == 0; i++)
        if (!is_stream(&in->at[i]))
            rc = hash_one(&in->at[i], buffer, SIZE);
    mem_free(buffer);
    return rc;
}

int input_hash(struct input *in, struct par *p)
{
    return par_for(p, in->n, 1, hash_piece, in);
}

int input_hash_stream(struct input *in)
{
    void *buffer = mem_alloc(SIZE);
    int rc = buffer ? 0 : E_MEMORY;
    for (int64_t i = 0; i < in->n && rc == 0; i++)
        if (is_stream(&in->at[i]))
            rc = hash_one(&in->at[i], buffer, SIZE);
    mem_free(buffer);
    return rc;
}

void input_describe(const struct input *in, struct buf *out)
{
    char xxh3[HASH_TEXT];
    struct json_out o = {.to = out};
    json_open_array(&o, NULL);
    for (int64_t i = 0; i < in->n; i++) {
        const struct input_file *f = &in->at[i];
        json_open_object(&o, NULL);
        json_add_text(&o, "name", f->name);
        json_add_int(&o, "size", f->size);
        json_add_text(&o, "xxh3", hash_text(xxh3, f->xxh3));
        json_close_object(&o);
    }
    json_close_array(&o);
}

int input_digest(const struct input *in, uint64_t *out)
{
    struct buf text = {0};
    input_describe(in, &text);
    int rc = buf_check(&text);
    *out = hash_bytes(buf_text(&text), text.len);
    buf_drop(&text);
    return rc;
}

int64_t input_bytes(const struct input *in)
{
    int64_t bytes = 0;
    if (in->stream) // the reader writes its size while others ask
        return 0;
    for (int64_t i = 0; i < in->n; i++)
        bytes += in->at[i].size;
    return bytes;
}

void input_drop(struct input *in)
{
    for (int64_t i = 0; i < in->n; i++) {
        mem_free(in->at[i].path);
        mem_free(in->at[i].name);
    }
    mem_free(in->at);
    buf_drop(&in->said);
    *in = (struct input){0};
}
