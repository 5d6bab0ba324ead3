/* SPDX-License-Identifier: MIT */
/* rope.h - the inverse frequencies of rotary position embedding (Su et al. 2021). */
#ifndef ROPE_H
#define ROPE_H

#include <stdint.h>

#include "dev.h"

/* rope_open carves freq [head_dim / 2] f32 from `a` and fills it: freq[i] =
 * theta^(-2i / head_dim), computed in double and rounded once. */
int rope_open(struct tensor *freq, struct arena *a, struct dev *d, int64_t head_dim,
              double theta);

#endif
