/* SPDX-License-Identifier: MIT */
/* ckpt.h - checkpoints of a run: RUN/step-00000123/, renamed into place whole.
 *
 *   model.safetensors   the drafter in bf16, names and shapes as z-lab publishes them
 *   config.json         what servers read beside it
 *   state.safetensors   f32 [count] master, m, v: all that going on takes
 *
 * Both files carry in their metadata how they were made and, as data_xxh3, a checksum
 * of their data.  RUN/latest names the newest.  Nothing in a checkpoint depends on
 * paths, threads, time, on whether the rows came from files or a stream, or on where
 * the run was interrupted.  RUN/input holds the digest of the whole input, which a
 * stream tells too late to be part of a checkpoint. */
#ifndef CKPT_H
#define CKPT_H

#include <stdint.h>

#include "drafter.h"
#include "hash.h"
#include "optimizer.h"

/* What a run is; a checkpoint of another is not gone on with. */
struct ckpt_about {
    const char *options;    /* opt_record: "name=value ..." */
    const char *taps;       /* "1,7,13" */
    char target[HASH_TEXT]; /* digest of the model */
    char input[HASH_TEXT];  /* first shard's header; "" not known: taken from RUN */
    char whole[HASH_TEXT];  /* digest of the input; "" for a stream: not compared */
    char valid[HASH_TEXT];  /* digest of the validation rows; "" none */
    char
        device[DEV_IDENTITY]; /* dev_identity, once a step has run; set before a save */
};

struct ckpt {
    const char *run;
    int64_t every, keep; /* steps between saves; how many stay, 0: all */
    struct ckpt_about about;
    int64_t step;               /* of the newest checkpoint; 0: none */
    char made_on[DEV_IDENTITY]; /* the device of the one that was loaded */
};

/* Where a run stands: `row` is the next row inside `epoch`. */
struct ckpt_place {
    int64_t step, epoch, row;
};

/* ckpt_open makes RUN, drops what an interruption left, finds the newest checkpoint and
 * sets step.  E_CONFIG, naming what differs, when it belongs to another run. */
int ckpt_open(struct ckpt *c);

/* ckpt_load puts the newest checkpoint's state on the device.  E_FORMAT when it is
 * damaged or of another shape. */
int ckpt_load(struct ckpt *c, struct optimizer *o);

/* ckpt_save writes a checkpoint, names it in RUN/latest, and removes those that are
 * neither among the newest `keep` nor the newest; those saved off the grid of `every`
 * (an interruption) go as soon as a newer one is there. */
int ckpt_save(struct ckpt *c, const struct drafter *m, const struct optimizer *o,
              const struct ckpt_place *at);

#endif
