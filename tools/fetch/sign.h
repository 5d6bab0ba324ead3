/* SPDX-License-Identifier: MIT */
/* sign.h - a call of http.h, signed as it is about to be sent.
 *
 * All that the call carries is signed: its URL, and every line that is there.  So an
 * intermediary that drops a Range or a checksum makes the server refuse the request,
 * instead of answering another one. */
#ifndef SIGN_H
#define SIGN_H

#include <stdint.h>

#include "creds.h"
#include "http.h"

/* The SHA-256 of nothing, which is the body of a GET. */
#define SIGN_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct sign_rules {
    const char *region;
    const char *payload; /* SHA-256 of the body in hex, SIGN_EMPTY, SIGV4_UNSIGNED */
    int64_t time;        /* seconds since 1970, by the server's clock */
};

/* sign_call adds x-amz-date, x-amz-content-sha256, x-amz-security-token where there is
 * one, and Authorization, for S3; nothing when requests are not signed.  It comes last:
 * a call that is sent again is made and signed anew. */
int sign_call(struct http_call *call, struct creds *creds,
              const struct sign_rules *rules);

/* sign_spoil tells creds that a server found the keys of this call expired; true when
 * signing it anew will use others. */
bool sign_spoil(struct creds *creds, const struct http_call *call);

#endif
