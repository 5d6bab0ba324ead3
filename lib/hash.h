/* SPDX-License-Identifier: MIT */
/* hash.h - xxh3-64, the checksum of every format here.  Not cryptographic.
 *
 * The text form is 16 lower-case hex digits of the value, most significant first. */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_TEXT 17 /* bytes of the text form, NUL included */

uint64_t hash_bytes(const void *p, size_t n);

/* hash_bytes128 is xxh3-128, low word first: where two things must not be taken for one
 * and there are too many of them for 64 bits. */
void hash_bytes128(uint64_t out[2], const void *p, size_t n);

/* A running hash: open, add any number of times, read at any time, close. */
struct hash;
struct hash *hash_open(void); /* NULL: E_MEMORY */
void hash_add(struct hash *h, const void *p, size_t n);
uint64_t hash_value(const struct hash *h);
void hash_close(struct hash *h);

char *hash_text(char out[HASH_TEXT], uint64_t value); /* returns out */
int hash_parse(const char *text, uint64_t *out); /* E_FORMAT unless 16 hex digits */

#endif
