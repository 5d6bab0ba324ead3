/* SPDX-License-Identifier: MIT */
/* s3_list.h - what S3 answers with: pages of a listing, and errors. */
#ifndef S3_LIST_H
#define S3_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/* One <Contents>; key and etag are borrowed during the call. */
struct s3_item {
    const char *key, *etag; /* the key decoded; the ETag with its quotes, or "" */
    int64_t size, mtime_ns;
};

struct s3_page {
    bool more;        /* IsTruncated */
    struct buf token; /* NextContinuationToken, as sent; dropped by the user */
    int64_t items;
};

/* s3_list_page reads one ListBucketResult and gives its items to `item`, whose failure
 * it passes on.  E_FORMAT when the document is not one, ends early, lacks key or size
 * of an item, or is truncated without a token. */
typedef int s3_item_fn(void *user, const struct s3_item *item);
int s3_list_page(struct s3_page *page, const char *text, size_t n, s3_item_fn *item,
                 void *user);

/* s3_list_time reads 2009-10-12T17:50:30.000Z as nanoseconds since 1970; 0: not one. */
int64_t s3_list_time(const char *text);

/* s3_list_error reads an <Error> document: its Code, Message and Region, "" when there
 * is none.  Anything else is no error document: false, and all "". */
struct s3_error {
    char code[64], message[256], region[64];
};
bool s3_list_error(struct s3_error *out, const char *text, size_t n);

#endif
