/* SPDX-License-Identifier: MIT */
/* sha256.h - a file held against the SHA-256 that its source has for it. */
#ifndef SHA256_H
#define SHA256_H

#include <stdint.h>

/* sha256_check rereads `size` bytes of a file from its beginning; `want` is 64
 * lower-case hex digits, NULL: nothing is asked.  E_FORMAT names the object when they
 * differ. */
int sha256_check(int fd, int64_t size, const char *want, const char *name);

#endif
