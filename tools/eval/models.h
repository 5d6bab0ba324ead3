/* SPDX-License-Identifier: MIT */
/* models.h - which target and drafter, and whether they belong together. */
#ifndef MODELS_H
#define MODELS_H

#include "hash.h"

struct models {
    char *drafter_dir;       /* owned; NULL: no drafter */
    char target[HASH_TEXT];  /* digests as text */
    char drafter[HASH_TEXT]; /* "" without */
};

/* models_find reads both checkpoints' headers.  drafter (NULL or "": none) is a
 * checkpoint or a run of draft-train, whose newest checkpoint is taken.  A drafter
 * whose metadata name another target is E_FORMAT; published ones name none. */
int models_find(struct models *m, const char *target, const char *drafter);
void models_drop(struct models *m); /* zero struct is fine */

#endif
