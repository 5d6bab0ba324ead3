/* SPDX-License-Identifier: MIT */
/* safetensors.c - reading one file: the header's JSON, checked, and the mapping.
 *
 * The header is untrusted.  After st_header_parse every tensor's shape, type and range
 * agree with each other and all ranges together cover [0, data_bytes) exactly; whoever
 * knows the size of the data compares it with data_bytes and may then index freely. */
#include "safetensors.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "json.h"
#include "mem.h"

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [ST_U8] = {"U8", 1},           [ST_I32] = {"I32", 4},   [ST_I64] = {"I64", 8},
    [ST_F8_E4M3] = {"F8_E4M3", 1}, [ST_BF16] = {"BF16", 2}, [ST_F16] = {"F16", 2},
    [ST_F32] = {"F32", 4},         [ST_F64] = {"F64", 8},   [ST_BOOL] = {"BOOL", 1},
};
enum { TYPES = sizeof types / sizeof types[0] };

size_t st_type_size(enum st_type t)
{
    return types[t].size;
}

const char *st_type_name(enum st_type t)
{
    return types[t].name;
}

/* ---- the header ---- */

static int parse_type(struct st_tensor *t, const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            t->type = (enum st_type)i;
            return 0;
        }
    return err_set(E_FORMAT, "unknown type \"%s\"", name);
}

/* The sizes are checked as bytes, so a later product of any dims cannot overflow. */
static int parse_shape(struct st_tensor *t, const struct json *shape, uint64_t *bytes)
{
    int64_t rank = json_size(shape);
    if (rank > ST_RANK)
        return err_set(E_FORMAT, "rank %" PRId64 ", at most %d is supported", rank,
                       ST_RANK);
    t->rank = (int)rank;
    uint64_t nonzero = types[t->type].size; // product without the zero dims
    *bytes = nonzero;
    for (int i = 0; i < t->rank; i++) {
        TRY(json_to_int(json_at(shape, i), &t->dim[i]));
        uint64_t d = (uint64_t)t->dim[i];
        if (t->dim[i] < 0 || (d > 0 && nonzero > INT64_MAX / d))
            return err_set(E_FORMAT, "dimension %d of %" PRId64 " is out of range", i,
                           t->dim[i]);
        if (d > 0)
            nonzero *= d;
        *bytes *= d;
    }
    return 0;
}

static int parse_range(struct st_tensor *t, const struct json *pair)
{
    int64_t begin, end;
    if (json_size(pair) != 2)
        return err_set(E_FORMAT, "data_offsets is not a pair");
    TRY(json_to_int(json_at(pair, 0), &begin));
    TRY(json_to_int(json_at(pair, 1), &end));
    if (begin < 0 || end < begin)
        return err_set(E_FORMAT,
                       "data_offsets %" PRId64 ", %" PRId64 " are not a range", begin,
                       end);
    t->begin = (uint64_t)begin;
    t->end = (uint64_t)end;
    return 0;
}

static int parse_tensor(struct st_tensor *t, const struct json *v)
{
    const char *type;
    const struct json *shape, *range;
    uint64_t bytes = 0;
    if (json_size(v) != 3)
        return err_set(E_FORMAT, "expected dtype, shape and data_offsets");
    TRY(json_need_text(v, "dtype", &type));
    TRY(json_need_array(v, "shape", &shape));
    TRY(json_need_array(v, "data_offsets", &range));
    TRY(parse_type(t, type));
    TRY(parse_shape(t, shape, &bytes));
    TRY(parse_range(t, range));
    if (t->end - t->begin != bytes)
        return err_set(E_FORMAT, "its shape has %" PRIu64 " bytes, its range %" PRIu64,
                       bytes, t->end - t->begin);
    return 0;
}

static int parse_meta(struct st_header *h, const struct json *v)
{
    void *iter = NULL;
    const char *key, *text;
    const struct json *value;
    if (!json_is_object(v))
        return err_set(E_FORMAT, "__metadata__ is not an object");
    h->meta = mem_zero((size_t)json_size(v) * 2, sizeof *h->meta);
    if (!h->meta)
        return E_MEMORY;
    while (json_each(v, &iter, &key, &value)) {
        int rc = json_to_text(value, &text);
        if (rc < 0)
            return err_wrap(rc, "__metadata__ \"%s\"", key);
        char **pair = h->meta + 2 * h->metas++;
        pair[0] = mem_text(key);
        pair[1] = mem_text(text);
        if (!pair[0] || !pair[1])
            return E_MEMORY;
    }
    return 0;
}

static int by_range(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name); // empty tensors: any order that is always the same
}

/* Sorted, each tensor must begin where the one before it ends, and where its type may
 * be read in place. */
static int check_cover(struct st_header *h)
{
    if (h->tensors > 0)
        qsort(h->tensor, (size_t)h->tensors, sizeof *h->tensor, by_range);
    for (int64_t i = 0; i < h->tensors; i++) {
        const struct st_tensor *t = &h->tensor[i];
        if (t->begin != h->data_bytes)
            return err_set(
                E_FORMAT, "tensor %s: begins at byte %" PRIu64 ", %s byte %" PRIu64,
                t->name, t->begin, t->begin < h->data_bytes ? "inside" : "behind",
                h->data_bytes);
        if ((h->header_bytes + t->begin) % types[t->type].size != 0)
            return err_set(E_FORMAT, "tensor %s: not aligned to its type", t->name);
        h->data_bytes = t->end;
    }
    return 0;
}

