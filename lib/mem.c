/* SPDX-License-Identifier: MIT */
/* mem.c - aligned allocation over posix_memalign.
 *
 * The alignment serves vector loads and keeps buffers of different threads on cache
 * lines of their own. */
#include "mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"

enum { ALIGN = 64, FIRST_ITEMS = 64 };

void *mem_alloc(size_t bytes)
{
    void *p = NULL;
    size_t ask = bytes ? bytes : 1;
    if (ask > PTRDIFF_MAX || posix_memalign(&p, ALIGN, ask) != 0) {
        err_set(E_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    return p;
}

void *mem_zero(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        err_set(E_MEMORY, "no memory for %zu items of %zu bytes", n, size);
        return NULL;
    }
    void *p = mem_alloc(bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *mem_grow(void *p, size_t old_bytes, size_t bytes)
{
    void *q = mem_alloc(bytes);
    if (!q)
        return NULL;
    size_t keep = old_bytes < bytes ? old_bytes : bytes;
    if (p && keep)
        memcpy(q, p, keep);
    free(p);
    return q;
}

void *mem_room(void *at, int64_t n, int64_t *cap, size_t size)
{
    size_t more = *cap ? 2 * (size_t)*cap : FIRST_ITEMS, bytes;
    if (n < *cap)
        return at;
    if (__builtin_mul_overflow(more, size, &bytes)) {
        err_set(E_MEMORY, "no memory for %zu items of %zu bytes", more, size);
        return NULL;
    }
    void *p = mem_grow(at, (size_t)n * size, bytes);
    if (p)
        *cap = (int64_t)more;
    return p;
}

char *mem_text(const char *s)
{
    size_t bytes = strlen(s) + 1;
    char *copy = mem_alloc(bytes);
    if (copy)
        memcpy(copy, s, bytes);
    return copy;
}

void mem_free(void *p)
{
    free(p);
}
