/* SPDX-License-Identifier: MIT */
/* propose.c - the trained proposer: spec of the loop in decode.c. */
#include "propose.h"

#include <string.h>

#include "err.h"
#include "mem.h"

static int64_t draft(struct lane *l, const int32_t *text, int64_t len, int64_t want,
                     int32_t *token)
{
    int64_t n = want + 1;
    int32_t *id = mem_alloc((size_t)n * 2 * sizeof *id), *slot = id + n;

    if (!id)
        return E_MEMORY;
    id[0] = text[len - 1];
    for (int64_t k = 1; k < n; k++)
        id[k] = (int32_t)l->drafter.config.mask_id;
    int rc = drafter_propose(&l->drafter, &l->context, id, n, len - 1, slot, &l->work);
    if (rc == 0)
        memcpy(token, slot + 1, (size_t)want * sizeof *token);
    mem_free(id);
    return rc < 0 ? rc : want;
}

const struct proposer propose_drafter = {draft, true};
