/* SPDX-License-Identifier: MIT */
/* dataset.c - two small JSON files, read with care: their names become paths. */
#include "dataset.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "json.h"
#include "mem.h"

/* dir/name as JSON; 0 when it is not there. */
static int load(struct json **root, const char *dir, const char *name)
{
    char *path = file_path(dir, name);
    int rc = path ? file_exists(path) : E_MEMORY;
    if (rc > 0 && (rc = json_load(root, path)) == 0)
        rc = 1;
    mem_free(path);
    return rc;
}

/* A name must stay in its folder. */
static int check_name(const char *name)
{
    if (*name == 0 || *name == '.' || strchr(name, '/'))
        return err_set(E_FORMAT, "\"%s\" cannot be a name here", name);
    return 0;
}

/* ---- splits ---- */

static int list_splits(const struct json *splits, struct buf *out)
{
    for (int64_t i = 0; i < json_size(splits); i++) {
        const char *name;
        TRY(json_to_text(json_at(splits, i), &name));
        TRY(check_name(name));
        buf_addf(out, "%s%s", i ? ", " : "", name);
    }
    return buf_check(out);
}

static bool has_split(const struct json *splits, const char *want)
{
    const char *name;
    for (int64_t i = 0; i < json_size(splits); i++)
        if (json_to_text(json_at(splits, i), &name) == 0 && strcmp(name, want) == 0)
            return true;
    return false;
}

static int choose(const struct json *root, const char *want, const char **name,
                  struct buf *list)
{
    const struct json *splits;
    TRY(json_need_array(root, "splits", &splits));
    TRY(list_splits(splits, list));
    *name = want ? want : "train";
    if (has_split(splits, *name))
        return 0;
    if (want)
        return err_set(E_MISSING, "no split \"%s\", but: %s", want, buf_text(list));
    if (json_size(splits) == 1)
        return json_to_text(json_at(splits, 0), name);
    return err_set(E_USAGE, "choose one with --split: %s", buf_text(list));
}

int dataset_split(char **out, const char *dir, const char *want, struct buf *said)
{
    struct json *root = NULL;
    struct buf list = {0};
    const char *name;
    int rc = load(&root, dir, "dataset_dict.json");
    if (rc > 0) {
        rc = choose(root, want, &name, &list);
        rc = rc < 0 ? err_wrap(rc, "%s/dataset_dict.json", dir) : 1;
    }
    if (rc > 0 && !(*out = mem_text(name)))
        rc = E_MEMORY;
    if (rc > 0 && strcmp(name, buf_text(&list)) != 0)
        buf_addf(said, "%s%s: split %s, of %s", said->len ? "; " : "", dir, name,
                 buf_text(&list));
    buf_drop(&list);
    json_free(root);
    return rc;
}

/* ---- files ---- */

static int copy_names(char **to, int64_t *n, const struct json *files)
{
    for (int64_t i = 0; i < json_size(files); i++) {
        const char *name;
        TRY(json_need_text(json_at(files, i), "filename", &name));
        TRY(check_name(name));
        if (!(to[*n] = mem_text(name)))
            return E_MEMORY;
        ++*n;
    }
    return 0;
}

/* Old versions of datasets saved a selection beside the rows that it is made from. */
static int read_state(char ***names, int64_t *n, const struct json *root)
{
    const struct json *files;
    TRY(json_need_array(root, "_data_files", &files));
    if (json_size(json_get(root, "_indices_data_files")) > 0)
        return err_set(E_FORMAT, "it is a selection of rows: load and save it again "
                                 "with a newer version of datasets");
    *names = mem_zero((size_t)json_size(files) + 1, sizeof **names);
    *n = 0;
    return *names ? copy_names(*names, n, files) : E_MEMORY;
}

int dataset_files(char ***names, int64_t *n, const char *dir)
{
    struct json *root = NULL;
    *names = NULL;
    *n = 0;
    int rc = load(&root, dir, "state.json");
    if (rc > 0 && !json_get(root, "_data_files"))
        rc = 0; // another program's
    if (rc > 0) {
        rc = read_state(names, n, root);
        rc = rc < 0 ? err_wrap(rc, "%s/state.json", dir) : 1;
    }
    if (rc < 0) {
        file_list_free(*names, *n);
        *names = NULL;
    }
    json_free(root);
    return rc;
}
