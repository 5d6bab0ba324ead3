/* SPDX-License-Identifier: MIT */
/* document.h - what every reader makes of its input: token ids, a mask, where they came
 * from, or the reason why they cannot be used.
 *
 * Documents come in batches, whose tokens lie one behind another. */
#ifndef DOCUMENT_H
#define DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

/* Why a record is refused; the report counts by these. */
enum reject {
    REJECT_NONE,
    REJECT_SYNTAX, /* the record cannot be read */
    REJECT_NO_IDS, /* it has no input_ids */
    REJECT_IDS,    /* they are not a list of whole numbers */
    REJECT_VOCAB,  /* an id lies outside the vocabulary */
    REJECT_EMPTY,  /* no tokens */
    REJECT_MASK,   /* the mask is not a list of 0 and 1, or the labels are odd */
    REJECT_LENGTH, /* the mask is not as long as the ids */
    REJECT_PADDED, /* attention_mask has zeros: padding would be trained on */
    REJECT_KINDS
};

/* document_reject_name is the key of a kind in the report. */
const char *document_reject_name(enum reject kind);

struct document {
    int64_t record; /* its number in the file, from 0 */
    int64_t at, n;  /* tokens: where they begin in the batch, how many */
    bool unmasked;  /* it came without a mask: every token is supervised */
    enum reject reject;
    size_t why; /* offset of the reason in `reasons` */
};

struct documents {
    struct document *at;
    int64_t n, cap;
    struct buf ids;     /* int32_t */
    struct buf mask;    /* uint8_t, as many as ids */
    struct buf reasons; /* texts, each ended by a NUL */
    struct buf scratch; /* of the reader */
    bool unmasked;      /* of the document that is being read */
};

/* document_mask_all appends a mask of n ones to a record that brings none, which the
 * report counts.  E_MEMORY. */
int document_mask_all(struct documents *d, int64_t n);

/* document_add appends a document of the n tokens that stand at the end of ids and
 * mask.  document_reject appends a refused one, with err_text() as the reason, and
 * drops what stands in ids and mask behind the last document.  E_MEMORY. */
int document_add(struct documents *d, int64_t record, int64_t n);
int document_reject(struct documents *d, int64_t record, enum reject kind);

/* Where its parts are. */
const int32_t *document_ids(const struct documents *d, const struct document *doc);
uint8_t *document_mask(const struct documents *d, const struct document *doc);
const char *document_why(const struct documents *d, const struct document *doc);

/* document_tokens is how many tokens stand before the next document. */
int64_t document_tokens(const struct documents *d);

void documents_clear(struct documents *d);
void documents_drop(struct documents *d);

#endif
