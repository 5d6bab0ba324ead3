/* SPDX-License-Identifier: MIT */
/* upload_parts.h - a large file on its way; private to the upload_*.c of large files.
 *
 * A file's lock is over its fields; only who begins the file, alone, and who ends it,
 * when all parts have ended, use them without. */
#ifndef UPLOAD_PARTS_H
#define UPLOAD_PARTS_H

#include <pthread.h>

#include "digest.h"
#include "upload_request.h"

enum { UPLOAD_ID = 2048, UPLOAD_QUERY = 3 * UPLOAD_ID + 64 };

struct upload_part {
    char sum[SET_SUM], etag[HEAD_TEXT];
    uint64_t crc;
    bool there; /* as an earlier run has sent it: held against the file first */
};

struct upload_file {
    struct upload_item *it;
    struct upload *u;
    int64_t n;     /* parts */
    int64_t first; /* of them, in the row of all parts */
    pthread_mutex_t lock;
    bool fresh;          /* uploads of earlier runs are not looked for */
    bool begun, resumed; /* resumed: what an earlier run has begun */
    bool again;          /* what that run has left was no good: all of it once more */
    int64_t left;        /* parts that have not ended */
    int64_t kept;        /* bytes of those that were there */
    char *id;            /* of the upload, escaped; owned, as all that follows */
    struct upload_part *at;
    int code; /* not 0: it has failed, and why */
    char *why;
};

/* upload_part.c: bytes of part i; an id that the server gave; a new upload; an end
 * without an object, after which err_text stays; part i, 1 when it was there already;
 * the MD5 that a part's ETag is, where nothing is encrypted. */
int64_t upload_part_bytes(const struct upload_file *f, int64_t i);
int upload_keep_id(struct upload_file *f, const char *id);
int upload_begin(struct upload_file *f, struct upload_worker *w);
void upload_abort(struct upload_file *f, struct upload_worker *w);
int upload_send_part(struct upload_file *f, int64_t i, struct upload_worker *w);
bool upload_md5(uint8_t out[DIGEST_MAX], const char *etag);

/* upload_left.c: 1 when the file goes on in an upload of an earlier run. */
int upload_resume(struct upload_file *f, struct upload_worker *w);

/* upload_end.c: puts the parts together and looks at what has become of them. */
int upload_complete(struct upload_file *f, int worker);

#endif
