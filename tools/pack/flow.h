/* SPDX-License-Identifier: MIT */
/* flow.h - documents on their way from files to rows.
 *
 *     read: blocks of whole records, in order   -> parse, on any thread
 *     -> take, in order: refuse or choose the side, cut, drop, add to a window -> rows
 *
 * Everything that decides is in the ordered step, so the rows do not depend on threads.
 *
 * The side of a document (training or validation) is drawn from the seed and its token
 * ids: a document that occurs twice is never on both sides. */
#ifndef FLOW_H
#define FLOW_H

#include "cut.h"
#include "emit.h"
#include "inflow.h"
#include "input.h"
#include "ledger.h"
#include "par.h"
#include "reader.h"
#include "rejects.h"
#include "seen.h"
#include "window.h"

struct flow_side {
    struct emit emit;
    struct window window;
    struct ledger_side *ledger;
};

struct flow {
    /* set by the caller */
    const struct reader *format; /* of all files; NULL: known by their content */
    struct input *input; /* stdin's size and xxh3 are filled in when it has been read */
    struct read_rules rules;
    struct cut cut;
    int64_t min_supervised; /* of a piece */
    double valid;           /* share of documents for validation, 0: none */
    uint64_t seed;
    bool strict;
    bool dedup; /* leave out documents that came before */
    struct seen seen;
    struct flow_side train_side, valid_side;
    struct ledger *ledger;
    struct rejects *rejects;
    struct log *log;

    /* where reading stands */
    struct inflow in;
    const struct reader *reader; /* NULL: the next file is to be opened */
    void *state;                 /* of the reader */
    int64_t file, record, index; /* of the next block */
    int64_t bytes;               /* of the files before this one */
    int64_t empty, first_empty;  /* files without a record; which was the first */
};

/* flow_run moves everything; the windows are empty behind it. */
int flow_run(struct flow *f, struct par *p);

/* flow_take is the ordered step: the documents of one batch, which are of input file
 * `file`, into the windows or among the refused. */
int flow_take(struct flow *f, const struct documents *d, int64_t file);

#endif
