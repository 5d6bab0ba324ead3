/* SPDX-License-Identifier: MIT */
/* shard_folder.c - turns paths into sources, and checks that folders are whole.
 *
 * The sorted names of a whole run are known in advance: all shards of part 0 from 0
 * without a gap, its end file, those of part 1, and so on.  So a folder is walked
 * beside that sequence, and the first name that differs tells what is missing. */
#include "shard_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"

/* Appends a source; its path is a copy. */
static struct shard_source *add(struct shard_sources *list, enum shard_kind kind,
                                const char *path)
{
    size_t size = sizeof *list->at;
    struct shard_source *at =
        mem_grow(list->at, (size_t)list->n * size, (size_t)(list->n + 1) * size);
    if (!at)
        return NULL;
    list->at = at;
    struct shard_source *s = &at[list->n++];
    *s = (struct shard_source){.kind = kind, .fd = -1, .wake = -1, .rows = -1};
    s->path = mem_text(path);
    return s->path ? s : NULL;
}

void shard_source_drop(struct shard_sources *list)
{
    for (int64_t i = 0; i < list->n; i++) {
        struct shard_source *s = &list->at[i];
        if (s->fd > STDIN_FILENO)
            close(s->fd);
        shard_head_drop(&s->end);
        buf_drop(&s->digests);
        buf_drop(&s->sums);
        mem_free(s->name);
        mem_free(s->path);
    }
    mem_free(list->at);
    *list = (struct shard_sources){0};
}

/* ---- folders ---- */

static int missing(const char *dir, const struct shard_id *id)
{
    struct buf file = {0};
    shard_name_add(&file, id);
    int rc = err_set(E_FORMAT, "%s: incomplete: no %s", dir, buf_text(&file));
    buf_drop(&file);
    return rc;
}

/* Adds the part whose end file is `file`, after as many shards as at->index. */
static int add_part(struct shard_sources *list, const char *dir, const char *file,
                    const struct shard_id *at)
{
    struct shard_source *s = add(list, SHARD_FOLDER, dir);
    struct file_map map;
    const void *data;
    if (!s || !(s->name = mem_text(at->name)))
        return E_MEMORY;
    char *path = file_path(dir, file);
    if (!path)
        return E_MEMORY;
    int rc = shard_head_map(&s->end, &map, &data, path);
    mem_free(path);
    TRY(rc);
    file_unmap(&map);
    const struct shard_id *id = &s->end.id;
    if (!id->end || strcmp(id->name, at->name) != 0 || id->part != at->part ||
        id->parts != at->parts)
        return err_set(E_FORMAT, "%s: %s is not the end file of this run", dir, file);
    if (id->index > at->index)
        return missing(dir, at);
    if (id->index < at->index)
        return err_set(E_FORMAT, "%s: %" PRId64 " shards, but %s tells of %" PRId64,
                       dir, at->index, file, id->index);
    s->part = id->part;
    s->parts = id->parts;
    s->first_row = id->first_row;
    s->rows = id->rows;
    shard_head_sum(&s->digests, s->end.xxh3);
    shard_source_rewind(s);
    return buf_check(&s->digests);
}

/* One step of the walk: `at` is the shard that should come, or the end file. */
static int walk(struct shard_sources *list, const char *dir, const char *file,
                struct shard_id *at)
{
    struct shard_id f, end = *at;
    size_t len;
    if (!shard_name_parse(&f, &len, file))
        return 0;
    if (len != strlen(at->name) || memcmp(file, at->name, len) != 0)
        return err_set(E_CONFIG, "%s holds two runs, %s and %.*s", dir, at->name,
                       (int)len, file);
    if (f.parts != at->parts)
        return err_set(E_FORMAT,
                       "%s: %s is of a run in %" PRId64 " parts, others of "
                       "%" PRId64,
                       dir, file, f.parts, at->parts);
    end.end = true;
    if (f.part != at->part)
        return missing(dir, &end);
    if (f.end) {
        TRY(add_part(list, dir, file, at));
        at->part++;
        at->index = 0;
        return 0;
    }
    if (f.index != at->index)
        return missing(dir, at);
    at->index++;
    return 0;
}

