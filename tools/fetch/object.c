/* SPDX-License-Identifier: MIT */
/* object.c - after sorting by key, equal keys are neighbours; a file in the way of a
 * folder is found by looking up every folder of a key. */
#include "object.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "json.h"
#include "mem.h"

/* The key is mostly the end of where it comes from, and then needs no copy. */
static const char *key_in(const char *key, const char *from)
{
    size_t n = strlen(key), all = strlen(from);
    return n <= all && strcmp(from + all - n, key) == 0 ? from + all - n : NULL;
}

struct object *object_add(struct objects *list, const char *key, const char *from)
{
    struct object *at = mem_room(list->at, list->n, &list->cap, sizeof *at);
    if (!at)
        return NULL;
    list->at = at;
    const char *own = texts_add(&list->texts, from);
    const char *name = own ? key_in(key, own) : NULL;
    if (own && !name)
        name = texts_add(&list->texts, key);
    if (!name)
        return NULL;
    at[list->n] = (struct object){.key = name, .from = own};
    return &at[list->n++];
}

const char *object_text(struct objects *list, const char *text)
{
    return texts_add(&list->texts, text);
}

int object_refuse(struct objects *list, struct object *o, int code)
{
    o->code = code;
    o->why = texts_add(&list->texts, err_text());
    return o->why ? 0 : E_MEMORY;
}

static bool is_part(const char *part, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(part, name, n) == 0;
}

int object_check_key(const char *key)
{
    for (const char *c = key; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return err_set(E_FORMAT, "%s: refused: control character in the name", key);
    if (!json_utf8(key))
        return err_set(E_FORMAT, "%s: refused: the name is not UTF-8", key);
    const char *part = key;
    for (;;) {
        size_t n = strcspn(part, "/");
        if (n == 0 || is_part(part, n, ".") || is_part(part, n, ".."))
            return err_set(E_FORMAT, "%s: refused: the name leaves the destination",
                           *key ? key : "(empty name)");
        if (is_part(part, n, ".draft-fetch"))
            return err_set(E_FORMAT, "%s: refused: the name is draft-fetch's own", key);
        if (n > 255)
            return err_set(E_FORMAT,
                           "%s: refused: a part of the name is over 255 bytes", key);
        if (!part[n])
            return 0;
        part += n + 1;
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct object *)a)->key, ((const struct object *)b)->key);
}

/* Among equals the order of the sort tells which one is kept. */
static int by_key_and_source(const void *a, const void *b)
{
    int order = by_key(a, b);
    return order ? order
                 : strcmp(((const struct object *)a)->from,
                          ((const struct object *)b)->from);
}

static bool has_key(const struct objects *list, char *key)
{
    struct object wanted = {.key = key};
    return bsearch(&wanted, list->at, (size_t)list->n, sizeof *list->at, by_key);
}

/* 1 when one of the key's folders is an object.  The search goes over the keys, so it
 * works on a copy. */
static int has_file_above(const struct objects *list, const char *key)
{
    int found = 0;
    char *above = mem_text(key);
    if (!above)
        return E_MEMORY;
    for (char *slash = strchr(above, '/'); slash && !found;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        found = has_key(list, above);
        if (found)
            err_set(E_CONFIG, "%s: refused: %s is a file", key, above);
        *slash = '/';
    }
    mem_free(above);
    return found;
}

static int check(const struct objects *list, const struct object *o)
{
    TRY(object_check_key(o->key));
    if (o > list->at && strcmp(o[-1].key, o->key) == 0)
        return err_set(E_CONFIG, "%s: refused: both %s and %s have this name", o->key,
                       o[-1].from, o->from);
    int above = has_file_above(list, o->key);
    return above > 0 ? E_CONFIG : above;
}

int object_arrange(struct objects *list)
{
    if (list->n == 0)
        return 0;
    qsort(list->at, (size_t)list->n, sizeof *list->at, by_key_and_source);
    for (int64_t i = 0; i < list->n; i++) {
        struct object *o = &list->at[i];
        int rc = o->code < 0 ? 0 : check(list, o);
        if (rc < 0)
            TRY(object_refuse(list, o, rc));
    }
    return 0;
}

/* Globs, each ended by a NUL. */
struct globs {
    char *text, *end;
};

static int globs_split(struct globs *g, const char *text)
{
    *g = (struct globs){0};
    if (!text)
        return 0;
    if (!(g->text = mem_text(text)))
        return E_MEMORY;
    g->end = g->text + strlen(text) + 1;
    for (char *c = g->text; *c; c++)
        if (*c == ',')
            *c = 0;
    return 0;
}

static bool globs_match(const struct globs *g, const char *key)
{
    for (const char *glob = g->text; glob < g->end; glob += strlen(glob) + 1)
        if (fnmatch(glob, key, 0) == 0)
            return true;
    return false;
}

int object_choose(struct objects *list, const char *include, const char *exclude)
{
    struct globs in = {0}, out = {0};
    int64_t kept = 0, all = list->n;
    int rc = globs_split(&in, include);
    TRY_GOTO(rc, rc, out);
    TRY_GOTO(rc, globs_split(&out, exclude), out);
    for (int64_t i = 0; i < list->n; i++) {
        struct object *o = &list->at[i];
        if ((!include || globs_match(&in, o->key)) && !globs_match(&out, o->key))
            list->at[kept++] = *o;
    }
    list->n = kept;
    if (kept == 0)
        rc = err_set(E_MISSING,
                     "nothing to do: of %lld objects, --include and --exclude leave "
                     "none",
                     (long long)all);
out:
    mem_free(in.text);
    mem_free(out.text);
    return rc;
}

void object_share(struct objects *list, int part, int parts)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < list->n; i++) {
        struct object *o = &list->at[i];
        uint64_t hash = hash_bytes(o->key, strlen(o->key));
        if (hash % (uint64_t)parts == (uint64_t)part)
            list->at[kept++] = *o;
    }
    list->n = kept;
}

void object_drop(struct objects *list)
{
    mem_free(list->at);
    texts_drop(&list->texts);
    *list = (struct objects){0};
}
