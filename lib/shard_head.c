/* SPDX-License-Identifier: MIT */
/* shard_head.c - headers of shards: written with their checksum, read checksum first.
 *
 * The checksum is compared before the JSON is looked at, so whatever parses afterwards
 * is what a writer of ours wrote, or was made to deceive: both must be safe. */
#include "shard_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "shard.h"

#define MAGIC "{\"__metadata__\":{\"header_xxh3\":\""
#define ZEROS "0000000000000000"

/* Sums of such counts stay far from overflow. */
enum { COUNT_DIGITS = 15 };
enum { HASH_AT = 8 + sizeof MAGIC - 1, HASH_END = HASH_AT + HASH_TEXT - 1 };

bool shard_head_is(const void *bytes, size_t size)
{
    return size >= HASH_AT &&
           memcmp((const char *)bytes + 8, MAGIC, sizeof MAGIC - 1) == 0;
}

static int header_hash(const char *bytes, size_t size, uint64_t *out)
{
    struct hash *h = hash_open();
    if (!h)
        return E_MEMORY;
    hash_add(h, bytes, HASH_AT);
    hash_add(h, ZEROS, HASH_END - HASH_AT);
    hash_add(h, bytes + HASH_END, size - HASH_END);
    *out = hash_value(h);
    hash_close(h);
    return 0;
}

/* ---- reading ---- */

static int need_text(const struct st_header *h, const char *key, const char **out)
{
    *out = st_meta(h, key);
    return *out ? 0 : err_set(E_FORMAT, "no \"%s\" in the metadata", key);
}

/* Decimal, no sign, no leading zero: one text per number, as in all that is written. */
static int need_count(const struct st_header *h, const char *key, int64_t *out)
{
    const char *text;
    int64_t value = 0;
    TRY(need_text(h, key, &text));
    const char *c = text;
    for (; *c >= '0' && *c <= '9' && c - text < COUNT_DIGITS; c++)
        value = value * 10 + (*c - '0');
    if (c == text || *c || (text[0] == '0' && c - text > 1))
        return err_set(E_FORMAT, "metadata \"%s\": \"%s\" is not a count", key, text);
    *out = value;
    return 0;
}

static int need_hash(const struct st_header *h, const char *key, uint64_t *out)
{
    const char *text;
    TRY(need_text(h, key, &text));
    int rc = hash_parse(text, out);
    return rc < 0 ? err_wrap(rc, "metadata \"%s\"", key) : 0;
}

static int parse_id(struct shard_head *h)
{
    struct shard_id *id = &h->id;
    const char *format;
    TRY(need_text(&h->st, "shard_format", &format));
    if (strcmp(format, SHARD_FORMAT) != 0)
        return err_set(E_FORMAT, "shard format %s, this program reads %s", format,
                       SHARD_FORMAT);
    TRY(need_text(&h->st, "stage", &id->stage));
    TRY(need_text(&h->st, "name", &id->name));
    TRY(need_count(&h->st, "part", &id->part));
    TRY(need_count(&h->st, "parts", &id->parts));
    if (id->part >= id->parts)
        return err_set(E_FORMAT, "part %" PRId64 " of %" PRId64, id->part, id->parts);
    id->end = st_meta(&h->st, "shards") != NULL;
    TRY(need_count(&h->st, id->end ? "shards" : "shard", &id->index));
    TRY(need_count(&h->st, "first_row", &id->first_row));
    TRY(need_count(&h->st, "rows", &id->rows));
    h->fixed = st_meta(&h->st, "fixed");
    return 0;
}

bool shard_head_is_fixed(const char *list, const char *name)
{
    size_t n = strlen(name);
    while (list && *list) {
        size_t len = strcspn(list, " ");
        if (len == n && memcmp(list, name, n) == 0)
            return true;
        list += len + (list[len] == ' ');
    }
    return false;
}

