/* SPDX-License-Identifier: MIT */
/* propose.h - where draft tokens come from: a drafter, or the text itself. */
#ifndef PROPOSE_H
#define PROPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

struct proposer {
    /* Fills token[0..want) with what may follow text[0..len), whose last token is the
     * anchor: the lane's sequence holds all before it.  Returns how many, or a negative
     * code. */
    int64_t (*propose)(struct lane *l, const int32_t *text, int64_t len, int64_t want,
                       int32_t *token);
    bool context; /* wants the taps of every pass (lane_feed) */
};

/* The lane's drafter: one block of mask tokens behind the anchor. */
extern const struct proposer propose_drafter;

/* The continuation of the latest earlier occurrence of the text's last three tokens;
 * nothing when there is none (prompt lookup: the baseline without any model). */
extern const struct proposer propose_lookup;

#endif
