/* SPDX-License-Identifier: MIT */
/* mds_index.c - the index is believed in nothing but names and their order. */
#include "mds_index.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "json.h"
#include "mem.h"

/* 1 when the file that `data` describes is there, as long as it should be. */
static int look(const struct json *data, const char *dir, const char **name)
{
    int64_t bytes, size;
    TRY(json_need_text(data, "basename", name));
    TRY(json_need_int(data, "bytes", &bytes));
    if (!file_stays_below(*name))
        return err_set(E_FORMAT, "a shard outside the folder: %s", *name);
    char *path = file_path(dir, *name);
    if (!path)
        return E_MEMORY;
    bool there = file_exists(path);
    size = there ? file_size(path) : 0;
    mem_free(path);
    TRY((int)(size < 0 ? size : 0));
    if (there && size != bytes)
        return err_set(E_FORMAT, "%s has %" PRId64 " bytes, not %" PRId64, *name, size,
                       bytes);
    return there;
}

static int find_shard(const struct json *shard, const char *dir, const char **name)
{
    const char *format;
    const struct json *raw, *zip = json_get(shard, "zip_data");
    TRY(json_need_text(shard, "format", &format));
    if (strcmp(format, "mds") != 0)
        return err_set(E_FORMAT, "shards of format \"%s\" are not read", format);
    TRY(json_need_object(shard, "raw_data", &raw));
    int there = look(raw, dir, name);
    TRY(there);
    if (!there && zip && !json_is_null(zip))
        there = look(zip, dir, name);
    TRY(there);
    return there ? 0 : err_set(E_MISSING, "%s is not there", *name);
}

static int list(const struct json *shards, const char *dir, char ***names, int64_t *n)
{
    *names = mem_zero((size_t)json_size(shards) + 1, sizeof **names);
    if (!*names)
        return E_MEMORY;
    for (*n = 0; *n < json_size(shards); ++*n) {
        const char *name = NULL;
        int rc = find_shard(json_at(shards, *n), dir, &name);
        if (rc < 0)
            return err_wrap(rc, "shard %" PRId64, *n);
        if (!((*names)[*n] = mem_text(name)))
            return E_MEMORY;
    }
    return 1;
}

int mds_index(char ***names, int64_t *n, const char *dir)
{
    struct json *root = NULL;
    const struct json *shards = NULL;
    char *path = file_path(dir, "index.json");
    int rc = path ? 0 : E_MEMORY;
    *names = NULL;
    *n = 0;
    if (rc == 0 && file_exists(path)) {
        rc = json_load(&root, path);
        if (rc == 0)
            shards = json_get(root, "shards");
        if (shards && json_is_array(shards) && (rc = list(shards, dir, names, n)) < 0)
            err_wrap(rc, "%s", path);
    }
    if (rc < 0) {
        file_list_free(*names, *n);
        *names = NULL;
        *n = 0;
    }
    json_free(root);
    mem_free(path);
    return rc;
}
