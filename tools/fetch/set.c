/* SPDX-License-Identifier: MIT */
/* set.c - reading, writing and comparing manifests of uploads. */
#include "set.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "json.h"
#include "mem.h"

enum { FORMAT = 1 };

char *set_sum(char out[SET_SUM], uint64_t crc)
{
    unsigned char bytes[8], text[SET_SUM];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(crc >> (56 - 8 * i));
    EVP_EncodeBlock(text, bytes, sizeof bytes);
    memcpy(out, text, 13); // 12 digits and a NUL
    return out;
}

size_t set_folder(const char *key)
{
    static const char name[] = SET_NAME;
    size_t n = strlen(key), m = strlen(name);
    bool is =
        n >= m && strcmp(key + n - m, name) == 0 && (n == m || key[n - m - 1] == '/');
    return is ? n - m : n;
}

int set_add(struct set *s, const char *key, int64_t size, const char *sum,
            const char *etag)
{
    struct set_entry *at = mem_room(s->at, s->n, &s->cap, sizeof *at);
    if (!at)
        return E_MEMORY;
    s->at = at;
    struct set_entry *e = &at[s->n];
    *e = (struct set_entry){.size = size};
    size_t n = strnlen(sum, sizeof e->sum - 1);
    memcpy(e->sum, sum, n);
    e->key = mem_text(key);
    e->etag = mem_text(etag);
    if (!e->key || !e->etag) {
        mem_free(e->key);
        mem_free(e->etag);
        return E_MEMORY;
    }
    s->n++;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct set_entry *x = a, *y = b;
    return strcmp(x->key, y->key);
}

void set_sort(struct set *s)
{
    if (s->n > 0)
        qsort(s->at, (size_t)s->n, sizeof *s->at, compare_keys);
}

const struct set_entry *set_find(const struct set *s, const char *key)
{
    struct set_entry want = {.key = (char *)key};
    return s->n > 0 ? bsearch(&want, s->at, (size_t)s->n, sizeof *s->at, compare_keys)
                    : NULL;
}

void set_drop(struct set *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        mem_free(s->at[i].key);
        mem_free(s->at[i].etag);
    }
    mem_free(s->at);
    *s = (struct set){0};
}

/* ---- text ---- */

static int take_entry(struct set *s, const struct json *v)
{
    const char *key, *sum, *etag;
    int64_t size;
    if (!json_is_object(v))
        return err_set(E_FORMAT, "an entry that is no object");
    TRY(json_need_text(v, "key", &key));
    TRY(json_need_int(v, "size", &size));
    TRY(json_need_text(v, "crc64nvme", &sum));
    TRY(json_need_text(v, "etag", &etag));
    if (strlen(sum) >= SET_SUM || size < 0)
        return err_set(E_FORMAT, "size or crc64nvme of %s are none", key);
    return set_add(s, key, size, sum, etag);
}

static int take_all(struct set *s, const struct json *v)
{
    const struct json *objects;
    int64_t format;
    if (!json_is_object(v))
        return err_set(E_FORMAT, "not an object");
    TRY(json_need_int(v, "format", &format));
    if (format != FORMAT)
        return err_set(E_FORMAT, "format %lld is not known", (long long)format);
    TRY(json_need_bool(v, "complete", &s->complete));
    TRY(json_need_array(v, "objects", &objects));
    for (int64_t i = 0; i < json_size(objects); i++)
        TRY(take_entry(s, json_at(objects, i)));
    set_sort(s);
    for (int64_t i = 1; i < s->n; i++)
        if (strcmp(s->at[i - 1].key, s->at[i].key) == 0)
            return err_set(E_FORMAT, "%s is there twice", s->at[i].key);
    return 0;
}

int set_parse(struct set *s, const char *text, size_t n)
{
    struct json *v;
    TRY(json_parse(&v, text, n));
    int rc = take_all(s, v);
    json_free(v);
    return rc;
}

static void write_entry(struct buf *out, const struct set_entry *e)
{
    struct json_out o = {.to = out};
    json_open_object(&o, NULL);
    json_add_text(&o, "key", e->key);
    json_add_int(&o, "size", e->size);
    json_add_text(&o, "crc64nvme", e->sum);
    json_add_text(&o, "etag", e->etag);
    json_close_object(&o);
}

/* One object a line, so that a person can look at it and compare two. */
void set_write(struct buf *out, const struct set *s)
{
    buf_addf(out, "{\"format\":%d,\"complete\":%s,\"objects\":[", FORMAT,
             s->complete ? "true" : "false");
    for (int64_t i = 0; i < s->n; i++) {
        buf_adds(out, i > 0 ? ",\n" : "\n");
        write_entry(out, &s->at[i]);
    }
    buf_adds(out, "\n]}\n");
}

/* ---- against what is there ---- */

static int compare_from(const void *a, const void *b)
{
    const struct object *x = *(const struct object *const *)a,
                        *y = *(const struct object *const *)b;
    return strcmp(x->from, y->from);
}

int set_index(struct set_index *x, const struct objects *list, int64_t first)
{
    x->n = list->n - first;
    x->at = mem_alloc((size_t)x->n * sizeof *x->at);
    if (!x->at)
        return E_MEMORY;
    for (int64_t i = 0; i < x->n; i++)
        x->at[i] = &list->at[first + i];
    qsort(x->at, (size_t)x->n, sizeof *x->at, compare_from);
    return 0;
}

const struct object *set_lookup(const struct set_index *x, const char *from)
{
    const struct object want = {.from = from}, *key = &want;
    const struct object **o =
        bsearch(&key, x->at, (size_t)x->n, sizeof *x->at, compare_from);
    return o ? *o : NULL;
}

static int check_entry(const struct set_entry *e, const struct object *o,
                       const char *prefix)
{
    if (!o)
        return err_set(E_AGAIN, "%s%s is missing, of the set in %s" SET_NAME, prefix,
                       e->key, prefix);
    if (o->size != e->size || (o->etag && *e->etag && strcmp(o->etag, e->etag) != 0))
        return err_set(E_AGAIN, "%s%s is not the one of the set in %s" SET_NAME, prefix,
                       e->key, prefix);
    return 0;
}

int set_check(const struct set *s, const struct objects *list, int64_t first,
              const char *prefix)
{
    struct set_index x;
    struct buf from = {0};
    if (!s->complete)
        return err_set(E_AGAIN, "%s" SET_NAME ": the upload has not ended", prefix);
    TRY(set_index(&x, list, first));
    int rc = 0;
    for (int64_t i = 0; i < s->n && rc == 0; i++) {
        buf_clear(&from);
        buf_addf(&from, "%s%s", prefix, s->at[i].key);
        rc = buf_check(&from);
        if (rc == 0)
            rc = check_entry(&s->at[i], set_lookup(&x, from.p), prefix);
    }
    buf_drop(&from);
    mem_free(x.at);
    return rc;
}
