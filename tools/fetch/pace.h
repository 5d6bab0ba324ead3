/* SPDX-License-Identifier: MIT */
/* pace.h - how many requests at a time, and how many bytes a second.
 *
 * The limit on requests in flight grows while that brings more, and stays where it does
 * not; a server that asks for less halves it.  What a round has brought is measured in
 * bytes plus a fixed amount a request, so that small objects count too.
 *
 * A rate is kept by starting requests late: a bucket is filled at that rate, and a
 * request whose bytes it does not hold may start only when it holds something again. */
#ifndef PACE_H
#define PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    int limit, most;     /* requests in flight: now, ever */
    int before;          /* the limit that brought `best` */
    double best;         /* units a second, 0: not known */
    double done;         /* units in this round */
    double begun;        /* when it began */
    int rounds;          /* to wait before the next try */
    bool full;           /* the limit was reached in this round */
    double slowed;       /* when a server last asked for less */
    double rate;         /* bytes a second, 0: any */
    double held, filled; /* the bucket: bytes in it, and when they were counted */
};

/* Times are seconds of log_now.  pace_start begins with a few requests. */
void pace_start(struct pace *p, int most, double rate, double now);

/* pace_may: may a request be started, with so many in flight?  pace_wait is how long
 * the rate forbids it, in seconds.  pace_begin counts the bytes of one that starts. */
bool pace_may(struct pace *p, int flying, double now);
double pace_wait(struct pace *p, double now);
void pace_begin(struct pace *p, int64_t bytes, double now);

/* pace_got counts a reply; pace_slow hears that a server asks for fewer requests. */
void pace_got(struct pace *p, int64_t bytes, double now);
void pace_slow(struct pace *p, double now);

#endif
