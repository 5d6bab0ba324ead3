/* SPDX-License-Identifier: MIT */
/* s3.h - s3://bucket/prefix: objects of AWS S3 and of everything that speaks its
 * protocol.
 *
 * The prefix names an object, a folder of objects, or both.  Keys are what follows the
 * prefix and a slash; an object that is the prefix itself has its last part as name.
 * Zero-byte markers of folders ("a/") are passed over. */
#ifndef S3_H
#define S3_H

#include "learn.h"
#include "scheme.h"

/* The functions of struct scheme. */
int s3_open(struct source *s);
void s3_close(struct source *s);
int s3_list(struct source *s, struct objects *out);
int s3_ask(struct source *s, const struct piece *p, struct http_call *c);
int s3_judge(struct source *s, const struct piece *p, const struct http_call *c,
             enum verdict *verdict);

/* What uploads share with this: s3_begin makes a call for a key of the bucket ("": the
 * bucket itself) with an encoded query ("": none) and tells what it went by; lines may
 * then be added; s3_end signs it by the same, whatever was learned meanwhile, with the
 * SHA-256 of its body in hex.  s3_prefix is the prefix as it was given. */
struct known s3_begin(struct source *s, struct http_call *c, const char *method,
                      const char *key, const char *query);
int s3_end(struct source *s, struct http_call *c, const struct known *known,
           const char *payload);
const char *s3_prefix(const struct source *s);

/* s3_list_raw lists what is below the prefix, half a set as well as a whole one; there
 * may be nothing. */
int s3_list_raw(struct source *s, struct objects *out);

#endif
