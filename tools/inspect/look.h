/* SPDX-License-Identifier: MIT */
/* look.h - one function per kind of input: verifies it whole and collects facts. */
#ifndef LOOK_H
#define LOOK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpe.h"
#include "facts.h"
#include "log.h"
#include "safetensors.h"
#include "shard.h"

struct look {
    struct facts facts;
    struct log *log;
    const volatile sig_atomic_t *stop;
    bool stats;            /* also look at every number */
    int64_t row;           /* -1: all; else show this one */
    const struct bpe *bpe; /* NULL: ids are shown as numbers */
};

/* look_run reads shards from a folder, a file or "-" to the end; with a row, only that
 * row, from the shard that holds it. */
int look_run(struct look *l, char *path);

/* look_end reads the header of an end file that was named alone. */
int look_end(struct look *l, const char *path);

/* look_file reads a safetensors file of another kind, look_checkpoint a folder of
 * model, configuration and state, look_training a folder of checkpoints, all of them.
 */
int look_file(struct look *l, const char *path);
int look_checkpoint(struct look *l, const char *dir);
int look_training(struct look *l, const char *dir);

bool look_is_checkpoint(const char *dir);
bool look_is_training(const char *dir);

/* look_next_row gives the row from which training in folder `run` goes on: what the
 * state of its newest checkpoint says, 0 without any. */
int look_next_row(const char *run, int64_t *row);

#endif
