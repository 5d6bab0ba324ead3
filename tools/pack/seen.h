/* SPDX-License-Identifier: MIT */
/* seen.h - the documents met so far, known by 128 bits of checksum each: for leaving
 * out what comes again.
 *
 * Two documents are the same when their ids and their masks are.  With 128 bits a
 * billion different documents have one chance in 10^20 that two of them are taken for
 * the same.  A set of n documents takes 16 n to 64 n bytes. */
#ifndef SEEN_H
#define SEEN_H

#include <stdint.h>

struct seen_key {
    uint64_t word[2];
};

struct seen {
    struct seen_key *at; /* owned */
    int64_t n, cap;
};

/* seen_key_of is the key of a document of n tokens. */
struct seen_key seen_key_of(const int32_t *ids, const uint8_t *mask, int64_t n);

/* seen_add puts a key into the set: 1, or 0 when it was there; E_MEMORY. */
int seen_add(struct seen *s, struct seen_key key);

void seen_drop(struct seen *s); /* a zero struct is an empty set */

#endif
