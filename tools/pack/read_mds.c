/* SPDX-License-Identifier: MIT */
/* read_mds.c - a block is samples, then their ends, then the columns:
 *
 *     bytes of the samples, end of each i64[], struct column[], struct trailer */
#include "read_mds.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "fields.h"
#include "json.h"
#include "mem.h"

enum {
    BLOCK = 1 << 20,
    COLUMNS = 64,
    CONFIG_MAX = 1 << 20,
    TABLE_MAX = 256 << 20, // bytes of offsets
    SAMPLE_MAX = 256 << 20
};

struct column {
    enum field field;    // FIELDS: it is passed over
    int64_t size;        // -1: written in front of each sample
    bool array;          // ndarray, not bytes
    enum ints_type type; // INTS_NONE: each array says it itself
    bool shaped;         // the shape is in the header
};

struct mds {
    struct column column[COLUMNS];
    int64_t columns;
    int64_t n, next; // samples; the next one
    int64_t at;      // where it begins in the file
    struct buf offsets;
};

struct trailer {
    int64_t samples, columns;
};

static int64_t u32_at(const char *p, int64_t i)
{
    uint32_t v;
    memcpy(&v, p + 4 * i, sizeof v);
    return v;
}

/* Whether counts and offsets, as many as are there, make sense together. */
static bool begins_well(const char *p, int64_t size)
{
    int64_t n = u32_at(p, 0), first = u32_at(p, 1), config = first - 8 - 4 * n;
    if (n < 1 || config < 2 || config > CONFIG_MAX)
        return false;
    for (int64_t i = 1; i <= n && 4 * (i + 2) <= size; i++)
        if (u32_at(p, i + 1) < u32_at(p, i))
            return false;
    return first - config >= size || p[first - config] == '{';
}

bool mds_is(const char *bytes, size_t n)
{
    return n >= 8 && begins_well(bytes, (int64_t)n);
}

/* ---- the header ---- */

/* "ndarray:int32:10" and the like. */
static int read_array(struct column *c, const char *encoding)
{
    const char *type = encoding + 7, *shape;
    if (!*type)
        return 0;
    shape = strchr(++type, ':');
    c->type = ints_named(type, shape ? (size_t)(shape - type) : strlen(type));
    c->shaped = shape != NULL;
    return c->type ? 0 : E_FORMAT;
}

static int read_encoding(struct column *c, const char *name, const char *encoding,
                         const struct read_rules *rules)
{
    c->field = fields_named(name, strlen(name));
    if (c->field == FIELDS)
        return 0;
    bool bytes = strcmp(encoding, "bytes") == 0;
    c->array = strncmp(encoding, "ndarray", 7) == 0 && strchr(":", encoding[7]);
    if (bytes && rules->dtype == INTS_NONE)
        return err_set(E_USAGE, "column %s is bytes: of which type?  --dtype says it",
                       name);
    c->type = bytes ? rules->dtype : INTS_NONE;
    if (bytes || (c->array && read_array(c, encoding) == 0))
        return 0;
    return err_set(E_FORMAT, "column %s is \"%s\", not an array of whole numbers", name,
                   encoding);
}

static int read_column(struct mds *m, const struct json *names,
                       const struct json *kinds, const struct json *sizes,
                       const struct read_rules *rules)
{
    int64_t i = m->columns++;
    const char *name, *encoding;
    struct column *c = &m->column[i];
    TRY(json_to_text(json_at(names, i), &name));
    TRY(json_to_text(json_at(kinds, i), &encoding));
    *c = (struct column){.size = -1};
    if (!json_is_null(json_at(sizes, i)))
        TRY(json_to_int(json_at(sizes, i), &c->size));
    if (c->size < -1 || c->size > SAMPLE_MAX)
        return err_set(E_FORMAT, "column %s has %" PRId64 " bytes", name, c->size);
    TRY(read_encoding(c, name, encoding, rules));
    for (int64_t k = 0; k < i; k++)
        if (c->field < FIELDS && m->column[k].field == c->field)
            return err_set(E_FORMAT, "column %s is there twice", name);
    return 0;
}

