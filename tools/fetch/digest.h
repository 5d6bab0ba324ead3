/* SPDX-License-Identifier: MIT */
/* digest.h - SHA-256, MD5 and SHA-1 by OpenSSL, and the texts that checksums come in.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_SHA256, DIGEST_MD5, DIGEST_SHA1 };
enum { DIGEST_MAX = 32 };                  /* bytes of the longest */
size_t digest_size(enum digest_kind kind); /* 32, 16 and 20 bytes */

/* A running digest: open, add any number of times, take, which begins anew; drop. */
struct digest;
struct digest *digest_open(enum digest_kind kind); /* NULL: E_MEMORY */
void digest_add(struct digest *d, const void *p, size_t n);
void digest_take(struct digest *d, uint8_t out[DIGEST_MAX]);
void digest_drop(struct digest *d); /* NULL is fine */

/* digest_to_hex writes n bytes as 2 n digits and a NUL. */
void digest_to_hex(char *out, const uint8_t *bytes, size_t n);

/* The whole text must be exactly n bytes in hex or base64; else false. */
bool digest_from_hex(uint8_t *out, size_t n, const char *text);
bool digest_from_base64(uint8_t *out, size_t n, const char *text);

#endif
