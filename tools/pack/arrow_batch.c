/* SPDX-License-Identifier: MIT */
/* arrow_batch.c - nodes and buffers of a record batch. */
#include "arrow_batch.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "frame.h"

/* Numbers of fields in Message.fbs, and the sizes of its structs. */
enum { BATCH_ROWS, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VARIADIC };
enum { COMPRESSION_CODEC, COMPRESSION_METHOD };
enum { NODE = 16, BUFFER = 16 };

/* Rows or items of a column: their bytes can be counted. */
#define MOST (INT64_MAX / 16)

/* A compressed buffer that claims more than this is not believed. */
#define UNPACKED_MAX ((int64_t)1 << 30)

/* A batch while it is taken apart. */
struct look {
    struct arrow_batch *to;
    struct flat_vector nodes, buffers, variadic;
    const uint8_t *body;
    size_t size;
    int codec; // of enum frame, -1: bodies are plain
};

static bool has_bit(const uint8_t *bits, int64_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

/* ---- buffers ---- */

/* A compressed buffer begins with its size as it was; -1 says that it still is so. */
static int unpack(const struct look *k, struct buf *room, const uint8_t **p,
                  int64_t *size)
{
    int64_t was;
    if (*size < (int64_t)sizeof was)
        return err_set(E_FORMAT, "a compressed buffer of %" PRId64 " bytes", *size);
    memcpy(&was, *p, sizeof was);
    *p += sizeof was;
    *size -= (int64_t)sizeof was;
    if (was == -1)
        return 0;
    if (was < 0 || was > UNPACKED_MAX)
        return err_set(E_FORMAT,
                       "a compressed buffer announces %" PRId64 " bytes; at most "
                       "%" PRId64 " are read",
                       was, UNPACKED_MAX);
    TRY(frame_unpack(room, (enum frame)k->codec, *p, (size_t)*size, (size_t)was));
    *p = (const uint8_t *)room->p;
    *size = was;
    return 0;
}

/* Part `part` of a column, of at least `need` bytes. */
static int get(const struct look *k, int column, int part, int64_t need,
               const uint8_t **out)
{
    const struct arrow_column *c = k->to->list[column].as;
    int64_t at = c->buffer + part - (c->form == ARROW_FIXED && part > 0), extra = 0;
    for (int64_t i = 0; i < c->views && i < k->variadic.n; i++)
        if (__builtin_add_overflow(extra, flat_long(&k->variadic, 8 * i), &extra))
            return err_set(E_FORMAT, "the counts of buffers overflow");
    if (extra < 0 || extra > k->buffers.n || at + extra >= k->buffers.n)
        return err_set(E_FORMAT, "%" PRId64 " buffers are too few", k->buffers.n);
    int64_t byte = BUFFER * (at + extra), offset = flat_long(&k->buffers, byte);
    int64_t size = flat_long(&k->buffers, byte + 8);
    if (offset < 0 || size < 0 || offset > (int64_t)k->size ||
        size > (int64_t)k->size - offset)
        return err_set(E_FORMAT,
                       "%" PRId64 " bytes at %" PRId64 " lie outside a body of %zu",
                       size, offset, k->size);
    *out = k->body + offset;
    if (k->codec >= 0 && size > 0)
        TRY(unpack(k, &k->to->room[column][part], out, &size));
    if (size < need)
        return err_set(E_FORMAT,
                       "a buffer of %" PRId64 " bytes, where %" PRId64 " are needed",
                       size, need);
    return 0;
}

/* ---- columns ---- */

/* The length of a node, and whether it has nulls. */
static int get_node(const struct look *k, int64_t node, int64_t *n, bool *nulls)
{
    if (node >= k->nodes.n)
        return err_set(E_FORMAT, "%" PRId64 " nodes are too few", k->nodes.n);
    *n = flat_long(&k->nodes, NODE * node);
    int64_t count = flat_long(&k->nodes, NODE * node + 8);
    if (*n > MOST)
        return err_set(E_FORMAT, "%" PRId64 " are too many", *n);
    if (*n < 0 || count < 0 || count > *n)
        return err_set(E_FORMAT, "%" PRId64 " nulls among %" PRId64, count, *n);
    *nulls = count > 0;
    return 0;
}

static int64_t bits_to_bytes(int64_t bits)
{
    return bits / 8 + (bits % 8 > 0);
}

enum { VALID, OFFSETS, ITEM_VALID, ITEMS };

static int get_rows(const struct look *k, int column, struct arrow_list *l)
{
    const struct arrow_column *c = l->as;
    int64_t n = 0;
    bool nulls = false;
    TRY(get_node(k, c->node, &n, &nulls));
    if (n != k->to->rows)
        return err_set(E_FORMAT, "%" PRId64 " rows in a batch of %" PRId64, n,
                       k->to->rows);
    if (nulls)
        TRY(get(k, column, VALID, bits_to_bytes(n), &l->valid));
    if (c->form == ARROW_FIXED || n == 0)
        return 0;
    int64_t size = c->form == ARROW_LARGE ? 8 : 4;
    return get(k, column, OFFSETS, (n + 1) * size, &l->offsets);
}

static int get_items(const struct look *k, int column, struct arrow_list *l)
{
    const struct arrow_column *c = l->as;
    bool nulls = false;
    TRY(get_node(k, c->node + 1, &l->count, &nulls));
    if (c->form == ARROW_FIXED && k->to->rows > l->count / c->fixed)
        return err_set(E_FORMAT, "%" PRId64 " items for %" PRId64 " rows of %" PRId64,
                       l->count, k->to->rows, c->fixed);
    if (nulls)
        TRY(get(k, column, ITEM_VALID, bits_to_bytes(l->count), &l->item_valid));
    int64_t size = (int64_t)ints_size(c->type);
    int64_t need = size ? l->count * size : bits_to_bytes(l->count);
    return get(k, column, ITEMS, need, &l->items);
}

static int get_codec(struct look *k, const struct flat_table *table)
{
    struct flat_table c = flat_table(table, BATCH_COMPRESSION);
    k->codec = -1;
    if (!c.at)
        return 0;
    int64_t codec = flat_int(&c, COMPRESSION_CODEC, 1, 0);
    if (flat_int(&c, COMPRESSION_METHOD, 1, 0) != 0 || codec < 0 || codec > 1)
        return err_set(E_FORMAT, "compression %" PRId64 " is not known", codec);
    k->codec = codec == 0 ? FRAME_LZ4 : FRAME_ZSTD;
    return 0;
}

int arrow_batch_open(struct arrow_batch *b, const struct arrow_schema *s,
                     const struct flat_table *table, const uint8_t *body, size_t size)
{
    struct look k = {.to = b,
                     .nodes = flat_vector(table, BATCH_NODES, NODE),
                     .buffers = flat_vector(table, BATCH_BUFFERS, BUFFER),
                     .variadic = flat_vector(table, BATCH_VARIADIC, 8),
                     .body = body,
                     .size = size};
    TRY(get_codec(&k, table));
    b->rows = flat_int(table, BATCH_ROWS, 8, 0);
    if (table->of->bad || b->rows < 0)
        return err_set(E_FORMAT, "the head of a record batch is damaged");
    for (int c = 0; c < FIELDS; c++) {
        struct arrow_list *l = &b->list[c];
        *l = (struct arrow_list){.as = &s->column[c]};
        if (l->as->form == ARROW_ABSENT)
            continue;
        int rc = get_rows(&k, c, l);
        if (rc == 0)
            rc = get_items(&k, c, l);
        if (rc < 0)
            return err_wrap(rc, "column %s", fields_name((enum field)c));
    }
    return 0;
}

static int64_t get_offset(const struct arrow_list *l, int64_t row)
{
    int32_t narrow;
    int64_t wide;
    if (l->as->form == ARROW_FIXED)
        return row * l->as->fixed;
    if (l->as->form == ARROW_LARGE) {
        memcpy(&wide, l->offsets + 8 * row, sizeof wide);
        return wide;
    }
    memcpy(&narrow, l->offsets + 4 * row, sizeof narrow);
    return narrow;
}

int arrow_batch_row(const struct arrow_batch *b, int column, int64_t row,
                    int64_t *first, int64_t *n)
{
    const struct arrow_list *l = &b->list[column];
    *first = 0;
    *n = -1;
    if (l->as->form == ARROW_ABSENT || (l->valid && !has_bit(l->valid, row)))
        return 0;
    *first = get_offset(l, row);
    int64_t end = get_offset(l, row + 1);
    if (*first >= 0 && *first <= end && end <= l->count) {
        *n = end - *first;
        return 0;
    }
    return err_set(E_FORMAT,
                   "column %s: its offsets are %" PRId64 " and %" PRId64 " in %" PRId64
                   " items",
                   fields_name((enum field)column), *first, end, l->count);
}

void arrow_batch_drop(struct arrow_batch *b)
{
    for (int c = 0; c < FIELDS; c++)
        for (int p = 0; p < ARROW_PARTS; p++)
            buf_drop(&b->room[c][p]);
    *b = (struct arrow_batch){0};
}
