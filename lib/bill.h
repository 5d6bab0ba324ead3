/* SPDX-License-Identifier: MIT */
/* bill.h - memory that will be taken, by name: lines and their sum. */
#ifndef BILL_H
#define BILL_H

#include <stddef.h>

#include "buf.h"

enum { BILL_LINES = 12 };

struct bill {
    struct bill_line {
        const char *name; /* borrowed */
        char what[96];
        size_t bytes;
    } line[BILL_LINES];
    int lines;
    size_t total;
};

/* bill_add adds a line; a 13th is bug(). */
void bill_add(struct bill *b, const char *name, size_t bytes, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* bill_print appends the table under a title ("memory"); `note` stands beside the
 * total. */
void bill_print(struct buf *out, const struct bill *b, const char *title,
                const char *note);

#endif
