/* SPDX-License-Identifier: MIT */
/* scheme.h - where objects come from: a table of URL schemes.
 *
 * A scheme lists what is behind a URL.  Local ones then copy an object whole; remote
 * ones say how a piece of an object is asked for and what an answer means, and
 * transfer.h does the rest.  Every other part of fetch sees keys, sizes and bytes, so a
 * new scheme is a row in scheme.c and a file of its own. */
#ifndef SCHEME_H
#define SCHEME_H

#include <stddef.h>

#include "creds.h"
#include "http.h"
#include "log.h"
#include "object.h"
#include "piece.h"
#include "retry.h"

/* Where the bucket stands in a URL of S3. */
enum s3_addressing {
    S3_AUTO, /* in the host name at AWS, in the path at an endpoint */
    S3_PATH,
    S3_VIRTUAL
};

/* What the options say to all sources. */
struct scheme_rules {
    struct http_rules http;
    int retries;          /* of one request */
    int64_t memory;       /* bytes of the whole process; lists must fit, too */
    const char *endpoint; /* of S3; NULL: by region */
    const char *region;   /* of S3; NULL: us-east-1 or what the server says */
    enum s3_addressing addressing;
    bool requester_pays, no_checksum, check_etag;
    struct creds *creds; /* of S3; NULL: there is no such source */
    struct log *log;
};

/* One operand of the command line. */
struct source {
    const struct scheme *scheme;
    const char *url;
    const struct scheme_rules *rules;
    void *state; /* the scheme's own */
    bool alone;  /* one thread asks, which may tell the log that it must ask again */
};

struct scheme {
    const char *name; /* "file" for file://; a plain path is one too */

    /* open looks at the URL and makes the state, close frees it; both may be NULL. */
    int (*open)(struct source *s);
    void (*close)(struct source *s);

    /* apart refuses (E_CONFIG) a destination that is part of the source; may be NULL.
     */
    int (*apart)(const char *url, const char *dest);

    /* list appends the objects behind the URL.  Objects that cannot be fetched are
     * appended and refused; a failure means that the source as a whole is unusable. */
    int (*list)(struct source *s, struct objects *out);

    /* Local: get writes an object's bytes to fd, which is empty, and gives their
     * CRC-64/NVME.  It fails when the source is no longer what was listed (E_AGAIN).
     * `buffer` of `size` bytes is scratch.  Called by several threads. */
    int (*get)(const struct object *o, int fd, uint64_t *sum, void *buffer,
               size_t size);

    /* Remote: ask fills method, url and lines of an empty call for a piece.  judge says
     * what its end means: 0 when the answer is a 2xx, else a code with err_text(), and
     * in *verdict whether trying again may help.  Called by several threads. */
    int (*ask)(struct source *s, const struct piece *p, struct http_call *c);
    int (*judge)(struct source *s, const struct piece *p, const struct http_call *c,
                 enum verdict *verdict);
    bool head; /* ask for an object's head before its pieces */
};

/* scheme_open finds the scheme of a URL and opens the source; E_USAGE names a scheme
 * that this build lacks.  `url` and `rules` are borrowed until scheme_close. */
int scheme_open(struct source *out, const char *url, const struct scheme_rules *rules);
void scheme_close(struct source *s);

/* scheme_open_list is a source of the URLs in a file (web.h). */
int scheme_open_list(struct source *out, const char *path,
                     const struct scheme_rules *rules);

/* scheme_again tells the log that after err_text() there will be another attempt, when
 * `tries` have failed already, so that a long wait is not a silent one. */
void scheme_again(const struct scheme_rules *r, int tries);

/* scheme_list appends what is behind a source; E_MISSING when that is nothing at all,
 * which is a mistake more often than not. */
int scheme_list(struct source *s, struct objects *out);

/* scheme_move gives the URL that a redirected call (VERDICT_MOVED) leads to; E_FORMAT
 * when it leads nowhere, E_CONFIG after ten times. */
int scheme_move(struct buf *url, const struct http_call *c, int *moves);

/* scheme_run makes a call of a remote scheme, in the listing, with retries: `ask`
 * prepares every attempt anew.  Redirects are followed.  When attempts go on failing
 * the log hears why (source.alone), before the last of them has. */
typedef int scheme_ask(struct source *s, void *user, struct http_call *c);
int scheme_run(struct source *s, struct http *http, struct http_call *c,
               scheme_ask *ask, void *user);

#endif