static int read_columns(struct mds *m, const struct json *root,
                        const struct read_rules *rules)
{
    const struct json *names, *kinds, *sizes;
    TRY(json_need_array(root, "column_names", &names));
    TRY(json_need_array(root, "column_encodings", &kinds));
    TRY(json_need_array(root, "column_sizes", &sizes));
    int64_t n = json_size(names);
    if (n > COLUMNS || json_size(kinds) != n || json_size(sizes) != n)
        return err_set(E_FORMAT,
                       "%" PRId64 " columns, %" PRId64 " encodings, %" PRId64 " sizes",
                       n, json_size(kinds), json_size(sizes));
    bool ids = false;
    while (m->columns < n) {
        TRY(read_column(m, names, kinds, sizes, rules));
        ids = ids || m->column[m->columns - 1].field == FIELD_IDS;
    }
    return ids ? 0 : err_set(E_FORMAT, "no column input_ids or tokens");
}

static int read_config(struct mds *m, const char *text, size_t n,
                       const struct read_rules *rules)
{
    struct json *root = NULL;
    TRY(json_parse(&root, text, n));
    int rc = read_columns(m, root, rules);
    json_free(root);
    return rc;
}

/* Waits for n bytes. */
static int need(struct inflow *in, int64_t n)
{
    while ((int64_t)in->have.len < n) {
        int got = inflow_more(in, (size_t)n - in->have.len);
        TRY(got);
        if (got == 0)
            return err_set(E_FORMAT, "%s: cut: it ends inside a shard", in->name);
    }
    return 0;
}

static int read_head(struct mds *m, struct inflow *in, const struct read_rules *rules)
{
    TRY(need(in, 8));
    m->n = u32_at(in->have.p, 0);
    m->at = u32_at(in->have.p, 1);
    if (m->n > TABLE_MAX / 4 || !begins_well(in->have.p, 8))
        return err_set(E_FORMAT,
                       "%s: no shard of MosaicML's, or a damaged one: %" PRId64
                       " samples from byte %" PRId64 " on",
                       in->name, m->n, m->at);
    TRY(need(in, m->at));
    int64_t config = 8 + 4 * m->n;
    int rc = read_config(m, in->have.p + config, (size_t)(m->at - config), rules);
    if (rc < 0)
        return err_wrap(rc, "%s", in->name);
    buf_add(&m->offsets, in->have.p + 4, (size_t)(config - 4));
    inflow_take(in, (size_t)m->at);
    return buf_check(&m->offsets);
}

int mds_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    struct mds *m = *state = mem_zero(1, sizeof *m);
    int rc = m ? read_head(m, in, rules) : E_MEMORY;
    if (rc < 0) {
        mds_close(m);
        *state = NULL;
    }
    return rc;
}

void mds_close(void *state)
{
    struct mds *m = state;
    if (m)
        buf_drop(&m->offsets);
    mem_free(m);
}

/* ---- blocks ---- */

/* Ends of the next samples relative to the first of them; the last one. */
static int take(struct mds *m, struct inflow *in, struct buf *ends)
{
    int64_t begin = m->at, end = 0;
    while (m->next < m->n && end < BLOCK && ends->len < BLOCK) {
        int64_t at = u32_at(m->offsets.p, m->next + 1);
        if (at < m->at || at - m->at > SAMPLE_MAX)
            return err_set(E_FORMAT,
                           "%s: record %" PRId64 " from byte %" PRId64 " to %" PRId64,
                           in->name, m->next, m->at, at);
        m->at = at;
        m->next++;
        end = at - begin;
        buf_add(ends, &end, sizeof end);
    }
    TRY(buf_check(ends));
    TRY(need(in, end));
    return 0;
}

static int fill(struct block *b, const struct mds *m, struct inflow *in,
                const struct buf *ends)
{
    int64_t n = (int64_t)(ends->len / sizeof(int64_t)), last;
    struct trailer t = {n, m->columns};
    memcpy(&last, ends->p + ends->len - sizeof last, sizeof last);
    TRY(inflow_cut(in, (size_t)last, &b->bytes));
    buf_add(&b->bytes, ends->p, ends->len);
    buf_add(&b->bytes, m->column, (size_t)m->columns * sizeof *m->column);
    buf_add(&b->bytes, &t, sizeof t);
    b->records = n;
    return buf_check(&b->bytes);
}

int mds_block(struct block *b, void *state, struct inflow *in)
{
    struct mds *m = state;
    struct buf ends = {0};
    if (m->next == m->n) {
        TRY(inflow_more(in, 1));
        return in->have.len == 0
                   ? 0
                   : err_set(E_FORMAT, "%s: more bytes than samples", in->name);
    }
    int rc = take(m, in, &ends);
    if (rc == 0)
        rc = fill(b, m, in, &ends);
    buf_drop(&ends);
    return rc < 0 ? rc : 1;
}

