/* SPDX-License-Identifier: MIT */
/* arrow_run.c - extents first, then one copy for all rows that lie behind one another.
 */
#include "arrow_run.h"

#include <string.h>

#include "err.h"

static bool is_there(const struct arrow_batch *b, int c)
{
    return b->list[c].as->form != ARROW_ABSENT;
}

/* Of an item in the run. */
static enum ints_type type_of(const struct arrow_list *l)
{
    return l->as->type == INTS_NONE ? INTS_U8 : l->as->type;
}

static int64_t size_of(const struct arrow_list *l)
{
    return (int64_t)ints_size(type_of(l));
}

/* The extents of one row; adds its bytes to *bytes. */
static int measure_row(const struct arrow_batch *b, int64_t row, struct buf *extents,
                       int64_t *bytes)
{
    for (int c = 0; c < FIELDS; c++) {
        struct arrow_extent e;
        if (!is_there(b, c))
            continue;
        TRY(arrow_batch_row(b, c, row, &e.first, &e.n));
        buf_add(&extents[c], &e, sizeof e);
        *bytes += (int64_t)sizeof e.n + (e.n > 0 ? e.n : 0) * size_of(&b->list[c]);
    }
    return 0;
}

static int measure(const struct arrow_batch *b, int64_t row, int64_t want,
                   struct buf *extents, int64_t *rows)
{
    int64_t bytes = 0;
    *rows = 0;
    for (int c = 0; c < FIELDS; c++)
        buf_clear(&extents[c]);
    for (; row + *rows < b->rows && (bytes < want || *rows == 0); ++*rows)
        TRY(measure_row(b, row + *rows, extents, &bytes));
    for (int c = 0; c < FIELDS; c++)
        TRY(buf_check(&extents[c]));
    return 0;
}

static const struct arrow_extent *extents_of(const struct buf *extents)
{
    return (const struct arrow_extent *)(const void *)extents->p;
}

/* Ends a part and says where the next one begins, from the head at `head`. */
static int64_t align(struct buf *out, size_t head)
{
    buf_fill(out, 0, -(out->len - head) % 8);
    return (int64_t)(out->len - head);
}

static void add_lengths(struct buf *out, const struct buf *extents, int64_t rows)
{
    const struct arrow_extent *e = extents_of(extents);
    int64_t *to = (int64_t *)(void *)buf_room(out, (size_t)rows * sizeof *to);
    for (int64_t i = 0; to && i < rows; i++)
        to[i] = e[i].n;
    out->len += to ? (size_t)rows * sizeof *to : 0;
}

/* Bits as bytes, each turned over when `flip` is 1. */
static void add_bits(struct buf *out, const uint8_t *bits, int64_t first, int64_t n,
                     int flip)
{
    uint8_t *to = (uint8_t *)buf_room(out, (size_t)n);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (uint8_t)((bits[(first + i) >> 3] >> ((first + i) & 7) & 1) ^ flip);
    out->len += to ? (size_t)n : 0;
}

static void add_stretch(struct buf *out, const struct arrow_list *l, int64_t first,
                        int64_t n, bool nulls)
{
    if (nulls)
        add_bits(out, l->item_valid, first, n, 1);
    else if (l->as->type == INTS_NONE)
        add_bits(out, l->items, first, n, 0);
    else
        buf_add(out, l->items + first * size_of(l), (size_t)(n * size_of(l)));
}

/* The items of all rows, or what is null of them; rows that lie in the batch behind one
 * another are one stretch. */
static void add_items(struct buf *out, const struct arrow_list *l,
                      const struct buf *extents, int64_t rows, bool nulls)
{
    const struct arrow_extent *e = extents_of(extents);
    int64_t first = 0, n = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (e[i].n <= 0)
            continue;
        if (e[i].first != first + n) {
            add_stretch(out, l, first, n, nulls);
            first = e[i].first;
            n = 0;
        }
        n += e[i].n;
    }
    add_stretch(out, l, first, n, nulls);
}

int arrow_run_add(struct buf *out, const struct arrow_batch *b, int64_t row,
                  int64_t want, struct buf extents[FIELDS], int64_t *rows)
{
    struct arrow_run run = {0};
    size_t head = out->len;
    TRY(measure(b, row, want, extents, rows));
    buf_fill(out, 0, sizeof run);
    for (int c = 0; c < FIELDS; c++) {
        const struct arrow_list *l = &b->list[c];
        struct arrow_part *p = &run.part[c];
        if (!is_there(b, c))
            continue;
        *p = (struct arrow_part){1, type_of(l), l->item_valid != NULL, 0, 0, 0};
        p->length = align(out, head);
        add_lengths(out, &extents[c], *rows);
        p->items = align(out, head);
        add_items(out, l, &extents[c], *rows, false);
        p->nulls = align(out, head);
        if (p->has_nulls)
            add_items(out, l, &extents[c], *rows, true);
    }
    run.rows = *rows;
    run.bytes = align(out, head);
    TRY(buf_check(out));
    memcpy(out->p + head, &run, sizeof run);
    return 0;
}
