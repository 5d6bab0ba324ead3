/* SPDX-License-Identifier: MIT */
/* fields.h - a document whose fields are arrays of numbers, each under its name.
 *
 * The rules are those of JSON lines (read_jsonl.h): input_ids, also called tokens; the
 * mask is, in this order of preference, loss_mask, assistant_mask or assistant_masks,
 * or labels; attention_mask must be all ones; without a mask all tokens are supervised.
 */
#ifndef FIELDS_H
#define FIELDS_H

#include "document.h"
#include "ints.h"

enum field {
    FIELD_IDS,
    FIELD_LOSS_MASK,
    FIELD_ASSISTANT_MASK,
    FIELD_ASSISTANT_MASKS,
    FIELD_LABELS,
    FIELD_ATTENTION_MASK,
    FIELDS
};

const char *fields_name(enum field f); /* its own name */

/* fields_named finds a field by n characters of its name; FIELDS when it is none. */
enum field fields_named(const char *name, size_t n);

/* fields_add appends a document, or refuses it with the reason.  E_MEMORY. */
int fields_add(struct documents *out, int64_t record, const struct ints field[FIELDS],
               int64_t vocab);

#endif
