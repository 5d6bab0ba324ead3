/* SPDX-License-Identifier: MIT */
/* models.h - which target and drafter, and whether they belong together. */
#ifndef MODELS_H
#define MODELS_H

#include "hash.h"
#include "target.h"

/* These stay where they are: the shape points to the card. */
struct models {
    struct dev card;         /* an outline */
    struct target *shape;    /* of the target: looked at, not loaded */
    char *drafter_dir;       /* owned; NULL: no drafter */
    char target[HASH_TEXT];  /* digests as text */
    char drafter[HASH_TEXT]; /* "" without */
};

/* models_find looks at both checkpoints for a device, which it does not open, and finds
 * all that is wrong with them and between them; `head` as for target_outline.  drafter
 * (NULL or "": none) is a checkpoint or a run of draft-train, whose newest checkpoint
 * is taken.  A drafter whose metadata name another target is E_FORMAT; published ones
 * name none. */
int models_find(struct models *m, const char *device, const char *target,
                enum target_head head, const char *drafter);
/* models_fit is E_CONFIG when the target does not fit in the memory that a device has:
 * decoding needs all layers at every token, so none are brought one by one. */
int models_fit(const struct models *m, size_t available);
void models_drop(struct models *m); /* zero struct is fine */

#endif
