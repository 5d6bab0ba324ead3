/* SPDX-License-Identifier: MIT */
/* attn.h - which slots of its own block a row sees; forward and backward agree here. */
#ifndef ATTN_H
#define ATTN_H

#include "op.h"

/* attn_slots gives the rows [lo, hi) of kb that block row t sees: those of its block at
 * slot distance below the window and, when causal, not after it. */
static inline void attn_slots(int64_t *lo, int64_t *hi, int64_t t,
                              const struct attn_block *p)
{
    int64_t first = t - t % p->block, end = first + p->block;
    *lo = p->window && t - p->window + 1 > first ? t - p->window + 1 : first;
    *hi = p->window && t + p->window < end ? t + p->window : end;
    if (p->causal)
        *hi = t + 1;
}

#endif
