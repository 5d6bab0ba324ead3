/* SPDX-License-Identifier: MIT */
/* arrow_rows.c - numbers of any width to 32 bits, masks to bytes; what is wrong is only
 * seen in passing, and looked for when there is something. */
#include "arrow_rows.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"

/* One row: where its items are, column by column. */
struct row {
    struct documents *out;
    const struct arrow_run *run;
    const uint8_t *items[ARROW_COLUMNS], *nulls[ARROW_COLUMNS];
    int64_t n[ARROW_COLUMNS]; // -1: the column is absent or null here
    int64_t vocab;
    enum reject reject; // set beside a message
};

static int refuse(struct row *r, enum reject kind)
{
    r->reject = kind;
    return E_FORMAT;
}

/* ---- numbers ---- */

/* Copies n numbers of type T to 32 bits; true when all fit there.  `over` is what one
 * of them leaves behind if it does not. */
#define NARROW(T, name, over)                                                          \
    static bool name(int32_t *restrict out, const uint8_t *restrict from, int64_t n)   \
    {                                                                                  \
        const T *restrict v = (const T *)(const void *)from;                           \
        uint64_t odd = 0;                                                              \
        for (int64_t i = 0; i < n; i++) {                                              \
            odd |= over;                                                               \
            out[i] = (int32_t)v[i];                                                    \
        }                                                                              \
        return odd == 0;                                                               \
    }
NARROW(int8_t, narrow_i8, 0)
NARROW(int16_t, narrow_i16, 0)
NARROW(int32_t, narrow_i32, 0)
NARROW(int64_t, narrow_i64, ((uint64_t)v[i] + (1ull << 31)) >> 32)
NARROW(uint8_t, narrow_u8, 0)
NARROW(uint16_t, narrow_u16, 0)
NARROW(uint32_t, narrow_u32, v[i] >> 31)
NARROW(uint64_t, narrow_u64, v[i] >> 31)

static bool narrow(int32_t *out, const struct row *r, int c)
{
    static bool (*const by[2][9])(int32_t *, const uint8_t *, int64_t) = {
        {[1] = narrow_u8, [2] = narrow_u16, [4] = narrow_u32, [8] = narrow_u64},
        {[1] = narrow_i8, [2] = narrow_i16, [4] = narrow_i32, [8] = narrow_i64}};
    const struct arrow_part *p = &r->run->part[c];
    return by[p->is_signed != 0][p->width](out, r->items[c], r->n[c]);
}

static bool has_null(const struct row *r, int c)
{
    return r->nulls[c] && memchr(r->nulls[c], 1, (size_t)r->n[c]);
}

/* An item as it stands there; what is above int64 is its largest. */
static int64_t item(const struct row *r, int c, int64_t i)
{
    const struct arrow_part *p = &r->run->part[c];
    uint64_t v = 0;
    int shift = 64 - 8 * (int)p->width;
    memcpy(&v, r->items[c] + i * p->width, (size_t)p->width);
    if (p->is_signed)
        return (int64_t)(v << shift) >> shift;
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static int odd_null(struct row *r, int c, int64_t i, enum reject kind)
{
    err_set(E_FORMAT, "%s[%" PRId64 "] is null", arrow_column_name(c), i);
    return refuse(r, kind);
}

/* ---- ids ---- */

static bool all_below(const int32_t *v, int64_t n, int64_t limit)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = (uint32_t)v[i] > most ? (uint32_t)v[i] : most;
    return most < limit;
}

/* The first item that is no id. */
static int odd_id(struct row *r)
{
    for (int64_t i = 0; i < r->n[ARROW_IDS]; i++) {
        if (r->nulls[ARROW_IDS] && r->nulls[ARROW_IDS][i])
            return odd_null(r, ARROW_IDS, i, REJECT_IDS);
        int64_t id = item(r, ARROW_IDS, i);
        if (id < 0 || id >= r->vocab) {
            err_set(E_FORMAT,
                    "input_ids[%" PRId64 "] is %" PRId64
                    ", outside the vocabulary of %" PRId64,
                    i, id, r->vocab);
            return refuse(r, REJECT_VOCAB);
        }
    }
    bug("ids are refused without a reason");
}

