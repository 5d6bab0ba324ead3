/* SPDX-License-Identifier: MIT */
/* sigv4.h - AWS Signature Version 4 as pure functions.
 *
 * A request is signed as its caller describes it: nothing is added, so what is sent and
 * what is signed are the same list.  Names and values of the query are raw bytes;
 * sigv4_target writes path and query the way they are sent, and that is the way they
 * are signed.  S3 encodes a path once and keeps it as it is: "a//b/../c" is a key like
 * any other.  Every other service resolves the path and encodes it once more, which
 * does not matter for "/", the only path that they are called with here.
 *
 * AWS, "Create a signed AWS API request" and "Authenticating Requests: Using the
 * Authorization Header (AWS Signature Version 4)" in the S3 API reference. */
#ifndef SIGV4_H
#define SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/* As the payload of a request whose body is not signed. */
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

enum {
    SIGV4_PAIRS = 32, /* most headers, and most query parameters, of one request */
    SIGV4_DATE = 17,  /* bytes of "20150830T123600Z", NUL included */
    SIGV4_HEX = 65    /* bytes of a SHA-256 in hex, NUL included */
};

struct sigv4_pair {
    const char *name, *value;
};

struct sigv4_request {
    const char *method;
    const char *path;               /* raw bytes, begins with '/' */
    bool resolve;                   /* "..", "." and "//" are resolved: not for S3 */
    const struct sigv4_pair *query; /* in any order */
    int queries;
    const struct sigv4_pair *header; /* all that are signed, host and x-amz-date too */
    int headers;
    const char *payload; /* SHA-256 of the body in hex, or SIGV4_UNSIGNED */
    int64_t time;        /* seconds since 1970; what x-amz-date says */
};

/* What signs: derived from a secret for one day, region and service, then good for any
 * number of requests from any thread.  It is a secret itself. */
struct sigv4_key {
    char access[160], scope[128]; /* "20150830/us-east-1/s3/aws4_request" */
    unsigned char key[32];
    int64_t day; /* since 1970 */
};

/* sigv4_key_init derives a key; E_CONFIG when an id or a name is too long.
 * sigv4_key_drop wipes it.  sigv4_key_fits: is it good at this time? */
int sigv4_key_init(struct sigv4_key *k, const char *access, const char *secret,
                   int64_t time, const char *region, const char *service);
void sigv4_key_drop(struct sigv4_key *k);
bool sigv4_key_fits(const struct sigv4_key *k, int64_t time);

/* sigv4_sign appends the value of the Authorization header.  Headers of one name are
 * signed as one, values joined by commas.  Fails with E_MEMORY only. */
int sigv4_sign(struct buf *authorization, const struct sigv4_request *r,
               const struct sigv4_key *k);

/* sigv4_canonical appends what the signature is computed over, and the names of the
 * signed headers to `names`. */
void sigv4_canonical(struct buf *out, struct buf *names, const struct sigv4_request *r);

/* sigv4_target appends the request's path and query as they are sent. */
void sigv4_target(struct buf *out, const struct sigv4_request *r);

/* sigv4_hash writes the SHA-256 of some bytes in lower-case hex; sigv4_date writes a
 * time as x-amz-date wants it.  Both return out. */
char *sigv4_hash(char out[SIGV4_HEX], const void *p, size_t n);
char *sigv4_date(char out[SIGV4_DATE], int64_t time);

#endif
