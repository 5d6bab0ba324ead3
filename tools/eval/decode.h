/* SPDX-License-Identifier: MIT */
/* decode.h - greedy speculative decoding of one prompt, and plain decoding beside it.
 *
 * A round drafts up to B - 1 tokens behind the last known one (the anchor), lets the
 * target verify them in one pass, and emits what was accepted plus the target's own
 * next token.  The text is the target's greedy text whatever is proposed. */
#ifndef DECODE_H
#define DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"
#include "prompt.h"
#include "propose.h"
#include "sample.h"

struct decode_rule {
    int64_t tokens;       /* new tokens a prompt, at most; at least 1 */
    bool ignore_stop;     /* go on behind the target's stop tokens */
    struct sample sample; /* plain decoding only */
    uint64_t seed;
};

/* What came of one prompt; owned by the caller, freed by decode_free. */
struct decoded {
    int32_t *ids; /* [n] the new tokens, a stop token included */
    int64_t n;
    int32_t *accepted; /* [rounds] proposals kept of each verify pass */
    int64_t rounds;
};

/* decode_prompt decodes with a proposer.  A round's count is that of proposals emitted:
 * what a stop token cuts off does not count. */
int decode_prompt(struct decoded *out, struct lane *l, const struct proposer *p,
                  const struct prompt *q, const struct decode_rule *rule);

/* decode_plain decodes one token a pass, greedy or sampled; draws are keyed by (seed,
 * record). */
int decode_plain(struct decoded *out, struct lane *l, const struct prompt *q,
                 const struct decode_rule *rule, int64_t record);

/* decode_stops: is `id` one of the target's stop tokens? */
bool decode_stops(const struct target_config *c, int32_t id);

void decode_free(struct decoded *d); /* zero struct is fine */

#endif
