/* SPDX-License-Identifier: MIT */
/* band.h - how large the states of a run are, and rows that do not belong to it.
 *
 * A row's size at a tap is the geometric mean of its tokens' RMS: the few tokens that
 * attention sinks into, hundreds of times the others, hardly move it.  A target's rows
 * agree in it to a few tens of percent; one that is off by a factor was damaged on its
 * way, or is of another model. */
#ifndef BAND_H
#define BAND_H

#include <stdint.h>

#include "hidden.h"
#include "taps.h"

struct band {
    double factor; /* a row may be this much larger or smaller than the run; 0: any */
    int64_t rows;
    double sum[CONFIG_TAPS];                    /* of the logarithms of sizes */
    double low[CONFIG_TAPS], high[CONFIG_TAPS]; /* of the rows: sizes */
};

/* band_size measures tap k of a row over at most 512 tokens spread through it, as
 * stored; 0: it has no token, or all are 0. */
double band_size(const struct hidden_row *r, const struct hidden_form *f, int k);

/* band_add counts a row in.  One that is outside the band around the mean of the rows
 * before is E_FORMAT, naming row, tap and both sizes. */
int band_add(struct band *b, const struct hidden_row *r, const struct hidden_form *f,
             const struct taps *taps);

/* band_mean is the geometric mean of the rows at tap k, 0 without rows. */
double band_mean(const struct band *b, int k);

#endif
