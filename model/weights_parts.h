/* SPDX-License-Identifier: MIT */
/* weights_parts.h - what the files of weights share; private to them. */
#ifndef WEIGHTS_PARTS_H
#define WEIGHTS_PARTS_H

#include "weights.h"

enum { WEIGHTS_BLOCK = 128 }; /* rows and columns that share a scale */

struct weights_entry {
    char name[96];
    enum weights_form form;
    int part, rank;
    int64_t dim[2]; /* as loaded */
    bool picked;
    struct weights_pick pick;
    struct tensor *to;
    const struct st_entry *found;
    const struct st_entry *scale; /* of F8_E4M3, else NULL */
};

/* weights_blocks is n / 128, rounded up. */
static inline int64_t weights_blocks(int64_t n)
{
    return (n + WEIGHTS_BLOCK - 1) / WEIGHTS_BLOCK;
}

/* weights_carve_panels makes room for `raw` as op_pack packs it. */
struct tensor weights_carve_panels(struct tensor raw, struct dev *d, struct arena *a);

#endif
