/* SPDX-License-Identifier: MIT */
/* buf.h - a growable run of bytes, always followed by a NUL.
 *
 * A zero struct is an empty buffer.  A failed allocation is sticky: further adds do
 * nothing and buf_check reports it, so that text can be built without a test a line. */
#ifndef BUF_H
#define BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *p; /* owned; NULL while empty */
    size_t len, cap;
    bool failed;
};

void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_fill(struct buf *b, char c, size_t n);

/* buf_room makes room for n more bytes and returns where they go, or NULL. */
char *buf_room(struct buf *b, size_t n);

/* buf_check is 0, or E_MEMORY when an add failed. */
int buf_check(const struct buf *b);

/* buf_text is the content as a string; "" while empty. */
const char *buf_text(const struct buf *b);

void buf_clear(struct buf *b); /* len = 0, memory kept */
void buf_drop(struct buf *b);  /* memory freed, zero struct */

#endif
