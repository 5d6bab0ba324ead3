/* SPDX-License-Identifier: MIT */
/* bill.c - see bill.h. */
#include "bill.h"

#include <stdarg.h>
#include <stdio.h>

#include "err.h"
#include "num.h"

void bill_add(struct bill *b, const char *name, size_t bytes, const char *fmt, ...)
{
    if (b->lines == BILL_LINES)
        bug("more than %d lines: %s", BILL_LINES, name);
    struct bill_line *l = &b->line[b->lines++];
    va_list ap;
    l->name = name;
    l->bytes = bytes;
    va_start(ap, fmt);
    vsnprintf(l->what, sizeof l->what, fmt, ap);
    va_end(ap);
    b->total += bytes;
}

static void print(struct buf *out, const char *name, size_t bytes, const char *what)
{
    char text[32];
    buf_addf(out, "%-12s %15zu  %10s%s%s\n", name, bytes,
             num_bytes(text, sizeof text, (double)bytes), *what ? "  " : "", what);
}

void bill_print(struct buf *out, const struct bill *b, const char *title,
                const char *note)
{
    buf_addf(out, "%-12s %15s\n", title, "bytes");
    for (int i = 0; i < b->lines; i++)
        print(out, b->line[i].name, b->line[i].bytes, b->line[i].what);
    print(out, "total", b->total, note);
}
