/* SPDX-License-Identifier: MIT */
/* transfer.h - remote objects into temporaries, many pieces at a time.
 *
 * Threads of event loops take pieces from one queue, assemble each in a buffer, check
 * it, and write it with one call.  The caller's thread hears of every object that has
 * ended, puts groups of them in place and reports, while the loops go on. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "object.h"
#include "place.h"
#include "scheme.h"

struct transfer_rules {
    int threads;     /* event loops */
    int connections; /* requests in flight at most, over all loops */
    int retries;     /* of a piece */
    int64_t piece;   /* bytes */
    int64_t memory;  /* bytes of buffers */
    struct http_rules http;
};

/* What has come so far. */
struct transfer_state {
    int64_t bytes;   /* of pieces that arrived */
    int64_t wasted;  /* received, but not used: of attempts that failed */
    int64_t retries; /* attempts after the first ones */
    int64_t flying;  /* requests in flight */
};

/* Called in the thread of transfer_run.  ended: an object is whole in its temporary
 * (code 0), or it failed (`why`).  tick: from time to time.  A failure ends the run. */
struct transfer_user {
    void *ctx;
    int (*ended)(void *ctx, int64_t number, uint64_t sum, int code, const char *why);
    int (*tick)(void *ctx, const struct transfer_state *state);
};

/* transfer_run fetches the objects of `list` that `wanted` marks into temporaries of
 * `place`, numbered as in the list.  Returns when all have ended, or E_AGAIN when a
 * signal stopped it; `state` then says what came. */
int transfer_run(const struct objects *list, const bool *wanted,
                 const struct place *place, const struct transfer_rules *rules,
                 const struct transfer_user *user, struct transfer_state *state);

#endif
