/* SPDX-License-Identifier: MIT */
/* tie.c - the target's scores at one place of a text. */
#include "tie.h"

#include "err.h"
#include "mem.h"

#include <math.h>

/* run feeds n tokens in pieces; `last` are the final ones, whose scores are kept. */
static int run(struct lane *l, const int32_t *ids, int64_t n, bool last)
{
    for (int64_t at = 0; at < n; at += LANE_ROWS) {
        int64_t left = n - at, piece = left < LANE_ROWS ? left : LANE_ROWS;
        TRY(lane_forward(l, ids + at, piece, last && piece == left));
    }
    return 0;
}

int tie_gap(struct lane *l, const struct prompt *q, const struct decoded *want,
            int64_t at, int32_t other, double *gap)
{
    int64_t vocab = target_config(l->target)->vocab;
    float *score = mem_alloc((size_t)vocab * sizeof *score);
    double most = 0;
    int rc = score ? 0 : E_MEMORY;
    lane_reset(l);
    if (rc == 0)
        rc = run(l, q->ids, q->n, at == 0);
    if (rc == 0)
        rc = run(l, want->ids, at, true);
    if (rc == 0)
        rc = lane_logits(l, score);
    for (int64_t i = 0; rc == 0 && i < vocab; i++)
        most = fmax(most, fabs((double)score[i]));
    if (rc == 0)
        *gap = fabs((double)score[want->ids[at]] - (double)score[other]) / most;
    mem_free(score);
    return rc;
}
