/* SPDX-License-Identifier: MIT */
/* digest.h - SHA-256 and MD5 by OpenSSL, and the texts that checksums come in. */
#ifndef DIGEST_H
#define DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_SHA256, DIGEST_MD5 };
enum { DIGEST_MAX = 32 }; /* bytes of the longest; MD5 has 16 */

/* A running digest: open, add any number of times, end (which frees). */
struct digest;
struct digest *digest_open(enum digest_kind kind); /* NULL: E_MEMORY */
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, uint8_t out[DIGEST_MAX]);

/* The whole text must be exactly n bytes in hex or base64; else false. */
bool digest_from_hex(uint8_t *out, size_t n, const char *text);
bool digest_from_base64(uint8_t *out, size_t n, const char *text);

#endif
