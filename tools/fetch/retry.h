/* SPDX-License-Identifier: MIT */
/* retry.h - which failures trying again may mend, and when. */
#ifndef RETRY_H
#define RETRY_H

#include <stdint.h>

#include "http.h"

enum verdict {
    VERDICT_NEVER, /* trying again gives the same */
    VERDICT_NOW,   /* something was learnt: at once */
    VERDICT_MOVED, /* at once, at the URL that head.location means */
    VERDICT_LATER, /* after a pause */
    VERDICT_SLOW   /* after a pause, and with fewer requests at a time */
};

/* retry_judge says what the end of a call means: 0 for a whole 2xx reply (to GET and
 * HEAD 200 or 206), else the code and message of what to say about `name`, with the
 * verdict.  `code` and `message` are what an error document says, or "". */
int retry_judge(enum verdict *out, const struct http_call *c, const char *name,
                const char *code, const char *message);

/* retry_delay is a random pause before attempt `tries` + 1 (tries >= 1): uniform in [0,
 * 0.1 * 2^tries] seconds, at most 20; but not less than what the server asked for
 * (retry_after, -1: nothing; at most a minute).  `random` is the state of the draw. */
double retry_delay(int tries, int64_t retry_after, uint64_t *random);

#endif
