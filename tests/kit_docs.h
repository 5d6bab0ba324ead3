/* SPDX-License-Identifier: MIT */
/* kit_docs.h - made-up documents whose lengths are spread like those of conversations:
 * the one generator behind every density and speed that is quoted for draft-pack.
 *
 * Lengths are log-normal with sigma 1, of a given mean (before they are cut to 1 ..
 * KIT_DOCS_LONGEST): many short ones and a long tail. */
#ifndef KIT_DOCS_H
#define KIT_DOCS_H

#include <stdint.h>

#include "rng.h"

enum { KIT_DOCS_LONGEST = 32768, KIT_DOCS_VOCAB = 151936 };

/* kit_docs_length draws the length of the next document. */
int32_t kit_docs_length(struct rng *r, double mean);

/* kit_docs_fill makes a document of n tokens: ids below KIT_DOCS_VOCAB, and a mask of
 * turns, each a question (0) and an answer (1). */
void kit_docs_fill(struct rng *r, int32_t *ids, uint8_t *mask, int32_t n);

#endif
