/* SPDX-License-Identifier: MIT */
/* eval.h - the options of draft-eval, for its three ways of working. */
#ifndef EVAL_H
#define EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tool.h"

struct eval_options {
    const char *target, *drafter, *device;
    int64_t tokens;    /* new tokens a prompt */
    int64_t prompts;   /* at most; 0: all */
    int64_t baselines; /* prompts that the baselines decode; 0: all */
    bool ignore_stop, plain, walk;
    double temperature, top_p; /* --plain only */
    int64_t seed;
    const char *output, *ids, *emit, *rounds; /* "": not wanted */
};

/* The table's options that change results, as the report records them. */
extern const struct opt eval_table[];

#endif
