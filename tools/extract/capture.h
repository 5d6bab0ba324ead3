/* SPDX-License-Identifier: MIT */
/* capture.h - the target runs over packed rows and their tapped states are kept.
 *
 * Each document sees itself alone.  A row is computed whole, or in pieces through a
 * cache of keys and values where that would take more memory than allowed; rows of a
 * target that streams, a group at a time.  On the CPU the bits are the same.
 *
 * Whole rows may leave their states on the device, in a set of tensors of their own,
 * for another thread to bring while the next row is computed. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "cache.h"
#include "fit.h"
#include "hidden.h"
#include "target.h"
#include "taps.h"

/* What a row leaves on the device. */
struct capture_set {
    struct tensor aux, quant, scale, last;
};

struct capture {
    struct target *target; /* borrowed */
    struct dev *dev;       /* borrowed */
    const struct taps *taps;
    struct hidden_form form;
    struct fit fit;
    struct arena work, out;
    struct cache cache; /* open when fit.piece < form.length */
    struct capture_set set[FIT_GROUP];
    struct target_pass pass[FIT_GROUP];
    int32_t *ids, *pos, *lo, *hi; /* [group, S] */
};

/* capture_open makes the room for rows that was planned with this form and target; its
 * tables are not looked at. */
int capture_open(struct capture *c, struct target *t, struct dev *d,
                 const struct taps *taps, const struct hidden_form *form,
                 const struct fit *fit);
void capture_close(struct capture *c);

/* capture_bytes is what the states of that many rows, or pieces, take on the device. */
size_t capture_bytes(const struct hidden_form *f, int64_t tokens, int sets, int group);

/* capture_rows fills aux, scale and last of n rows, at most fit.group, whose text is
 * there.  An id outside the vocabulary is E_FORMAT naming row and token.  Where states
 * are left on the device a row's set must be free: checked, if it was used before. */
int capture_rows(struct capture *c, struct hidden_row *const *row, int n);

/* capture_check brings what was left, gives padding zeros and looks at every value: a
 * NaN or infinity, a document whose tap is zero throughout are E_FORMAT naming row, tap
 * and token.  Any thread may call it while the next row is computed. */
int capture_check(const struct capture *c, struct hidden_row *r);

#endif
