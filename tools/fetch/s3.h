/* SPDX-License-Identifier: MIT */
/* s3.h - s3://bucket/prefix: objects of AWS S3 and of everything that speaks its
 * protocol.
 *
 * The prefix names an object, a folder of objects, or both.  Keys are what follows the
 * prefix and a slash; an object that is the prefix itself has its last part as name.
 * Zero-byte markers of folders ("a/") are passed over. */
#ifndef S3_H
#define S3_H

#include "scheme.h"

/* The functions of struct scheme. */
int s3_open(struct source *s);
void s3_close(struct source *s);
int s3_list(struct source *s, struct objects *out);
int s3_ask(struct source *s, const struct piece *p, struct http_call *c);
int s3_judge(struct source *s, const struct piece *p, const struct http_call *c,
             enum verdict *verdict);

#endif
