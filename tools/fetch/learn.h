/* SPDX-License-Identifier: MIT */
/* learn.h - what the replies of a bucket teach about the way to it: its region, how far
 * our clock is off, another host.
 *
 * Many requests are in flight at once and are told the same thing one after another.
 * Each remembers how much was known when it was made, so that one that was made too
 * early is simply made again, and only what is new changes anything. */
#ifndef LEARN_H
#define LEARN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "http.h"
#include "s3_list.h"
#include "texts.h"

/* What is known at some time; copied, so that it may be used without the lock. */
struct known {
    int version;
    char region[64];
    int64_t clock;    /* seconds that the server's is ahead of ours */
    const char *base; /* scheme://host that the bucket was redirected to, or NULL */
    bool foreign;     /* that is a host to which no keys are sent */
};

struct learn {
    pthread_mutex_t lock;
    struct known now;
    struct texts bases;
    int moves;
    char *home; /* scheme://host of the endpoint; "": AWS */
};

/* learn_open begins with a region and the endpoint, NULL: AWS; E_MEMORY.  learn_close
 * frees what a zero struct or an open one owns. */
int learn_open(struct learn *l, const char *region, const char *endpoint);
void learn_close(struct learn *l);

struct known learn_get(struct learn *l);

/* learn_from takes a reply that was no success to a call made with c->known = version,
 * and the error document in it.  True: the same call, made anew, will be another one.
 *
 * A region counts with status 301, 307 and 400, a clock with 403 and the code
 * RequestTimeTooSkewed (or none: HEAD), and a Location with a redirect.  Keys go to the
 * endpoint's own host and to hosts below it, on the same port; for AWS to https hosts
 * of amazonaws.com; any other host is asked without them. */
bool learn_from(struct learn *l, const struct http_call *c, const struct s3_error *e);

#endif
