/* SPDX-License-Identifier: MIT */
/* buf.c - growth by doubling, so that n added bytes cost O(n). */
#include "buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "mem.h"

enum { FIRST = 256 };

/* Makes room for n bytes and the NUL; false once memory has run out. */
static bool grow(struct buf *b, size_t n)
{
    if (b->failed)
        return false;
    if (n < b->cap - b->len && b->p)
        return true;
    size_t need, cap = b->cap ? b->cap : FIRST;
    if (__builtin_add_overflow(b->len, n, &need) ||
        __builtin_add_overflow(need, 1, &need)) {
        b->failed = true;
        return false;
    }
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *p = mem_grow(b->p, b->len, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    b->p[b->len] = 0;
    return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    if (!grow(b, n))
        return;
    if (n)
        memcpy(b->p + b->len, bytes, n);
    b->len += n;
    b->p[b->len] = 0;
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0)
        b->failed = true;
    else if (grow(b, (size_t)n)) {
        vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void buf_fill(struct buf *b, char c, size_t n)
{
    char *p = buf_room(b, n);
    if (!p)
        return;
    memset(p, c, n);
    b->len += n;
    b->p[b->len] = 0;
}

char *buf_room(struct buf *b, size_t n)
{
    return grow(b, n) ? b->p + b->len : NULL;
}

int buf_check(const struct buf *b)
{
    return b->failed
               ? err_set(E_MEMORY, "no memory for a text of %zu bytes and more", b->len)
               : 0;
}

const char *buf_text(const struct buf *b)
{
    return b->p ? b->p : "";
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->p)
        b->p[0] = 0;
}

void buf_drop(struct buf *b)
{
    mem_free(b->p);
    *b = (struct buf){0};
}
