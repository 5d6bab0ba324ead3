/* SPDX-License-Identifier: MIT */
/* phase.h - all prompts decoded in one way, several at once.
 *
 * A phase is what gets timed: the same prompts, the same number of lanes, prefill
 * included, so that speeds of two phases compare. */
#ifndef PHASE_H
#define PHASE_H

#include "decode.h"
#include "log.h"
#include "par.h"
#include "tally.h"

/* Lanes over shared weights. */
struct lanes {
    struct par *par; /* borrowed */
    struct lane *lane;
    int n;
};

/* lanes_open opens one lane a thread of `par` on the CPU, one on a GPU, and never more
 * than `most`; a single lane uses all threads itself. */
int lanes_open(struct lanes *l, struct par *par, int64_t most, const char *device,
               struct target *target, const struct drafter *drafter, int64_t capacity);
void lanes_close(struct lanes *l);

struct phase {
    const char *name;
    const struct proposer *proposer; /* NULL: plain decoding */
    const struct drafter *drafter;   /* NULL: none is needed */
    const struct prompts *prompts;
    int64_t count; /* of the prompts, the first */
    const struct decode_rule *rule;
    const struct decoded *want; /* what plain decoding gave; NULL: not known yet */
    /* results */
    struct decoded *out; /* [count], owned */
    struct tally tally;
    int64_t wrong_prompt, wrong_token; /* the first difference; prompt -1: none */
    int64_t ties; /* sequences that part from `want` at a tie (tie.h); no difference */
};

/* phase_run decodes; results are the same for any number of lanes. */
int phase_run(struct phase *p, struct lanes *l, struct log *log);
void phase_drop(struct phase *p); /* zero struct is fine */

#endif
