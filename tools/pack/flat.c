/* SPDX-License-Identifier: MIT */
/* flat.c - every offset is checked before it is followed.
 *
 * Offsets to tables and vectors point forwards only, so no walk can go in circles; it
 * may meet a table twice, which is for the caller to bound. */
#include "flat.h"

#include <string.h>

/* May n bytes be read at `at`? */
static bool inside(struct flat *f, size_t at, size_t n)
{
    bool yes = at <= f->size && n <= f->size - at;
    f->bad |= !yes;
    return yes;
}

static bool wrong(struct flat *f)
{
    f->bad = true;
    return false;
}

static size_t get16(const struct flat *f, size_t at)
{
    uint16_t v;
    memcpy(&v, f->at + at, sizeof v);
    return v;
}

static uint32_t get32(const struct flat *f, size_t at)
{
    uint32_t v;
    memcpy(&v, f->at + at, sizeof v);
    return v;
}

/* Where the offset at `at` points to; 0 when it is none. */
static size_t follow(struct flat *f, size_t at)
{
    if (!inside(f, at, 4))
        return 0;
    size_t to = at + get32(f, at);
    return to > at && inside(f, to, 4) ? to : (wrong(f), (size_t)0);
}

static bool open(struct flat_table *t)
{
    struct flat *f = t->of;
    int64_t back = (int32_t)get32(f, t->at), fields = (int64_t)t->at - back;
    if (fields < 0 || !inside(f, (size_t)fields, 4))
        return wrong(f);
    t->fields = (size_t)fields;
    t->described = get16(f, t->fields);
    t->bytes = get16(f, t->fields + 2);
    return (t->described >= 4 && t->bytes >= 4) || wrong(f)
               ? inside(f, t->fields, t->described) && inside(f, t->at, t->bytes)
               : false;
}

/* The table that the offset at `at` points to. */
static struct flat_table table_at(struct flat *f, size_t at)
{
    struct flat_table t = {.of = f, .at = follow(f, at)};
    if (t.at && !open(&t))
        t.at = 0;
    return t;
}

struct flat_table flat_root(struct flat *f)
{
    return table_at(f, 0);
}

/* Where a field of this size lies; 0 when it is absent. */
static size_t find(const struct flat_table *t, int field, size_t size)
{
    size_t slot = 4 + 2 * (size_t)field;
    if (!t->at || slot + 2 > t->described)
        return 0;
    size_t off = get16(t->of, t->fields + slot);
    if (off == 0)
        return 0;
    if (off >= 4 && off + size <= t->bytes)
        return t->at + off;
    wrong(t->of);
    return 0;
}

int64_t flat_int(const struct flat_table *t, int field, size_t size, int64_t absent)
{
    uint64_t v = 0;
    size_t at = find(t, field, size), shift = 64 - 8 * size;
    if (!at)
        return absent;
    memcpy(&v, t->of->at + at, size);
    return (int64_t)(v << shift) >> shift;
}

struct flat_table flat_table(const struct flat_table *t, int field)
{
    size_t at = find(t, field, 4);
    return at ? table_at(t->of, at) : (struct flat_table){.of = t->of};
}

struct flat_vector flat_vector(const struct flat_table *t, int field, size_t size)
{
    struct flat_vector v = {.of = t->of};
    size_t at = find(t, field, 4), to = at ? follow(t->of, at) : 0;
    if (!to)
        return v;
    uint32_t n = get32(t->of, to);
    if (!inside(t->of, to + 4, n * size)) // below 2^32 * 16
        return v;
    v.at = to + 4;
    v.n = n;
    return v;
}

struct flat_table flat_item(const struct flat_vector *v, int64_t i)
{
    return table_at(v->of, v->at + 4 * (size_t)i);
}

int64_t flat_long(const struct flat_vector *v, int64_t byte)
{
    int64_t value = 0;
    if (inside(v->of, v->at + (size_t)byte, sizeof value))
        memcpy(&value, v->of->at + v->at + byte, sizeof value);
    return value;
}
