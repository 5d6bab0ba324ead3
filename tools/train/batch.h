/* SPDX-License-Identifier: MIT */
/* batch.h - from a row of the shards to what the drafter is asked.
 *
 * Draws the anchors, lays out blocks, spans and labels on the host, and brings the
 * hidden states to the device.  All room is made once, for the largest row. */
#ifndef BATCH_H
#define BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "dev.h"
#include "drafter.h"
#include "intake.h"
#include "metrics.h"

struct batch {
    int64_t length, hidden, taps; /* S, H, K */
    int64_t anchors, block, vocab, window;
    int32_t mask_id;
    double gamma;
    uint64_t seed;
    bool fp8; /* hidden states are stored as e4m3 */
    struct arena arena;
    struct tensor states, stored, scale; /* device: bf16 [S,K*H]; fp8 and its scales */
    int32_t *host;                       /* owns all arrays below */
    int32_t *pos, *lo, *hi;              /* [S] */
    int32_t *anchor;                     /* [A] */
    int32_t *id, *at, *block_lo, *slide, *block_hi; /* [A*B] */
    int32_t *row, *label, *hit;                     /* [A*(B-1)] */
    float *weight;                                  /* [A*(B-1)] */
    int32_t *accepted, *labelled;                   /* [A] */
};

/* What all rows of a run have in common. */
struct batch_shape {
    const struct drafter_config *config;
    int64_t length; /* the longest row */
    int64_t anchors, seed;
    double gamma;
    bool fp8;
};

/* batch_bytes is the device memory that batch_open takes. */
size_t batch_bytes(const struct batch_shape *s);
int batch_open(struct batch *b, struct dev *d, const struct batch_shape *s);
void batch_close(struct batch *b);

/* batch_lay does the host's part for the text of a row, which must hold ids of the
 * vocabulary: all of `out` but aux.  `key` is that of the draw of anchors. */
int batch_lay(struct batch *b, struct drafter_row *out, const struct anchor_row *x,
              uint64_t key);

/* batch_full makes the largest row there can be, of no text: every block there, every
 * slot labelled, id 0 throughout.  aux is b->states as they are. */
void batch_full(struct batch *b, struct drafter_row *out);

/* batch_make fills `out` (borrowed from b until the next call) from a row, with the
 * anchors of `epoch`; blocks 0 when the row has no candidates, and then the hidden
 * states stay where they are.  E_FORMAT naming file, row and record for ids outside the
 * vocabulary.  Hidden states that are not finite stick to the device; batch_blame then
 * names their record. */
int batch_make(struct batch *b, struct drafter_row *out, const struct intake_row *in,
               int64_t epoch);

/* batch_blame sets the message for a step that failed with `code` on this row. */
int batch_blame(const struct batch *b, int code, const struct intake_row *in);

/* batch_pass runs the drafter over a row: forward, loss, and when grads.data is set the
 * gradients, added to grads; what it learned is added to m.  E_FORMAT naming row and
 * record when the hidden states are not finite, naming the row when the loss is not. */
int batch_pass(struct batch *b, struct drafter *drafter, const struct intake_row *in,
               int64_t epoch, struct tensor grads, struct arena *work,
               struct metrics *m);

#endif
