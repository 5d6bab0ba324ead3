/* SPDX-License-Identifier: MIT */
/* ledger.h - what was read, packed, dropped and refused: the report. */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "document.h"
#include "log.h"

enum { LEDGER_SIZES = 32 };

/* One output: training or validation. */
struct ledger_side {
    int64_t documents, document_tokens; /* accepted, before anything was cut */
    int64_t unmasked;                   /* of them, those that came without a mask */
    int64_t size[LEDGER_SIZES];         /* documents of 2^k .. 2^(k+1) - 1 tokens */
    int64_t pieces, tokens;             /* packed */
    int64_t supervised;                 /* tokens packed that are supervised */
    int64_t anchors; /* of them, those whose successor is supervised too */
    int64_t rows;
    int64_t long_documents, long_tokens;     /* cut off or dropped for their length */
    int64_t poor_pieces, poor_tokens;        /* dropped for want of supervised tokens */
    int64_t double_documents, double_tokens; /* dropped because they came before */
};

struct ledger {
    int64_t length;                /* tokens of a row */
    int64_t files, ignored, bytes; /* read; in folders, not read; raw bytes */
    int64_t empty;                 /* of the files read: those without a record */
    int64_t records, rejected;
    int64_t reject[REJECT_KINDS];
    struct ledger_side train, valid;
    bool has_valid;
};

/* What a piece has to teach: the ones of its mask behind the first `skip` items, and
 * those of them that another one follows. */
struct ledger_worth {
    int64_t supervised, anchors;
};
struct ledger_worth ledger_weigh(const uint8_t *mask, int64_t n, int64_t skip);

/* ledger_document notes an accepted document, ledger_piece what is packed of it. */
void ledger_document(struct ledger_side *s, int64_t tokens, bool unmasked);
void ledger_piece(struct ledger_side *s, int64_t tokens, struct ledger_worth w);

/* ledger_write appends the report as JSON, ledger_tell says it to people. */
void ledger_write(const struct ledger *l, struct buf *out);
void ledger_tell(const struct ledger *l, struct log *log);

#endif