static int read_ids(struct row *r)
{
    int64_t n = r->n[ARROW_IDS];
    if (n < 0) {
        err_set(E_FORMAT, "input_ids is null");
        return refuse(r, REJECT_NO_IDS);
    }
    if (n == 0) {
        err_set(E_FORMAT, "input_ids is empty");
        return refuse(r, REJECT_EMPTY);
    }
    size_t bytes = (size_t)n * sizeof(int32_t);
    int32_t *out = (int32_t *)(void *)buf_room(&r->out->ids, bytes);
    if (!out)
        return buf_check(&r->out->ids);
    r->out->ids.len += bytes;
    bool fit = narrow(out, r, ARROW_IDS);
    if (fit && all_below(out, n, r->vocab) && !has_null(r, ARROW_IDS))
        return 0;
    return odd_id(r);
}

/* ---- masks ---- */

/* A column beside the ids as 32-bit numbers, in scratch: what does not fit there is no
 * mask and shows in *fit. */
static int32_t *beside(struct row *r, int c, bool *fit)
{
    if (r->n[c] != r->n[ARROW_IDS]) {
        err_set(E_FORMAT, "%s has %" PRId64 " items for %" PRId64 " tokens",
                arrow_column_name(c), r->n[c], r->n[ARROW_IDS]);
        refuse(r, REJECT_LENGTH);
        return NULL;
    }
    buf_clear(&r->out->scratch);
    int32_t *v = (int32_t *)(void *)buf_room(&r->out->scratch,
                                             (size_t)r->n[c] * sizeof(int32_t));
    if (!v)
        buf_check(&r->out->scratch);
    else
        *fit = narrow(v, r, c) && !has_null(r, c);
    return v;
}

static int beside_failed(const struct row *r)
{
    return r->reject == REJECT_NONE ? E_MEMORY : E_FORMAT;
}

static int odd_bit(struct row *r, int c)
{
    for (int64_t i = 0; i < r->n[c]; i++) {
        if (r->nulls[c] && r->nulls[c][i])
            return odd_null(r, c, i, REJECT_MASK);
        int64_t v = item(r, c, i);
        if (v != 0 && v != 1) {
            err_set(E_FORMAT, "%s[%" PRId64 "] is %" PRId64 ", not 0 or 1",
                    arrow_column_name(c), i, v);
            return refuse(r, REJECT_MASK);
        }
    }
    bug("a mask is refused without a reason");
}

static int read_mask(struct row *r, int c, uint8_t *out)
{
    bool fit;
    const int32_t *v = beside(r, c, &fit);
    if (!v)
        return beside_failed(r);
    uint32_t all = 0;
    for (int64_t i = 0; i < r->n[c]; i++) {
        all |= (uint32_t)v[i];
        out[i] = (uint8_t)v[i];
    }
    return fit && all <= 1 ? 0 : odd_bit(r, c);
}

static int odd_label(struct row *r, const int32_t *ids)
{
    for (int64_t i = 0; i < r->n[ARROW_LABELS]; i++) {
        if (r->nulls[ARROW_LABELS] && r->nulls[ARROW_LABELS][i])
            return odd_null(r, ARROW_LABELS, i, REJECT_MASK);
        int64_t v = item(r, ARROW_LABELS, i);
        if (v != -100 && v != ids[i]) {
            err_set(E_FORMAT,
                    "labels[%" PRId64 "] is %" PRId64 " where input_ids has %" PRId32,
                    i, v, ids[i]);
            return refuse(r, REJECT_MASK);
        }
    }
    bug("labels are refused without a reason");
}

