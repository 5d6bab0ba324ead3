/* SPDX-License-Identifier: MIT */
/* document.c - the batch as three growing buffers. */
#include "document.h"

#include <string.h>

#include "err.h"
#include "mem.h"

const char *document_reject_name(enum reject kind)
{
    static const char *const name[REJECT_KINDS] = {"none",
                                                   "syntax",
                                                   "no_input_ids",
                                                   "bad_input_ids",
                                                   "id_out_of_vocabulary",
                                                   "empty",
                                                   "bad_loss_mask",
                                                   "lengths_differ",
                                                   "padded"};
    return name[kind];
}

int64_t document_tokens(const struct documents *d)
{
    if (d->n == 0)
        return 0;
    const struct document *last = &d->at[d->n - 1];
    return last->at + last->n;
}

static struct document *append(struct documents *d, int64_t record)
{
    struct document *at = mem_room(d->at, d->n, &d->cap, sizeof *at);
    if (!at)
        return NULL;
    d->at = at;
    struct document *doc = &d->at[d->n];
    *doc = (struct document){
        .record = record, .at = document_tokens(d), .unmasked = d->unmasked};
    d->unmasked = false;
    d->n++;
    return doc;
}

int document_mask_all(struct documents *d, int64_t n)
{
    d->unmasked = true;
    buf_fill(&d->mask, 1, (size_t)n);
    return buf_check(&d->mask);
}

int document_add(struct documents *d, int64_t record, int64_t n)
{
    struct document *doc = append(d, record);
    if (!doc)
        return E_MEMORY;
    doc->n = n;
    return 0;
}

int document_reject(struct documents *d, int64_t record, enum reject kind)
{
    const char *why = err_text();
    struct document *doc = append(d, record);
    if (!doc)
        return E_MEMORY;
    doc->reject = kind;
    doc->why = d->reasons.len;
    d->ids.len = (size_t)doc->at * sizeof(int32_t);
    d->mask.len = (size_t)doc->at;
    buf_add(&d->reasons, why, strlen(why) + 1);
    return buf_check(&d->reasons);
}

const int32_t *document_ids(const struct documents *d, const struct document *doc)
{
    return (const int32_t *)(const void *)d->ids.p + doc->at;
}

uint8_t *document_mask(const struct documents *d, const struct document *doc)
{
    return (uint8_t *)d->mask.p + doc->at;
}

const char *document_why(const struct documents *d, const struct document *doc)
{
    return d->reasons.p + doc->why;
}

void documents_clear(struct documents *d)
{
    d->n = 0;
    buf_clear(&d->ids);
    buf_clear(&d->mask);
    buf_clear(&d->reasons);
}

void documents_drop(struct documents *d)
{
    mem_free(d->at);
    buf_drop(&d->ids);
    buf_drop(&d->mask);
    buf_drop(&d->reasons);
    buf_drop(&d->scratch);
    *d = (struct documents){0};
}
