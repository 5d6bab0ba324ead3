/* SPDX-License-Identifier: MIT */
/* weights.h - a checkpoint's tensors on a device: a list of wants, then one load.
 *
 *     weights_want(&w, &t->embed, WEIGHTS_ROWS, V, H, "model.embed_tokens.weight");
 *     ...
 *     weights_match(&w, &model);        // names, shapes, types; nothing left over
 *     weights_load(&w, d, &plan);       // with arena_plan: how much it takes
 *     weights_load(&w, d, &arena);      // fills the tensors
 *     weights_drop(&w);
 *
 * A tensor that the checkpoint holds and nobody wants is refused: that is how a new
 * architecture shows itself. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "safetensors.h"

enum weights_form {
    WEIGHTS_ROWS,   /* as stored: BF16 or F32 */
    WEIGHTS_PANELS, /* as stored, packed for op_matmul */
    WEIGHTS_ACT,    /* converted to the device's activation type: norms */
    WEIGHTS_SKIP    /* must be there in this shape; is not loaded */
};

struct weights {
    struct weights_entry *entry; /* owned */
    int64_t count, capacity;
    bool failed; /* no memory; reported by weights_match */
};

/* weights_want adds a tensor to the list, [rows, cols] or, with cols 0, [rows]; `to`
 * (NULL for WEIGHTS_SKIP) is filled by weights_load and must live until then. */
void weights_want(struct weights *w, struct tensor *to, enum weights_form form,
                  int64_t rows, int64_t cols, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* weights_match finds everything in `m`, which must stay open until the load.  Missing
 * and unknown tensors and wrong shapes are E_FORMAT, types that are not supported
 * E_CONFIG; the message names folder and tensor. */
int weights_match(struct weights *w, const struct st_model *m);

/* weights_load carves the tensors from `a` in the order of the list and fills them; in
 * an arena of arena_plan it only counts. */
int weights_load(struct weights *w, struct dev *d, struct arena *a);
void weights_drop(struct weights *w);

#endif
