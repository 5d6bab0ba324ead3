/* SPDX-License-Identifier: MIT */
/* taps.h - which layers' states are kept, in the numbering of published drafters.
 *
 * Tap i is the residual stream after 0-based decoder layer i, before the next layer's
 * norm (z-lab/dflash; vLLM and speculators count from one: i + 1). */
#ifndef TAPS_H
#define TAPS_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"

enum { TAPS_TEXT = CONFIG_TAPS * 8 };

struct taps {
    int64_t layer[CONFIG_TAPS]; /* ascending */
    int n;
    char text[TAPS_TEXT]; /* "1,3,4": as recorded */
};

/* taps_parse reads "1,3,4"; NULL or "" spreads five taps over the layers as published
 * drafters do (config_taps).  Not ascending, repeated or beyond the target: E_CONFIG.
 * The last layer is refused, too: Hugging Face gives its state after the final norm,
 * servers before it, so that a drafter fed with it fits only one of them. */
int taps_parse(struct taps *t, const char *text, int64_t target_layers);

#endif
