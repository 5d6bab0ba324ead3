/* SPDX-License-Identifier: MIT */
/* par.h - threads: a parallel loop and an ordered read / work / write stream.
 *
 * A pool owns threads - 1 workers; the caller is the last one.  A failure in any
 * worker stops the handing out of work; the first failure by position (not by time) and
 * its message are what the call returns, so errors do not depend on timing.  With one
 * thread everything runs in the caller, in order.  A pool serves one caller at a time.
 */
#ifndef PAR_H
#define PAR_H

#include <stdint.h>

struct par;

/* par_open starts a pool; threads 0 means one per processor that this process may use.
 * par_close joins them; NULL is fine. */
int par_open(struct par **out, int threads);
void par_close(struct par *p);
int par_processors(void);             /* that this process may use */
int par_threads(const struct par *p); /* 1 for NULL: a NULL pool runs in the caller */

/* par_for calls fn(ctx, begin, end, worker) over disjoint pieces of [0, n) of at most
 * `grain` (>= 1) items each; worker is 0 .. threads-1, unique among concurrent calls.
 * The pieces are the same for any number of threads. */
typedef int par_fn(void *ctx, int64_t begin, int64_t end, int worker);
int par_for(struct par *p, int64_t n, int64_t grain, par_fn *fn, void *ctx);

/* par_stream moves items through three steps.  read fills an item (1 = got one, 0 =
 * end, negative = failure) and is called in order, one at a time; work runs on any
 * worker; write is called in read's order, one at a time.  At most `items` (>= 1) are
 * in flight; each is one of the caller's structs item[0 .. items-1], reused in turn. */
struct par_stages {
    int (*read)(void *ctx, void *item);
    int (*work)(void *ctx, void *item, int worker);
    int (*write)(void *ctx, void *item);
};
int par_stream(struct par *p, const struct par_stages *stages, void *ctx, void **item,
               int items);

#endif