static int check_tensors(const struct shard_head *h)
{
    if (h->st.tensors < 1 || h->st.tensors > SHARD_COLUMNS)
        return err_set(E_FORMAT, "%" PRId64 " tensors, a shard has 1 to %d",
                       h->st.tensors, SHARD_COLUMNS);
    if (h->id.rows == 0)
        return err_set(E_FORMAT, "a shard without rows");
    for (int64_t i = 0; i < h->st.tensors; i++) {
        const struct st_tensor *t = &h->st.tensor[i];
        bool fixed = shard_head_is_fixed(h->fixed, t->name);
        if (t->rank < 1 || (!fixed && (t->dim[0] != h->id.rows || st_count(t) == 0)))
            return err_set(E_FORMAT, "tensor %s: does not have %" PRId64 " rows",
                           t->name, h->id.rows);
    }
    return 0;
}

static int parse_body(struct shard_head *h)
{
    TRY(parse_id(h));
    if (!h->id.end)
        return check_tensors(h);
    if (h->st.tensors > 0)
        return err_set(E_FORMAT, "an end file with tensors");
    return need_hash(&h->st, "digest", &h->digest);
}

int shard_head_parse(struct shard_head *h, const void *bytes, size_t size)
{
    const char *p = bytes;
    char text[HASH_TEXT] = {0};
    uint64_t found;
    *h = (struct shard_head){0};
    if (size < HASH_END || size % SHARD_ALIGN != 0 || !shard_head_is(bytes, size))
        return err_set(E_FORMAT, "not a shard");
    memcpy(text, p + HASH_AT, HASH_TEXT - 1);
    TRY(header_hash(p, size, &found));
    if (hash_parse(text, &h->xxh3) < 0 || h->xxh3 != found)
        return err_set(E_FORMAT, "header: checksum does not match");
    TRY(st_header_parse(&h->st, p + 8, size - 8));
    int rc = parse_body(h);
    if (rc < 0)
        shard_head_drop(h);
    return rc;
}

void shard_head_drop(struct shard_head *h)
{
    st_header_drop(&h->st);
    *h = (struct shard_head){0};
}

static int parse_map(struct shard_head *h, const struct file_map *m, const void **data)
{
    size_t n;
    if (!shard_head_is(m->data, m->size))
        return err_set(E_FORMAT, "not a shard");
    TRY(st_length(m->data, m->size, &n));
    if (n > m->size - 8)
        return err_set(E_FORMAT, "cut inside its header");
    TRY(shard_head_parse(h, m->data, 8 + n));
    uint64_t have = m->size - 8 - n, want = h->st.data_bytes;
    *data = m->data + 8 + n;
    if (have == want)
        return 0;
    shard_head_drop(h);
    return have < want
               ? err_set(E_FORMAT, "cut: %" PRIu64 " of %" PRIu64 " bytes of data",
                         have, want)
               : err_set(E_FORMAT, "%" PRIu64 " bytes behind its data", have - want);
}

int shard_head_map(struct shard_head *h, struct file_map *m, const void **data,
                   const char *path)
{
    *h = (struct shard_head){0};
    TRY(file_map(m, path));
    int rc = parse_map(h, m, data);
    if (rc < 0) {
        file_unmap(m);
        return err_wrap(rc, "%s", path);
    }
    return 0;
}

int shard_head_check(const struct shard_head *h, const void *data)
{
    for (int64_t i = 0; i < h->st.tensors; i++) {
        const struct st_tensor *t = &h->st.tensor[i];
        struct buf key = {0};
        uint64_t want;
        buf_adds(&key, "xxh3.");
        buf_adds(&key, t->name);
        int rc = buf_check(&key);
        if (rc == 0)
            rc = need_hash(&h->st, buf_text(&key), &want);
        buf_drop(&key);
        TRY(rc);
        if (hash_bytes((const char *)data + t->begin, t->end - t->begin) != want)
            return err_set(E_FORMAT, "tensor %s: checksum does not match", t->name);
    }
    return 0;
}

