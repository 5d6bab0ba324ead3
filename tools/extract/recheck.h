/* SPDX-License-Identifier: MIT */
/* recheck.h - rows of hidden shards computed again and compared. */
#ifndef RECHECK_H
#define RECHECK_H

#include <stdint.h>

#include "rig.h"

struct recheck_plan {
    char *const *path; /* hidden shards: folders or files */
    int paths;
    struct rig_options rig;
    int64_t rows; /* how many, drawn without repetition; all if there are not more */
    uint64_t seed;
};

/* recheck_rows computes random rows again as they were computed, with the layers and
 * types that the shards' metadata name, and prints on stdout what came of each. Another
 * target than theirs is E_CONFIG; a row that differs by more than rounding is E_FORMAT
 * naming row and tap, after all rows were looked at.  Between CPUs every bit agrees. */
int recheck_rows(const struct recheck_plan *p, struct log *log);

#endif
