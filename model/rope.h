/* SPDX-License-Identifier: MIT */
/* rope.h - the inverse frequencies of rotary position embedding (Su et al. 2021). */
#ifndef ROPE_H
#define ROPE_H

#include <stdint.h>

#include "config.h"
#include "dev.h"

struct rope {
    double theta;
    int64_t head;   /* D, channels of a head */
    int64_t turned; /* of them turn, the rest stand still */
    struct config_scaling scaling;
};

/* rope_open carves freq [D / 2] f32 from `a` and fills it: freq[i] = theta^(-2i /
 * turned), scaled, for i < turned / 2 and 0 behind, computed in double and rounded
 * once. A frequency of 0 leaves its pair of channels as it is, exactly; which channels
 * pair is the order in which the heads' weights were loaded (target_load.c). */
int rope_open(struct tensor *freq, struct arena *a, struct dev *d,
              const struct rope *r);

#endif
