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
#include "hidden.h"
#include "target.h"
#include "taps.h"

enum {
    CAPTURE_SETS = 4,   /* rows whose states are on the device, at most */
    CAPTURE_GROUP = 16, /* rows that are computed at once, at most */
};

/* What a row leaves on the device. */
struct capture_set {
    struct tensor aux, quant, scale, last;
};

struct capture {
    struct target *target; /* borrowed */
    struct dev *dev;       /* borrowed */
    const struct taps *taps;
    struct hidden_form form;
    int64_t piece; /* tokens computed at once */
    int group;     /* rows computed at once */
    bool leaves;   /* a row's states stay on the device until capture_check */
    struct arena work, out;
    struct cache cache; /* open when piece < form.length */
    struct capture_set set[CAPTURE_GROUP];
    struct target_pass pass[CAPTURE_GROUP];
    int32_t *ids, *pos, *lo, *hi; /* [group, S] */
};

/* capture_open makes room for rows of form->length tokens in at most `memory` bytes
 * (0: any) beside the weights, and never more than a card has left; E_CONFIG names what
 * the smallest piece takes when that is more.  With `sets` above 1 (CAPTURE_SETS at
 * most) the states of so many rows are left on the device if memory allows. */
int capture_open(struct capture *c, struct target *t, struct dev *d,
                 const struct taps *taps, const struct hidden_form *form, size_t memory,
                 int sets);
void capture_close(struct capture *c);

/* capture_rows fills aux, scale and last of n rows, at most c->group, whose text is
 * there.  An id outside the vocabulary is E_FORMAT naming row and token.  Where states
 * are left on the device a row's set must be free: checked, if it was used before. */
int capture_rows(struct capture *c, struct hidden_row *const *row, int n);

/* capture_check brings what was left, gives padding zeros and looks at every value: a
 * NaN or infinity, a document whose tap is zero throughout are E_FORMAT naming row, tap
 * and token.  Any thread may call it while the next row is computed. */
int capture_check(const struct capture *c, struct hidden_row *r);

#endif
