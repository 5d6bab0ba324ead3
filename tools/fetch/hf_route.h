/* SPDX-License-Identifier: MIT */
/* hf_route.h - where the hub has sent us for each file: the signed URL of a store.
 *
 * All pieces of a file go straight there, until the store refuses the URL because it
 * has grown old; then the hub is asked again.  Any thread. */
#ifndef HF_ROUTE_H
#define HF_ROUTE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

struct route {
    const void *key; /* whose; compared as it is */
    char *url;       /* owned; NULL: ask the hub */
};

struct routes {
    pthread_mutex_t lock;
    struct route *at; /* a table of `room` places, a power of two */
    int64_t n, room;
};

void hf_route_open(struct routes *r);
void hf_route_close(struct routes *r);

/* hf_route_get appends the URL for a key; false: there is none. */
bool hf_route_get(struct routes *r, const void *key, struct buf *url);

/* hf_route_set takes a redirect from `from`: relative ones are joined, E_FORMAT for
 * what may not be followed.  That there are not too many in a row is seen to by the
 * limit of retries.  hf_route_drop forgets the URL for a key if it still is `url`;
 * false when there was none. */
int hf_route_set(struct routes *r, const void *key, const char *from,
                 const char *location);
bool hf_route_drop(struct routes *r, const void *key, const char *url);

#endif
