/* SPDX-License-Identifier: MIT */
/* safetensors_model.c - a checkpoint folder: one file or many, found by tensor name.
 *
 * An index is followed literally: it says which file holds which tensor, and a tensor
 * that it does not name does not exist, whatever the files hold. */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "json.h"
#include "mem.h"

#define INDEX "model.safetensors.index.json"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct st_entry *)a)->name,
                  ((const struct st_entry *)b)->name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int open_file(struct st_model *m, const char *name)
{
    char *path = file_path(m->dir, name);
    if (!path)
        return E_MEMORY;
    int rc = st_open(&m->file[m->files], path);
    if (rc == 0)
        m->files++;
    mem_free(path);
    return rc;
}

static int open_single(struct st_model *m)
{
    m->file = mem_zero(1, sizeof *m->file);
    if (!m->file)
        return E_MEMORY;
    TRY(open_file(m, "model.safetensors"));
    const struct st_header *h = &m->file[0].header;
    m->entry = mem_zero((size_t)h->tensors, sizeof *m->entry);
    if (!m->entry)
        return E_MEMORY;
    for (int64_t i = 0; i < h->tensors; i++)
        m->entry[m->entries++] =
            (struct st_entry){h->tensor[i].name, &h->tensor[i], &m->file[0]};
    return 0;
}

/* Names of files are names, not paths: an index cannot lead out of its folder. */
static int check_name(const char *name)
{
    if (!name[0] || strchr(name, '/') || strstr(name, ".."))
        return err_set(E_FORMAT, "\"%s\" is not a file name", name);
    return 0;
}

/* Opens each file that the map names, once, in the order of their names. */
static int open_files(struct st_model *m, const struct json *map)
{
    void *iter = NULL;
    const char *key;
    const struct json *value;
    int64_t n = json_size(map), used = 0;
    int rc = 0;
    const char **name = mem_zero((size_t)n, sizeof *name);
    m->file = mem_zero((size_t)n, sizeof *m->file);
    if (!name || !m->file) {
        rc = E_MEMORY;
        goto out;
    }
    while (json_each(map, &iter, &key, &value)) {
        TRY_GOTO(rc, json_to_text(value, &name[used]), out);
        TRY_GOTO(rc, check_name(name[used++]), out);
    }
    if (n > 0)
        qsort(name, (size_t)n, sizeof *name, by_text);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || strcmp(name[i], name[i - 1]) != 0)
            TRY_GOTO(rc, open_file(m, name[i]), out);
out:
    mem_free(name);
    return rc;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* An entry as the files have it: sorted by tensor name, then by file name. */
static int by_name_file(const void *a, const void *b)
{
    const struct st_entry *x = a, *y = b;
    int c = by_name(x, y);
    return c ? c : strcmp(last_part(x->file->path), last_part(y->file->path));
}

static int gather(const struct st_model *m, struct st_entry **out, int64_t *n)
{
    int64_t total = 0;
    for (int64_t f = 0; f < m->files; f++)
        total += m->file[f].header.tensors;
    struct st_entry *all = mem_zero((size_t)total, sizeof *all);
    if (!all)
        return E_MEMORY;
    *n = 0;
    for (int64_t f = 0; f < m->files; f++)
        for (int64_t i = 0; i < m->file[f].header.tensors; i++) {
            const struct st_tensor *t = &m->file[f].header.tensor[i];
            all[(*n)++] = (struct st_entry){t->name, t, &m->file[f]};
        }
    if (total > 0)
        qsort(all, (size_t)total, sizeof *all, by_name_file);
    *out = all;
    return 0;
}

static int find_promised(struct st_model *m, const struct json *map)
{
    void *iter = NULL;
    const char *name, *file;
    const struct json *value;
    struct st_entry *all;
    int64_t n;
    TRY(gather(m, &all, &n));
    int rc = 0;
    m->entry = mem_zero((size_t)json_size(map), sizeof *m->entry);
    if (!m->entry)
        rc = E_MEMORY;
    while (rc == 0 && json_each(map, &iter, &name, &value)) {
        TRY_GOTO(rc, json_to_text(value, &file), out);
        struct st_file at = {.path = (char *)(uintptr_t)file};
        struct st_entry key = {name, NULL, &at};
        const struct st_entry *e =
            n ? bsearch(&key, all, (size_t)n, sizeof *all, by_name_file) : NULL;
        if (e)
            m->entry[m->entries++] = *e;
        else
            rc = err_set(E_FORMAT, "tensor %s is promised in %s, which lacks it", name,
                         file);
    }
out:
    mem_free(all);
    return rc;
}

static int open_index(struct st_model *m, const char *path)
{
    struct json *root;
    const struct json *map;
    TRY(json_load(&root, path));
    int rc = json_need_object(root, "weight_map", &map);
    if (rc == 0)
        rc = open_files(m, map);
    if (rc == 0)
        rc = find_promised(m, map);
    json_free(root);
    return rc < 0 ? err_wrap(rc, "%s", path) : 0;
}

int st_model_open(struct st_model *m, const char *dir)
{
    int rc = E_MEMORY;
    *m = (struct st_model){.dir = mem_text(dir)};
    char *index = file_path(dir, INDEX);
    if (m->dir && index)
        rc = file_exists(index) ? open_index(m, index) : open_single(m);
    mem_free(index);
    if (rc < 0) {
        st_model_close(m);
        return rc;
    }
    if (m->entries > 0)
        qsort(m->entry, (size_t)m->entries, sizeof *m->entry, by_name);
    return 0;
}

void st_model_close(struct st_model *m)
{
    for (int64_t i = 0; i < m->files; i++)
        st_close(&m->file[i]);
    mem_free(m->file);
    mem_free(m->entry);
    mem_free(m->dir);
    *m = (struct st_model){0};
}

const struct st_entry *st_model_find(const struct st_model *m, const char *name)
{
    struct st_entry key = {.name = name};
    if (m->entries == 0)
        return NULL;
    return bsearch(&key, m->entry, (size_t)m->entries, sizeof *m->entry, by_name);
}

static void add_u64(struct hash *h, uint64_t v)
{
    uint8_t p[8];
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
    hash_add(h, p, sizeof p);
}

static void add_entry(struct hash *h, const struct st_entry *e)
{
    enum { END = 64 << 10 };
    const struct st_tensor *t = e->tensor;
    const uint8_t *data = st_data(e->file, t);
    size_t bytes = (size_t)(t->end - t->begin), n = bytes < END ? bytes : END;
    const char *type = st_type_name(t->type);
    hash_add(h, e->name, strlen(e->name) + 1);
    hash_add(h, type, strlen(type) + 1);
    add_u64(h, (uint64_t)t->rank);
    for (int i = 0; i < t->rank; i++)
        add_u64(h, (uint64_t)t->dim[i]);
    add_u64(h, hash_bytes(data, n));
    add_u64(h, hash_bytes(data + bytes - n, n));
}

int st_model_digest(const struct st_model *m, uint64_t *out)
{
    char *config, *path = file_path(m->dir, "config.json");
    size_t n;
    if (!path)
        return E_MEMORY;
    int rc = file_read(path, &config, &n);
    mem_free(path);
    TRY(rc);
    struct hash *h = hash_open();
    if (h) {
        add_u64(h, n);
        hash_add(h, config, n);
        for (int64_t i = 0; i < m->entries; i++)
            add_entry(h, &m->entry[i]);
        *out = hash_value(h);
    }
    hash_close(h);
    mem_free(config);
    return h ? 0 : E_MEMORY;
}
