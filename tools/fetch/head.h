/* SPDX-License-Identifier: MIT */
/* head.h - what the status line and the headers of a reply say. */
#ifndef HEAD_H
#define HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_TEXT = 256, HEAD_URL = 4096 };

struct head {
    int status;             /* 0: no reply yet */
    int64_t length;         /* Content-Length; -1: not said */
    int64_t begin, end;     /* Content-Range: [begin, end), -1: not said */
    int64_t total;          /* of the whole object, by Content-Range; -1: not said */
    int64_t date, modified; /* Date, Last-Modified: seconds since 1970; 0: not said */
    int64_t retry_after;    /* seconds; -1: not said */
    int64_t parts;          /* x-amz-mp-parts-count; 0: not said */
    bool broken;            /* one of the numbers above is not what it should be */
    char etag[HEAD_TEXT];   /* as sent, with its quotes; the texts are "" if not sent */
    char region[64];        /* x-amz-bucket-region */
    char request_id[64];    /* x-amz-request-id */
    char encryption[32];    /* x-amz-server-side-encryption */
    char checksum_type[16]; /* x-amz-checksum-type: FULL_OBJECT or COMPOSITE */
    char crc64nvme[16];     /* x-amz-checksum-*, in base64 */
    char crc32c[16], crc32[16], sha256[64];
    char linked_etag[HEAD_TEXT]; /* X-Linked-Etag, X-Linked-Size: of the hub */
    int64_t linked_size;         /* -1: not said */
    char commit[64];             /* X-Repo-Commit */
    char link[HEAD_URL];         /* Link, all of them */
    char coding[32];             /* Transfer-Encoding */
    bool link_long;              /* they do not fit */
    char location[HEAD_URL];
};

void head_start(struct head *h);

/* head_line takes one line, with or without its line end.  A status line starts anew,
 * so that of several heads (100 Continue) the last one counts.  Values that are too
 * long for their field are left out, and of Link that is told. */
void head_line(struct head *h, const char *line, size_t n);

/* head_range reads "bytes 0-9/100", where '*' may stand for the range (then it is
 * empty) or for the total; E_FORMAT on anything else, and on a range beyond its total.
 */
int head_range(struct head *h, const char *value);

/* head_time reads "Sun, 06 Nov 1994 08:49:37 GMT"; 0 for anything else. */
int64_t head_time(const char *value);

#endif
