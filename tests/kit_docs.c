/* SPDX-License-Identifier: MIT */
/* kit_docs.c - lengths by Box-Muller, turns of 32 to 543 tokens. */
#include "kit_docs.h"

#include <math.h>
#include <string.h>

int32_t kit_docs_length(struct rng *r, double mean)
{
    double v = exp(log(mean) - 0.5 + rng_normal(r));
    return v < 1 ? 1 : v > KIT_DOCS_LONGEST ? KIT_DOCS_LONGEST : (int32_t)v;
}

void kit_docs_fill(struct rng *r, int32_t *ids, uint8_t *mask, int32_t n)
{
    int32_t at = 0;
    for (int32_t t = 0; t < n; t++)
        ids[t] = (int32_t)rng_below(r, KIT_DOCS_VOCAB);
    for (int turn = 0; at < n; turn++) {
        int32_t left = n - at, size = 32 + (int32_t)rng_below(r, 512);
        size = size < left ? size : left;
        memset(mask + at, turn % 2, (size_t)size);
        at += size;
    }
}
