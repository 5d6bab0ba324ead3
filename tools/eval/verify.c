/* SPDX-License-Identifier: MIT */
/* verify.c - accept the longest prefix that the target agrees with. */
#include "verify.h"

#include "err.h"
#include "mem.h"

int64_t verify_prefix(const int32_t *id, const int32_t *best, int64_t n)
{
    int64_t accepted = 0;
    while (accepted + 1 < n && id[accepted + 1] == best[accepted])
        accepted++;
    return accepted;
}

int64_t verify_pass(struct lane *l, int32_t *id, int64_t n)
{
    int64_t start = l->cache.len, accepted = 0;
    int32_t *best = mem_alloc((size_t)n * sizeof *best);
    int rc = best ? 0 : E_MEMORY;

    if (rc == 0)
        rc = lane_forward(l, id, n, n);
    if (rc == 0)
        rc = lane_best(l, best, n);
    if (rc == 0) {
        accepted = verify_prefix(id, best, n);
        id[accepted + 1] = best[accepted];
        cache_cut(&l->cache, start + accepted + 1);
    }
    mem_free(best);
    return rc < 0 ? rc : accepted;
}
