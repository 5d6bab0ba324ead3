/* SPDX-License-Identifier: MIT */
/* kit_clock.h - where the time of a pass goes, by kinds of operations.
 *
 * While a clock is on, every operation of a target is waited for, so the whole takes
 * longer than without by what waiting costs: shares are of the sum. */
#ifndef KIT_CLOCK_H
#define KIT_CLOCK_H

#include "dev.h"

enum clock_kind {
    CLOCK_PRODUCT,   /* matmul */
    CLOCK_ATTENTION, /* attn_span */
    CLOCK_DELTA,     /* delta_mix, delta, norm_gate */
    CLOCK_ELEMENT,   /* norms, RoPE, swiglu, gates, sums */
    CLOCK_COPY,      /* gather, convert, tap, quant; to and from the host */
    CLOCK_KINDS
};

struct kit_clock {
    double seconds[CLOCK_KINDS];
};

/* kit_clock_on sets the clock to zero and puts it between d and its operations; one
 * device at a time.  kit_clock_off takes it away. */
void kit_clock_on(struct dev *d, struct kit_clock *c);
void kit_clock_off(struct dev *d);

double kit_clock_sum(const struct kit_clock *c);

#endif
