/* SPDX-License-Identifier: MIT */
/* upload_request.h - what the files of an upload share; private to upload*.c. */
#ifndef UPLOAD_REQUEST_H
#define UPLOAD_REQUEST_H

#include "sigv4.h"
#include "upload.h"

/* What a request is; every attempt of it is made anew. */
struct upload_request {
    const char *method, *key, *query;
    const void *body;
    size_t size;
    const char *sum;   /* CRC of the body, or of the whole object; NULL: none */
    const char *extra; /* one more line "Name: value"; NULL: none */
    double patience;   /* seconds of silence to bear, if more than for others */
    char payload[SIGV4_HEX];
};

/* upload_run makes a request, with retries; the reply is in w->call.  upload_once makes
 * it once, also when a signal has stopped us, and then not for long; err_text stays. */
int upload_run(struct upload *u, struct upload_request *r, struct upload_worker *w);
void upload_once(struct upload *u, struct upload_request *r, struct upload_worker *w);

/* upload_compare: E_REMOTE when the server says that it keeps another CRC than was
 * sent; `kept` tells whether it says one. */
int upload_compare(const struct upload_worker *w, const char *sum, const char *key,
                   bool *kept);

/* upload_read reads a part of the file; E_AGAIN when its size has changed. */
int upload_read(const struct upload_item *it, char *to, int64_t at, size_t n);

#endif