/* The run that the first file of ours belongs to. */
static int find_run(char **file, int64_t n, struct shard_id *at, char **name)
{
    size_t len;
    for (int64_t i = 0; i < n; i++) {
        if (!shard_name_parse(at, &len, file[i]))
            continue;
        if (!(*name = mem_text(file[i])))
            return E_MEMORY;
        (*name)[len] = 0;
        *at = (struct shard_id){.name = *name, .parts = at->parts};
        return 1;
    }
    return 0;
}

static int add_folder(struct shard_sources *list, const char *dir)
{
    char **file, *name = NULL;
    int64_t n;
    struct shard_id at;
    TRY(file_list(dir, &file, &n));
    int rc = find_run(file, n, &at, &name);
    if (rc == 0)
        rc = err_set(E_MISSING, "%s: no shards of packed or hidden rows", dir);
    for (int64_t i = 0; i < n && rc >= 0; i++)
        rc = walk(list, dir, file[i], &at);
    if (rc >= 0 && at.part < at.parts) {
        at.end = true;
        rc = missing(dir, &at);
    }
    mem_free(name);
    file_list_free(file, n);
    return rc < 0 ? rc : 0;
}

/* ---- files and stdin ---- */

static int add_stream(struct shard_sources *list, const char *path, int fd, int wake)
{
    struct shard_source *s = add(list, SHARD_STREAM, path);
    if (!s) {
        if (fd > STDIN_FILENO)
            close(fd);
        return E_MEMORY;
    }
    s->fd = fd;
    s->wake = wake;
    return 0;
}

/* Reads the first header of a file; *alone: nothing follows its data. */
static int look(struct shard_head *h, const char *path, bool *alone)
{
    struct file_map m;
    size_t n = 0;
    TRY(file_map(&m, path));
    *h = (struct shard_head){0};
    *alone = false;
    int rc = shard_head_is(m.data, m.size) ? st_length(m.data, m.size, &n)
                                           : err_set(E_FORMAT, "not a shard");
    if (rc == 0 && n <= m.size - 8) {
        rc = shard_head_parse(h, m.data, 8 + n);
        *alone = rc == 0 && h->st.data_bytes == m.size - 8 - n;
    }
    file_unmap(&m);
    return rc < 0 ? err_wrap(rc, "%s", path) : 0;
}

static int add_shard(struct shard_sources *list, const char *path,
                     const struct shard_head *h)
{
    struct shard_source *s = add(list, SHARD_FILE, path);
    if (!s)
        return E_MEMORY;
    s->first_row = s->row = h->id.first_row;
    s->rows = h->id.rows;
    shard_head_sum(&s->digests, h->xxh3);
    return buf_check(&s->digests);
}

static int open_stream(struct shard_sources *list, const char *path, int wake)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "cannot open %s", path);
    return add_stream(list, path, fd, wake);
}

static int add_file(struct shard_sources *list, const char *path, int wake)
{
    struct shard_head h;
    bool alone;
    int rc;
    TRY(look(&h, path, &alone));
    if (alone && !h.id.end)
        rc = add_shard(list, path, &h);
    else if (alone && h.id.index > 0)
        rc = err_set(E_CONFIG, "%s: an end file without its shards: name their folder",
                     path);
    else
        rc = open_stream(list, path, wake);
    shard_head_drop(&h);
    return rc;
}

int shard_source_add(struct shard_sources *list, const char *path, int wake)
{
    if (strcmp(path, "-") == 0)
        return add_stream(list, "stdin", STDIN_FILENO, wake);
    return file_is_dir(path) ? add_folder(list, path) : add_file(list, path, wake);
}
