/* SPDX-License-Identifier: MIT */
/* pace.c - growing by half while it pays; a try that does not pay is taken back, and
 * the next one waits. */
#include "pace.h"

enum { FIRST = 16, REST = 16 };

static const double REQUEST = 256 << 10; // what a request counts, in bytes
static const double ROUND = 0.25;        // seconds, at least
static const double PAYS = 1.05;         // of what came before
static const double SLOWED = 1;          // seconds in which a server is heard once

void pace_start(struct pace *p, int most, double rate, double now)
{
    *p = (struct pace){.limit = most < FIRST ? most : FIRST,
                       .most = most,
                       .begun = now,
                       .rate = rate,
                       .filled = now};
    p->before = p->limit;
}

static void grow(struct pace *p)
{
    int more = p->limit / 2 > 1 ? p->limit / 2 : 1;
    p->before = p->limit;
    p->limit = p->limit + more < p->most ? p->limit + more : p->most;
}

/* A round is over: was the last step worth it? */
static void judge(struct pace *p, double now)
{
    double got = p->done / (now - p->begun);
    bool pays = got > p->best * PAYS;
    if (p->rounds > 0) {
        p->rounds--;
        p->best = (p->best + got) / 2; // what is usual now
    } else if (pays || p->limit == p->before) {
        p->best = got;
        if (p->full)
            grow(p);
    } else {
        p->limit = p->before;
        p->rounds = REST;
    }
    p->done = 0;
    p->begun = now;
    p->full = false;
}

void pace_got(struct pace *p, int64_t bytes, double now)
{
    p->done += REQUEST + (double)bytes;
    if (now - p->begun >= ROUND)
        judge(p, now);
}

void pace_slow(struct pace *p, double now)
{
    if (now - p->slowed < SLOWED)
        return;
    p->slowed = now;
    p->limit = p->limit > 1 ? p->limit / 2 : 1;
    p->before = p->limit;
    p->best = p->done = 0;
    p->begun = now;
    p->rounds = REST;
}

bool pace_may(struct pace *p, int flying, double now)
{
    if (flying >= p->limit) {
        p->full = true;
        return false;
    }
    return pace_wait(p, now) <= 0;
}

double pace_wait(struct pace *p, double now)
{
    if (p->rate <= 0)
        return 0;
    p->held += (now - p->filled) * p->rate;
    p->filled = now;
    if (p->held > p->rate / 4) // no more than a quarter of a second saved up
        p->held = p->rate / 4;
    return p->held >= 0 ? 0 : -p->held / p->rate;
}

void pace_begin(struct pace *p, int64_t bytes, double now)
{
    pace_wait(p, now);
    p->held -= (double)bytes;
}
