/* SPDX-License-Identifier: MIT */
/* sample.h - one token from logits: greedy, or at a temperature, by counter-based
 * draws. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdint.h>

#include "rng.h"

struct sample {
    double temperature; /* 0: greedy, the first index of the largest */
    double top_p;       /* 1: all */
};

/* sample_token picks from logits [V] (host, f32); E_FORMAT when one is NaN. */
int sample_token(int32_t *token, const float *logits, int64_t vocab, struct sample s,
                 struct rng *rng);

#endif
