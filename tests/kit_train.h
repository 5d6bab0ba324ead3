/* SPDX-License-Identifier: MIT */
/* kit_train.h - a tiny target and rows of hidden states, for tests of training.
 *
 * The text is a rule that a drafter can learn in a few dozen steps: in each document a
 * token is followed by 5 times itself plus 1, modulo 61.  Hidden states are made of the
 * token alone. */
#ifndef KIT_TRAIN_H
#define KIT_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "drafter.h"
#include "target.h"

enum {
    KIT_VOCAB = 96,
    KIT_MASK = 95,
    KIT_HIDDEN = 64,
    KIT_LENGTH = 96, /* S */
    KIT_TAPS = 2
};

/* kit_target writes a checkpoint folder of random weights; returns its digest. */
uint64_t kit_target(const char *dir);

struct kit_rows {
    int64_t rows, per_shard; /* per_shard 0: all in one */
    bool fp8;
    int64_t bare; /* this row has no supervised token; -1: none */
    int64_t bad;  /* this row has a NaN in its hidden states; -1: none */
    uint64_t target, seed;
    const char *taps, *stage;
};

/* kit_hidden writes a folder of hidden states; zero fields but rows, bare, bad take
 * sensible values. */
void kit_hidden(const char *dir, const struct kit_rows *k);

/* kit_drafter is a drafter of two layers that fits the two, one of them sliding. */
struct drafter_config kit_drafter(int64_t block);

/* A device with the target's two matrices. */
struct kit_dev {
    struct par *par;
    struct dev *dev;
    struct target *target;
};
void kit_dev_open(struct kit_dev *k, const char *target, int threads);
void kit_dev_close(struct kit_dev *k);

#endif
