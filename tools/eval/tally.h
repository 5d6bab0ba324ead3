/* SPDX-License-Identifier: MIT */
/* tally.h - what the rounds of many sequences add up to. */
#ifndef TALLY_H
#define TALLY_H

#include <stdint.h>

struct tally {
    int64_t block;           /* B */
    int64_t sequences;       /* prompts or documents */
    int64_t tokens;          /* of the continuations, the first ones included */
    int64_t passes;          /* verify passes, the last cut block included */
    int64_t *count;          /* [B] passes that kept 0 .. B-1 proposals; owned */
    int64_t grams, distinct; /* 4-grams of the continuations; distinct within each */
    double seconds;
};

int tally_open(struct tally *t, int64_t block);
void tally_close(struct tally *t);

/* tally_add adds one sequence: its continuation ids[0..n) and the proposals kept in
 * each of its rounds. */
int tally_add(struct tally *t, const int32_t *ids, int64_t n, const int32_t *accepted,
              int64_t rounds);

/* tally_tau is tokens emitted by verify passes over passes: the first token of a
 * sequence comes from the prefill and does not count.  0 without passes. */
double tally_tau(const struct tally *t);

/* tally_rate is the share of passes that kept the proposal in slot k, 1 .. B-1
 * (cumulative, as vLLM reports it). */
double tally_rate(const struct tally *t, int64_t k);

/* tally_distinct is distinct over all 4-grams; 1 when there are none. */
double tally_distinct(const struct tally *t);

double tally_speed(const struct tally *t); /* tokens a second; 0 when not timed */

#endif
