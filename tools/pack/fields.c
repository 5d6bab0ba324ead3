/* SPDX-License-Identifier: MIT */
/* fields.c - checks and conversion, field by field. */
#include "fields.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"

static const char *const names[FIELDS] = {"input_ids",      "loss_mask",
                                          "assistant_mask", "assistant_masks",
                                          "labels",         "attention_mask"};

enum field fields_named(const char *name, size_t n)
{
    if (n == 6 && memcmp(name, "tokens", 6) == 0)
        return FIELD_IDS;
    int f = 0;
    while (f < FIELDS && !(strlen(names[f]) == n && memcmp(names[f], name, n) == 0))
        f++;
    return (enum field)f;
}

const char *fields_name(enum field f)
{
    return names[f];
}

/* Each of these is 0, or the kind of a refusal beside a message. */

static enum reject add_ids(struct documents *out, const struct ints *ids, int64_t vocab)
{
    int32_t *to = (void *)buf_room(&out->ids, (size_t)ids->n * sizeof *to);
    if (!to)
        return REJECT_NONE; // the buffer remembers
    int64_t bad = ints_narrow(to, ids, vocab);
    if (bad < ids->n) {
        err_set(E_FORMAT,
                "input_ids[%" PRId64 "] is %" PRId64
                ", outside the vocabulary of %" PRId64,
                bad, ints_get(ids, bad), vocab);
        return REJECT_VOCAB;
    }
    out->ids.len += (size_t)ids->n * sizeof *to;
    return REJECT_NONE;
}

static enum reject check_length(const struct ints *a, enum field f, int64_t n)
{
    if (a->n == n)
        return REJECT_NONE;
    err_set(E_FORMAT, "%s has %" PRId64 " items for %" PRId64 " tokens", names[f], a->n,
            n);
    return REJECT_LENGTH;
}

static enum reject add_mask(struct documents *out, const struct ints *a, enum field f)
{
    uint8_t *to = (void *)buf_room(&out->mask, (size_t)a->n);
    if (!to)
        return REJECT_NONE;
    int64_t bad = ints_bits(to, a);
    if (bad < a->n) {
        err_set(E_FORMAT, "%s[%" PRId64 "] is %" PRId64 ", not 0 or 1", names[f], bad,
                ints_get(a, bad));
        return REJECT_MASK;
    }
    out->mask.len += (size_t)a->n;
    return REJECT_NONE;
}

static enum reject add_labels(struct documents *out, const struct ints *a,
                              const struct ints *ids)
{
    uint8_t *to = (void *)buf_room(&out->mask, (size_t)a->n);
    if (!to || out->ids.failed)
        return REJECT_NONE;
    const int32_t *narrow = (const void *)(out->ids.p + out->ids.len);
    int64_t bad = ints_marks(to, a, narrow - a->n, -100);
    if (bad < a->n) {
        err_set(E_FORMAT,
                "labels[%" PRId64 "] is %" PRId64 " where input_ids has %" PRId64, bad,
                ints_get(a, bad), ints_get(ids, bad));
        return REJECT_MASK;
    }
    out->mask.len += (size_t)a->n;
    return REJECT_NONE;
}

static enum reject check_padding(const struct ints *a)
{
    int64_t i = ints_differs(a, 1);
    if (i == a->n)
        return REJECT_NONE;
    int64_t bit = ints_get(a, i);
    err_set(E_FORMAT,
            bit ? "attention_mask[%" PRId64 "] is %" PRId64 ", not 0 or 1"
                : "attention_mask[%" PRId64 "] is %" PRId64 ": the record is padded",
            i, bit);
    return bit ? REJECT_MASK : REJECT_PADDED;
}

static enum reject add_supervision(struct documents *out, const struct ints *field)
{
    const struct ints *ids = &field[FIELD_IDS];
    for (int f = FIELD_LOSS_MASK; f <= FIELD_LABELS; f++) {
        if (!field[f].at)
            continue;
        enum reject kind = check_length(&field[f], (enum field)f, ids->n);
        if (kind)
            return kind;
        return f == FIELD_LABELS ? add_labels(out, &field[f], ids)
                                 : add_mask(out, &field[f], (enum field)f);
    }
    document_mask_all(out, ids->n); // a lack of memory is found below
    return REJECT_NONE;
}

static enum reject add_all(struct documents *out, const struct ints *field,
                           int64_t vocab)
{
    const struct ints *ids = &field[FIELD_IDS], *seen = &field[FIELD_ATTENTION_MASK];
    if (!ids->at) {
        err_set(E_FORMAT, "no input_ids (scripts/tokenize.py makes them of chats)");
        return REJECT_NO_IDS;
    }
    if (ids->n == 0) {
        err_set(E_FORMAT, "input_ids is empty");
        return REJECT_EMPTY;
    }
    enum reject kind = add_ids(out, ids, vocab);
    if (kind == REJECT_NONE)
        kind = add_supervision(out, field);
    if (kind == REJECT_NONE && seen->at)
        kind = check_length(seen, FIELD_ATTENTION_MASK, ids->n);
    if (kind == REJECT_NONE && seen->at)
        kind = check_padding(seen);
    return kind;
}

int fields_add(struct documents *out, int64_t record, const struct ints field[FIELDS],
               int64_t vocab)
{
    enum reject kind = add_all(out, field, vocab);
    TRY(buf_check(&out->ids));
    TRY(buf_check(&out->mask));
    return kind ? document_reject(out, record, kind)
                : document_add(out, record, field[FIELD_IDS].n);
}
