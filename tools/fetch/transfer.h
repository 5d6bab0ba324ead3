/* SPDX-License-Identifier: MIT */
/* transfer.h - remote objects into temporaries, many pieces at a time.
 *
 * Threads of event loops take pieces from one queue, gather what comes of each in a
 * window from a pool, check it, and write a window with one call.  The caller's thread
 * hears of every object that has ended, puts groups of them in place and reports, while
 * the loops go on.  It also opens the files of large objects, which may mean to check
 * what an earlier run left.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "object.h"
#include "place.h"
#include "scheme.h"

enum { TRANSFER_WINDOW = 256 << 10 }; /* bytes */

struct transfer_rules {
    int threads;     /* event loops */
    int connections; /* requests in flight at most, over all loops */
    int retries;     /* of a piece */
    int64_t piece;   /* bytes */
    int64_t memory;  /* bytes of buffers */
    double rate;     /* bytes a second, 0: any */
    struct http_rules http;
};

/* What has come so far. */
struct transfer_state {
    int64_t bytes;               /* of pieces that are there */
    int64_t kept;                /* of these, from an earlier run */
    int64_t wasted;              /* received, but not used: of attempts that failed */
    int64_t retries;             /* attempts after the first ones */
    int64_t flying;              /* requests in flight */
    int64_t limit;               /* of these, now */
    const struct object *oldest; /* longest on its way, NULL: none is */
    double oldest_done;          /* the share of it that is there */
};

/* An object that has ended: whole in a temporary, or failed. */
struct transfer_end {
    int64_t number; /* in the list */
    int64_t size;
    uint64_t sum;     /* CRC-64/NVME */
    const char *temp; /* of place.h */
    int code;         /* 0, or why it failed: */
    const char *why;
    const char *unchecked; /* why it could not be checked, or NULL */
};

/* Called in the thread of transfer_run: for each object, and from time to time.  A
 * failure ends the run. */
struct transfer_user {
    void *ctx;
    int (*ended)(void *ctx, const struct transfer_end *end);
    int (*tick)(void *ctx, const struct transfer_state *state);
};

/* transfer_run fetches the objects of `list` that `wanted` marks into temporaries of
 * `place`.  Returns when all have ended, or when a signal has set tool_stop; `state`
 * then says what came.  E_REMOTE: a server was silent for so long that the rest was not
 * tried. */
int transfer_run(const struct objects *list, const bool *wanted,
                 const struct place *place, const struct transfer_rules *rules,
                 const struct transfer_user *user, struct transfer_state *state);

#endif
