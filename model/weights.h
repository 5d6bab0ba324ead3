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
    WEIGHTS_ACT,    /* converted to the device's activation type: norms, biases */
    WEIGHTS_F32,    /* small ones in f32, stored as BF16, F16 or F32 */
    WEIGHTS_ONE,    /* as WEIGHTS_F32, with 1 added: gains stored around 0 */
    WEIGHTS_TAPS    /* as WEIGHTS_F32, [rows, cols] stored as [rows, 1, cols] */
};

struct weights {
    struct weights_entry *entry; /* owned */
    int64_t count, capacity;
    int part;    /* of what is wanted next: see weights_bring */
    bool failed; /* no memory; reported by weights_match */
    bool fp8;    /* matrices may be F8_E4M3: NAME with NAME_scale_inv [rows / 128, cols
                    / 128], rounded up, F32 or BF16; they are loaded as the bf16 nearest
                    to their product */
    const char *const *ignore; /* prefixes of tensors nobody needs, NULL at the end, or
                                  NULL */
};

/* weights_want adds a tensor to the list, [rows, cols] or, with cols 0, [rows]; `to`
 * is filled by weights_load and must live until then; NULL: the tensor must be there in
 * this form and is not loaded. */
void weights_want(struct weights *w, struct tensor *to, enum weights_form form,
                  int64_t rows, int64_t cols, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* weights_pick makes the tensor wanted last take its rows (elements, with cols 0) out
 * of a larger stored one, head by head: row i of head h is stored row h * step + offset
 * + j of `rows`, where j is i but for heads of which only the first `turned` channels
 * turn: their halves [0, turned / 2) and [turned / 2, turned) move to the starts of the
 * head's halves, where op_norm_rope pairs them, and what stands still fills up in
 * order. */
struct weights_pick {
    int64_t rows;
    int64_t width, step, offset; /* a head's rows here, there, and the first of them */
    int64_t turned;              /* width: all */
};
void weights_pick(struct weights *w, struct weights_pick p);

/* weights_match finds everything in `m`, which must stay open until the load.  Missing
 * and unknown tensors and wrong shapes are E_FORMAT, types that are not supported
 * E_CONFIG; the message names folder and tensor. */
int weights_match(struct weights *w, const struct st_model *m);

/* weights_load carves the tensors from `a` in the order of the list and fills them; in
 * an arena of arena_plan it only counts.  Host memory: a few MiB, whatever the size of
 * the tensors. */
int weights_load(struct weights *w, struct dev *d, struct arena *a);

/* weights_loading is what weights_load takes on the device beside the arena, and gives
 * back. */
size_t weights_loading(const struct weights *w);

/* A model that is too large for the device is loaded by parts, a layer each, numbered
 * from 1; part 0 stays.  weights_load_part is weights_load of one; weights_bring puts a
 * part's tensors as they are stored into `stage`, ahead (dev_put_ahead), and
 * weights_place carves them in `a` and fills them from there.  Both begin where the
 * arena stands, and only count in one of arena_plan. */
int weights_load_part(struct weights *w, struct dev *d, struct arena *a, int part);
int weights_bring(struct weights *w, struct dev *d, struct arena *stage, int part);
void weights_place(struct weights *w, struct dev *d, struct arena *a,
                   struct arena *stage, int part);
void weights_drop(struct weights *w);

/* weights_draw is weights_load without a checkpoint and without weights_match: what is
 * wanted gets normal deviates, drawn on the device (for benches). */
int weights_draw(struct weights *w, struct dev *d, struct arena *a, uint64_t seed);

#endif