/* ---- samples ---- */

/* A stretch of bytes that is used up from the front. */
struct bytes {
    const char *at;
    int64_t n;
};

static bool take_byte(struct bytes *b, int *out)
{
    if (b->n < 1)
        return false;
    *out = (unsigned char)*b->at;
    b->at++;
    b->n--;
    return true;
}

/* An array that says its own type. */
static bool take_type(struct bytes *b, enum ints_type *type)
{
    static const struct {
        int code;
        enum ints_type type;
    } known[] = {{8, INTS_U8},   {9, INTS_I8},   {16, INTS_U16}, {17, INTS_I16},
                 {32, INTS_U32}, {33, INTS_I32}, {64, INTS_U64}, {65, INTS_I64}};
    int code = 0;
    bool there = take_byte(b, &code);
    for (size_t i = 0; there && i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            *type = known[i].type;
    return *type != INTS_NONE;
}

/* One dimension: 4 + its width (0 to 3: 1 to 8 bytes), then the length. */
static bool take_shape(struct bytes *b, int64_t *n)
{
    int head = 0;
    if (!take_byte(b, &head) || head >> 2 != 1)
        return false;
    int width = 1 << (head & 3);
    uint64_t v = 0;
    if (b->n < width)
        return false;
    memcpy(&v, b->at, (size_t)width);
    b->at += width;
    b->n -= width;
    *n = v > INT64_MAX ? INT64_MAX : (int64_t)v;
    return true;
}

static int take_values(struct ints *out, const struct column *c, struct bytes b)
{
    enum ints_type type = c->type;
    int64_t n = -1;
    if (type == INTS_NONE && !take_type(&b, &type))
        return err_set(E_FORMAT, "an array that is not of whole numbers");
    if (c->array && !c->shaped && !take_shape(&b, &n))
        return err_set(E_FORMAT, "an array that is not of one dimension");
    int64_t size = (int64_t)ints_size(type);
    if (b.n % size != 0 || (n >= 0 && n != b.n / size))
        return err_set(E_FORMAT,
                       "%" PRId64 " bytes for %" PRId64 " numbers of %" PRId64, b.n, n,
                       size);
    *out = (struct ints){b.at, b.n / size, type};
    return 0;
}

/* Where the columns of a sample are, and what they hold. */
static int read_sample(struct ints *field, const struct column *column, int64_t columns,
                       struct bytes s)
{
    const char *sizes = s.at;
    int64_t k = 0, named = 0;
    for (int64_t i = 0; i < columns; i++)
        named += column[i].size < 0;
    if (s.n < 4 * named)
        return err_set(E_FORMAT, "a sample of %" PRId64 " bytes", s.n);
    s.at += 4 * named;
    s.n -= 4 * named;
    for (int64_t i = 0; i < columns; i++) {
        const struct column *c = &column[i];
        int64_t n = c->size < 0 ? u32_at(sizes, k++) : c->size;
        if (n > s.n)
            return err_set(E_FORMAT, "column %" PRId64 " goes beyond its sample", i);
        if (c->field < FIELDS)
            TRY(take_values(&field[c->field], c, (struct bytes){s.at, n}));
        s.at += n;
        s.n -= n;
    }
    return s.n == 0
               ? 0
               : err_set(E_FORMAT, "%" PRId64 " bytes behind the last column", s.n);
}

int mds_parse(struct documents *out, const struct block *b,
              const struct read_rules *rules)
{
    struct trailer t;
    struct column column[COLUMNS];
    const char *p = b->bytes.p, *tail = p + b->bytes.len - sizeof t;
    memcpy(&t, tail, sizeof t);
    tail -= (size_t)t.columns * sizeof *column;
    memcpy(column, tail, (size_t)t.columns * sizeof *column);
    tail -= (size_t)t.samples * sizeof(int64_t);
    for (int64_t i = 0, at = 0, end; i < t.samples; i++, at = end) {
        struct ints field[FIELDS] = {{0}};
        memcpy(&end, tail + (size_t)i * sizeof end, sizeof end);
        if ((b->index + i) % rules->parts != rules->part)
            continue;
        int rc =
            read_sample(field, column, t.columns, (struct bytes){p + at, end - at});
        TRY(rc < 0 ? document_reject(out, b->record + i, REJECT_SYNTAX)
                   : fields_add(out, b->record + i, field, rules->vocab));
    }
    return 0;
}