static int read_labels(struct row *r, const int32_t *ids, uint8_t *out)
{
    bool fit;
    const int32_t *v = beside(r, ARROW_LABELS, &fit);
    if (!v)
        return beside_failed(r);
    uint32_t odd = 0;
    for (int64_t i = 0; i < r->n[ARROW_LABELS]; i++) {
        out[i] = v[i] != -100;
        odd |= v[i] != -100 ? (uint32_t)(v[i] ^ ids[i]) : 0;
    }
    return fit && odd == 0 ? 0 : odd_label(r, ids);
}

static int read_supervision(struct row *r)
{
    int64_t n = r->n[ARROW_IDS];
    uint8_t *out = (uint8_t *)buf_room(&r->out->mask, (size_t)n);
    if (!out)
        return buf_check(&r->out->mask);
    r->out->mask.len += (size_t)n;
    const int32_t *ids =
        (const int32_t *)(const void *)r->out->ids.p + document_tokens(r->out);
    for (int c = ARROW_LOSS_MASK; c < ARROW_LABELS; c++)
        if (r->n[c] >= 0)
            return read_mask(r, c, out);
    if (r->n[ARROW_LABELS] >= 0)
        return read_labels(r, ids, out);
    memset(out, 1, (size_t)n);
    return 0;
}

static int check_padding(struct row *r)
{
    bool fit;
    if (r->n[ARROW_ATTENTION_MASK] < 0)
        return 0;
    const int32_t *v = beside(r, ARROW_ATTENTION_MASK, &fit);
    if (!v)
        return beside_failed(r);
    uint32_t odd = 0;
    for (int64_t i = 0; i < r->n[ARROW_IDS]; i++)
        odd |= (uint32_t)v[i] ^ 1;
    if (fit && odd == 0)
        return 0;
    for (int64_t i = 0; i < r->n[ARROW_IDS]; i++)
        if (v[i] == 0 &&
            !(r->nulls[ARROW_ATTENTION_MASK] && r->nulls[ARROW_ATTENTION_MASK][i])) {
            err_set(E_FORMAT, "attention_mask[%" PRId64 "] is 0: the record is padded",
                    i);
            return refuse(r, REJECT_PADDED);
        }
    return odd_bit(r, ARROW_ATTENTION_MASK);
}

static int read_row(struct row *r)
{
    TRY(read_ids(r));
    TRY(read_supervision(r));
    return check_padding(r);
}

static int add_row(struct row *r, int64_t record)
{
    r->reject = REJECT_NONE;
    int rc = read_row(r);
    if (r->reject != REJECT_NONE)
        return document_reject(r->out, record, r->reject);
    return rc < 0 ? rc : document_add(r->out, record, r->n[ARROW_IDS]);
}

/* ---- a run of them ---- */

static void start(struct row *r)
{
    const uint8_t *base = (const uint8_t *)r->run;
    for (int c = 0; c < ARROW_COLUMNS; c++) {
        const struct arrow_part *p = &r->run->part[c];
        r->items[c] = base + p->items;
        r->nulls[c] = p->has_nulls ? base + p->nulls : NULL;
    }
}

static void go_to(struct row *r, int64_t row)
{
    for (int c = 0; c < ARROW_COLUMNS; c++) {
        const struct arrow_part *p = &r->run->part[c];
        const uint8_t *length = (const uint8_t *)r->run + p->length;
        r->n[c] = p->there ? ((const int64_t *)(const void *)length)[row] : -1;
    }
}

static void pass(struct row *r)
{
    for (int c = 0; c < ARROW_COLUMNS; c++) {
        if (r->n[c] < 0)
            continue;
        r->items[c] += r->n[c] * r->run->part[c].width;
        r->nulls[c] += r->nulls[c] ? r->n[c] : 0;
    }
}

int arrow_rows(struct documents *out, const struct arrow_run *run, int64_t record,
               int64_t index, const struct read_rules *rules)
{
    struct row r = {.out = out, .run = run, .vocab = rules->vocab};
    start(&r);
    for (int64_t i = 0; i < run->rows; i++) {
        go_to(&r, i);
        if ((index + i) % rules->parts == rules->part)
            TRY(add_row(&r, record + i));
        pass(&r);
    }
    return 0;
}
