/* SPDX-License-Identifier: MIT */
/* tie.h - is a token that differs from plain decoding's a tie of the target's scores?
 *
 * On the CPU a pass over a block gives each row the bits of a pass over it alone, so
 * speculative decoding equals plain decoding.  On a GPU products of another number of
 * rows round differently: where two scores are as close as that rounding, either token
 * is the target's greedy one, and from there on the texts differ. */
#ifndef TIE_H
#define TIE_H

#include "decode.h"

/* Scores are bf16 behind a network in bf16: noise of some parts in a thousand of the
 * largest.  A token that a wrong cache or span brings in is off by far more. */
#define TIE_GAP (1.0 / 32)

/* tie_gap runs the target over the prompt and the first `at` tokens of `want` and gives
 * the distance of the scores of its next token and `other`, divided by the largest
 * score's magnitude.  The lane's sequence is lost. */
int tie_gap(struct lane *l, const struct prompt *q, const struct decoded *want,
            int64_t at, int32_t other, double *gap);

#endif
