/* SPDX-License-Identifier: MIT */
/* etag.h - the MD5 that the ETag of an object of S3, or of a part of one, may be. */
#ifndef ETAG_H
#define ETAG_H

#include <stdbool.h>
#include <stdint.h>

enum { ETAG_MD5 = 16 }; /* bytes */

/* etag_md5 reads "32 hex digits", or "32 hex digits-PARTS", in quotes or without: how
 * many parts the MD5 is made of, 1 also when *parts says that it is of the bytes
 * themselves; 0: this is no MD5.  NULL is none. */
int64_t etag_md5(uint8_t sum[ETAG_MD5], const char *etag, bool *parts);

#endif
