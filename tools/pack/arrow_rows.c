/* SPDX-License-Identifier: MIT */
/* arrow_rows.c - a walk along the columns of a run; nulls are told apart here, and what
 * remains is arrays of numbers (fields.h). */
#include "arrow_rows.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"

/* One row: its fields, and where what is null of them is written. */
struct row {
    const struct arrow_run *run;
    struct ints field[FIELDS];
    const uint8_t *items[FIELDS], *nulls[FIELDS];
    int64_t n[FIELDS]; // -1: the column is absent or null here
};

static void start(struct row *r)
{
    const uint8_t *base = (const uint8_t *)r->run;
    for (int c = 0; c < FIELDS; c++) {
        const struct arrow_part *p = &r->run->part[c];
        r->items[c] = base + p->items;
        r->nulls[c] = p->has_nulls ? base + p->nulls : NULL;
    }
}

static void go_to(struct row *r, int64_t row)
{
    for (int c = 0; c < FIELDS; c++) {
        const struct arrow_part *p = &r->run->part[c];
        const uint8_t *length = (const uint8_t *)r->run + p->length;
        r->n[c] = p->there ? ((const int64_t *)(const void *)length)[row] : -1;
        r->field[c] = (struct ints){r->n[c] < 0 ? NULL : r->items[c], r->n[c],
                                    (enum ints_type)p->type};
    }
}

static void pass(struct row *r)
{
    for (int c = 0; c < FIELDS; c++) {
        if (r->n[c] < 0)
            continue;
        r->items[c] += r->n[c] * (int64_t)ints_size(r->field[c].type);
        if (r->nulls[c])
            r->nulls[c] += r->n[c];
    }
}

/* Whether an item of a field is null; then there is a message. */
static bool has_null(const struct row *r, enum field f)
{
    const uint8_t *nulls = r->field[f].at ? r->nulls[f] : NULL;
    const uint8_t *at = nulls ? memchr(nulls, 1, (size_t)r->n[f]) : NULL;
    if (at)
        err_set(E_FORMAT, "%s[%" PRId64 "] is null", fields_name(f),
                (int64_t)(at - nulls));
    return at != NULL;
}

/* Nulls matter in the ids, in the mask that counts, and in attention_mask. */
static enum reject find_null(const struct row *r)
{
    int f = FIELD_LOSS_MASK;
    while (f < FIELD_LABELS && !r->field[f].at)
        f++;
    if (has_null(r, FIELD_IDS))
        return REJECT_IDS;
    return has_null(r, (enum field)f) || has_null(r, FIELD_ATTENTION_MASK)
               ? REJECT_MASK
               : REJECT_NONE;
}

static int add_row(struct documents *out, const struct row *r, int64_t record,
                   int64_t vocab)
{
    enum reject kind = find_null(r);
    return kind ? document_reject(out, record, kind)
                : fields_add(out, record, r->field, vocab);
}

int arrow_rows(struct documents *out, const struct arrow_run *run, int64_t record,
               int64_t index, const struct read_rules *rules)
{
    struct row r = {.run = run};
    start(&r);
    for (int64_t i = 0; i < run->rows; i++) {
        go_to(&r, i);
        if ((index + i) % rules->parts == rules->part)
            TRY(add_row(out, &r, record + i, rules->vocab));
        pass(&r);
    }
    return 0;
}