/* ---- writing ---- */

static const char *const own_keys[] = {
    "header_xxh3", "shard_format", "stage",     "name", "part",   "parts",
    "shard",       "shards",       "first_row", "rows", "digest", "fixed"};
enum { OWN_KEYS = sizeof own_keys / sizeof own_keys[0] };

bool shard_head_reserved(const char *key)
{
    for (int i = 0; i < OWN_KEYS; i++)
        if (strcmp(key, own_keys[i]) == 0)
            return true;
    return strncmp(key, "xxh3.", 5) == 0;
}

/* The pairs of a header, and room for the texts that are made for it. */
struct pairs {
    const char **at;
    int64_t n;
    char number[6][24];
    int numbers;
    char key[SHARD_COLUMNS][SHARD_NAME_MAX + 8];
    char sum[SHARD_COLUMNS + 1][HASH_TEXT];
};

static void add(struct pairs *p, const char *key, const char *value)
{
    p->at[2 * p->n] = key;
    p->at[2 * p->n + 1] = value;
    p->n++;
}

static void add_count(struct pairs *p, const char *key, int64_t value)
{
    char *text = p->number[p->numbers++];
    snprintf(text, sizeof p->number[0], "%" PRId64, value);
    add(p, key, text);
}

static void add_all(struct pairs *p, const char *const *meta, int64_t metas)
{
    for (int64_t i = 0; i < metas; i++)
        add(p, meta[2 * i], meta[2 * i + 1]);
}

static void add_sums(struct pairs *p, const struct shard_head_new *n)
{
    for (int64_t i = 0; i < n->tensors; i++) {
        const struct st_tensor *t = &n->tensor[i];
        size_t bytes = (size_t)st_count(t) * st_type_size(t->type);
        snprintf(p->key[i], sizeof p->key[i], "xxh3.%s", t->name);
        add(p, p->key[i], hash_text(p->sum[i], hash_bytes(n->data[i], bytes)));
    }
}

static void fill_pairs(struct pairs *p, const struct shard_head_new *n)
{
    add(p, "header_xxh3", ZEROS);
    add(p, "shard_format", SHARD_FORMAT);
    add(p, "stage", n->id.stage);
    add(p, "name", n->id.name);
    add_count(p, "part", n->id.part);
    add_count(p, "parts", n->id.parts);
    add_count(p, n->id.end ? "shards" : "shard", n->id.index);
    add_count(p, "first_row", n->id.first_row);
    add_count(p, "rows", n->id.rows);
    if (n->id.end)
        add(p, "digest", hash_text(p->sum[SHARD_COLUMNS], n->digest));
    if (n->fixed && n->fixed[0])
        add(p, "fixed", n->fixed);
    add_all(p, n->meta, n->metas);
    add_all(p, n->end_meta, n->end_metas);
    add_sums(p, n);
}

int shard_head_write(struct buf *out, const struct shard_head_new *n, uint64_t *xxh3)
{
    char text[HASH_TEXT];
    struct pairs p = {.n = 0};
    size_t most = OWN_KEYS + (size_t)(n->metas + n->end_metas + n->tensors);
    p.at = mem_zero(2 * most, sizeof *p.at);
    if (!p.at)
        return E_MEMORY;
    fill_pairs(&p, n);
    buf_clear(out);
    int rc = st_header_write(out, n->tensor, n->tensors, p.at, p.n, SHARD_ALIGN);
    mem_free(p.at);
    TRY(rc);
    if (!shard_head_is(out->p, out->len))
        bug("a shard's header does not begin as it must");
    TRY(header_hash(out->p, out->len, xxh3));
    memcpy(out->p + HASH_AT, hash_text(text, *xxh3), HASH_TEXT - 1);
    return 0;
}

void shard_head_sum(struct buf *sums, uint64_t xxh3)
{
    for (int i = 0; i < 8; i++)
        buf_addc(sums, (char)(xxh3 >> (8 * i)));
}
