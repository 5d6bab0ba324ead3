/* SPDX-License-Identifier: MIT */
/* verify.h - one pass of the target over a known token and what was proposed to follow.
 *
 * Where the proposals come from does not matter: whatever agrees with the target's own
 * choice is kept, and the target's choice after it comes on top, so every pass gives at
 * least one token and the result is the target's greedy text. */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdint.h>

#include "lane.h"

/* verify_pass runs id[0..n), n <= lane.block: the anchor, which stands next in the
 * sequence, and n - 1 proposals.  On return id[1 .. accepted] are the proposals kept
 * and id[accepted + 1] (id has room for n + 1) the target's own choice behind them; the
 * sequence is cut back to the anchor and what was kept, whose taps are the first rows
 * of lane.aux.  Returns accepted, or a negative code. */
int64_t verify_pass(struct lane *l, int32_t *id, int64_t n);

/* verify_prefix counts the leading proposals of id[1..n) that agree: best[i] is the
 * target's choice after id[i]   (Chen et al., arXiv 2302.01318, at temperature 0). */
int64_t verify_prefix(const int32_t *id, const int32_t *best, int64_t n);

#endif
