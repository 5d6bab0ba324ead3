/* SPDX-License-Identifier: MIT */
/* valid.h - loss, accuracy and acceptance length on rows that are never trained on.
 *
 * Always all rows of a folder, with the anchors of epoch 0, so that the numbers of two
 * steps, and of two runs with the same seed, compare. */
#ifndef VALID_H
#define VALID_H

#include "batch.h"

struct valid {
    struct intake in; /* reader NULL: no validation */
};

/* valid_open opens the folder; E_CONFIG when it is a stream or its hidden states are
 * not of the same target, taps and width as `of`. */
int valid_open(struct valid *v, const char *path, const struct intake_about *of);
void valid_close(struct valid *v);

/* valid_run fills m. */
int valid_run(struct valid *v, struct batch *b, struct drafter *drafter,
              struct arena *work, struct metrics *m);

#endif
