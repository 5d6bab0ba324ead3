/* SPDX-License-Identifier: MIT */
/* mem.h - host memory for metadata and buffers.
 *
 * Every pointer is 64-byte aligned.  A failed call returns NULL and leaves E_MEMORY
 * with the size asked for in err's slot. */
#ifndef MEM_H
#define MEM_H

#include <stddef.h>
#include <stdint.h>

/* mem_alloc returns `bytes` bytes, not initialised; 0 bytes give a valid pointer. */
void *mem_alloc(size_t bytes);

/* mem_zero returns n * size zeroed bytes; an overflow of the product is a failure. */
void *mem_zero(size_t n, size_t size);

/* mem_grow returns a block of `bytes` holding the first min(old_bytes, bytes) bytes of
 * p, and frees p; on failure p is untouched.  p may be NULL. */
void *mem_grow(void *p, size_t old_bytes, size_t bytes);

/* mem_room returns an array of n items of `size` bytes with room for one more: itself,
 * or moved to twice the room.  *cap, the items that fit, is kept up to date; on failure
 * all is untouched.  `at` may be NULL with n and *cap 0. */
void *mem_room(void *at, int64_t n, int64_t *cap, size_t size);

/* mem_text returns a copy of a string. */
char *mem_text(const char *s);

/* mem_free frees; NULL is fine. */
void mem_free(void *p);

#endif
