/* SPDX-License-Identifier: MIT */
/* capture.h - the target runs over a packed row and its tapped states are kept.
 *
 * Each document sees itself alone.  A row is computed whole, or in pieces through a
 * cache of keys and values where that would take more memory than allowed; on the CPU
 * the bits are the same. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "cache.h"
#include "hash.h"
#include "hidden.h"
#include "target.h"
#include "taps.h"

struct capture {
    struct target *target; /* borrowed */
    struct dev *dev;       /* borrowed */
    const struct taps *taps;
    struct hidden_form form;
    int64_t piece; /* tokens computed at once */
    struct arena work, out;
    struct cache cache; /* open when piece < form.length */
    struct tensor aux, quant, scale, last;
    int32_t *ids, *pos, *lo, *hi; /* [S] */
};

/* capture_identify reads a target's config and digest, without its weights. */
int capture_identify(struct target_config *c, char digest[HASH_TEXT], const char *dir);

/* capture_open makes room for rows of form->length tokens in at most `memory` bytes
 * (0: any) beside the weights, and never more than a card has left; E_CONFIG names what
 * the smallest piece takes when that is more. */
int capture_open(struct capture *c, struct target *t, struct dev *d,
                 const struct taps *taps, const struct hidden_form *form,
                 size_t memory);
void capture_close(struct capture *c);

/* capture_row fills aux, scale and last of `out`, whose text is there.  An id outside
 * the vocabulary is E_FORMAT naming row and token. */
int capture_row(struct capture *c, struct hidden_row *out);

/* capture_check gives padding zeros and looks at every value: a NaN or infinity, a
 * document whose tap is zero throughout are E_FORMAT naming row, tap and token.  Any
 * thread may call it while the next row is computed. */
int capture_check(const struct capture *c, struct hidden_row *r);

#endif
