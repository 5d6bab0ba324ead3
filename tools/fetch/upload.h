/* SPDX-License-Identifier: MIT */
/* upload.h - one file to one object of a bucket, in one request or in parts.
 *
 * Each body is signed with its SHA-256, which every server checks, and carries its
 * CRC-64/NVME, which servers that know it check and keep.  What a server says that it
 * keeps is compared; `kept` tells whether it said so. */
#ifndef UPLOAD_H
#define UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "head.h"
#include "http.h"
#include "par.h"
#include "scheme.h"
#include "set.h"
#include "want.h"

/* What one thread works with. */
struct upload_worker {
    struct http *http;
    struct http_call call;
    char *buffer; /* of a part */
};

struct upload {
    struct source *to; /* an open s3:// source */
    struct par *par;
    struct upload_worker *worker; /* one for each thread of par */
    int64_t part;                 /* bytes */
    bool sums;                    /* send CRCs */
    void *user;
    /* By any thread, before so many bytes are sent: returns when they may be. */
    void (*starts)(void *user, int64_t bytes);
    /* By any thread: bytes have been sent, or were there from an earlier run (below 0:
     * all of these must go once more); what is worth telling. */
    void (*sent)(void *user, int64_t bytes, bool there);
    void (*told)(void *user, const char *text);
};

/* What there is to send, and what became of it. */
struct upload_item {
    const char *path, *key; /* file; key in the bucket, whole */
    int64_t size;
    char sum[SET_SUM];
    bool kept; /* the server says that it keeps this sum */
};

/* upload_look asks for the object: 1 when it is there with the size, and its sum is
 * set ("" when the server keeps none), 0 when it is not. */
int upload_look(struct upload *u, struct upload_item *it, int worker);

/* upload_sum reads the file and gives its CRC; a digest that is wanted, or NULL, gets
 * the same bytes. */
int upload_sum(const struct upload *u, char sum[SET_SUM], struct want_run *run,
               const struct upload_item *it, int worker);

/* upload_small sends a file of up to u->part bytes, by one thread.  E_AGAIN when the
 * file changes meanwhile. */
int upload_small(struct upload *u, struct upload_item *it, int worker);

/* upload_large sends n files of more, their parts one after another by all threads, and
 * goes on with uploads of these keys that did not end.  `ended` hears of each file, 0
 * or a failure with err_text(), from any thread; a failure of its own ends it all.
 * E_AGAIN when a signal has stopped it.  A failure that trying again does not mend
 * aborts its upload; others stay on the server for the next run. */
typedef int upload_ended(void *user, struct upload_item *it, int code);
int upload_large(struct upload *u, struct upload_item *const *item, int64_t n,
                 upload_ended *ended);

/* upload_text puts an object's bytes; upload_get gets them into worker 0's call, up to
 * `limit`: E_MISSING when there is no such object. */
int upload_text(struct upload *u, const char *key, const struct buf *text);
int upload_get(struct upload *u, const char *key, size_t limit);

#endif
