/* SPDX-License-Identifier: MIT */
/* rng.h - counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011).
 *
 * A draw is a pure function of (key, counter): no state to save, nothing that depends
 * on order, thread or machine.  rng_key folds any tuple that names a draw (seed, epoch,
 * document ...) into a key; the counter then numbers the draws under that key. */
#ifndef RNG_H
#define RNG_H

#include <stdint.h>

struct rng {
    uint64_t key;
    uint64_t next; /* draws taken so far, in 32-bit words */
};

/* rng_philox is the bare function: 4 words from a 64-bit key and a 128-bit counter. */
void rng_philox(uint32_t out[4], uint64_t key, uint64_t counter_lo,
                uint64_t counter_hi);

/* rng_key mixes n words into one key; the order of the words counts. */
uint64_t rng_key(const uint64_t *word, int n);
struct rng rng_new(uint64_t key);

uint32_t rng_u32(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* uniform in [0, n), unbiased; n >= 1 */
double rng_real(struct rng *r);                /* uniform in [0, 1), 53 bits */
double rng_normal(struct rng *r); /* standard normal, Box-Muller; takes 4 words */

/* rng_shuffle permutes index[0..n) (Fisher-Yates). */
void rng_shuffle(struct rng *r, int64_t *index, int64_t n);

#endif