static int parse_entries(struct st_header *h, const struct json *root)
{
    void *iter = NULL;
    const char *key;
    const struct json *value;
    h->tensor = mem_zero((size_t)json_size(root), sizeof *h->tensor);
    if (!h->tensor)
        return E_MEMORY;
    while (json_each(root, &iter, &key, &value)) {
        if (strcmp(key, "__metadata__") == 0) {
            TRY(parse_meta(h, value));
            continue;
        }
        struct st_tensor *t = &h->tensor[h->tensors++];
        if (!(t->name = mem_text(key)))
            return E_MEMORY;
        int rc = parse_tensor(t, value);
        if (rc < 0)
            return err_wrap(rc, "tensor %s", key);
    }
    return check_cover(h);
}

int st_header_parse(struct st_header *h, const char *text, size_t n)
{
    struct json *root;
    *h = (struct st_header){.header_bytes = 8 + (uint64_t)n};
    if (n > ST_HEADER_MAX)
        return err_set(E_FORMAT, "header of %zu bytes, at most %d are allowed", n,
                       ST_HEADER_MAX);
    if (n == 0 || text[0] != '{')
        return err_set(E_FORMAT, "header does not begin with {");
    int rc = json_parse(&root, text, n);
    if (rc < 0)
        return err_wrap(rc, "header");
    rc = parse_entries(h, root);
    json_free(root);
    if (rc < 0)
        st_header_drop(h);
    return rc;
}

void st_header_drop(struct st_header *h)
{
    for (int64_t i = 0; i < h->tensors; i++)
        mem_free(h->tensor[i].name);
    for (int64_t i = 0; i < 2 * h->metas; i++)
        mem_free(h->meta[i]);
    mem_free(h->tensor);
    mem_free(h->meta);
    *h = (struct st_header){0};
}

const struct st_tensor *st_find(const struct st_header *h, const char *name)
{
    for (int64_t i = 0; i < h->tensors; i++)
        if (strcmp(h->tensor[i].name, name) == 0)
            return &h->tensor[i];
    return NULL;
}

const char *st_meta(const struct st_header *h, const char *key)
{
    for (int64_t i = 0; i < h->metas; i++)
        if (strcmp(h->meta[2 * i], key) == 0)
            return h->meta[2 * i + 1];
    return NULL;
}

int64_t st_count(const struct st_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

/* ---- one file ---- */

int st_length(const void *bytes, size_t size, size_t *n)
{
    const uint8_t *p = bytes;
    uint64_t length = 0;
    if (size < 8)
        return err_set(E_FORMAT, "%zu bytes are no safetensors file", size);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)p[i] << (8 * i);
    if (length > ST_HEADER_MAX)
        return err_set(E_FORMAT,
                       "header of %" PRIu64 " bytes, at most %d are allowed: not a "
                       "safetensors file",
                       length, ST_HEADER_MAX);
    *n = (size_t)length;
    return 0;
}

static int parse_file(struct st_file *f)
{
    size_t n = 0, size = f->map.size;
    TRY(st_length(f->map.data, size, &n));
    if (n > size - 8)
        return err_set(E_FORMAT, "cut: header of %zu bytes in a file of %zu", n, size);
    TRY(st_header_parse(&f->header, (const char *)f->map.data + 8, n));
    uint64_t have = size - 8 - n, want = f->header.data_bytes;
    if (have < want)
        return err_set(E_FORMAT,
                       "cut: data of %" PRIu64 " bytes, the header tells of %" PRIu64,
                       have, want);
    if (have > want)
        return err_set(E_FORMAT, "%" PRIu64 " bytes behind the last tensor",
                       have - want);
    return 0;
}

int st_open(struct st_file *f, const char *path)
{
    *f = (struct st_file){0};
    TRY(file_map(&f->map, path));
    f->path = mem_text(path);
    int rc = f->path ? parse_file(f) : E_MEMORY;
    if (rc < 0) {
        st_close(f);
        return err_wrap(rc, "%s", path);
    }
    return 0;
}

void st_close(struct st_file *f)
{
    st_header_drop(&f->header);
    file_unmap(&f->map);
    mem_free(f->path);
    *f = (struct st_file){0};
}

int st_check_data(const struct st_file *f)
{
    const char *sum = st_meta(&f->header, "data_xxh3");
    uint64_t want;
    if (!sum)
        return 0;
    int rc = hash_parse(sum, &want);
    if (rc < 0)
        return err_wrap(rc, "%s", f->path);
    if (hash_bytes(f->map.data + f->header.header_bytes,
                   (size_t)f->header.data_bytes) == want)
        return 0;
    return err_set(E_FORMAT, "%s: damaged: the checksum of its data differs", f->path);
}

const void *st_data(const struct st_file *f, const struct st_tensor *t)
{
    return f->map.data + f->header.header_bytes + t->begin;
}

static void shape_text(struct buf *to, int rank, const int64_t *dim)
{
    buf_addc(to, '[');
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0)
            buf_adds(to, i ? ",any" : "any");
        else
            buf_addf(to, i ? ",%" PRId64 : "%" PRId64, dim[i]);
    buf_addc(to, ']');
}

int st_need(const struct st_file *f, const char *name, const struct st_tensor **out,
            int rank, const int64_t *dim)
{
    const struct st_tensor *t = st_find(&f->header, name);
    if (!t)
        return err_set(E_FORMAT, "%s: no tensor %s", f->path, name);
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = dim[i] < 0 || t->dim[i] == dim[i];
    if (same) {
        *out = t;
        return 0;
    }
    struct buf text = {0};
    shape_text(&text, t->rank, t->dim);
    buf_adds(&text, ", expected ");
    shape_text(&text, rank, dim);
    int rc = err_set(E_FORMAT, "%s: tensor %s: found shape %s", f->path, name,
                     buf_text(&text));
    buf_drop(&text);
    return rc;
}
