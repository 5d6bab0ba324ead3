/* SPDX-License-Identifier: MIT */
/* limits.c - a table of ranges. */
#include "limits.h"

#include <stddef.h>

#include "err.h"

int limits_check(const struct limits *l)
{
    const struct {
        const char *name;
        int64_t value, low, high;
    } all[] = {
        {"connections", l->connections, 1, 4096},
        {"part-size", l->piece, 256, 5LL << 30}, // S3 takes parts of 5 GiB
        {"memory", l->memory, 1, 1LL << 50},
        {"rate", l->rate, 0, 1LL << 50},
        {"retries", l->retries, 0, 1000},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value < all[i].low || all[i].value > all[i].high)
            return err_set(E_USAGE, "option --%s: %lld to %lld, not %lld", all[i].name,
                           (long long)all[i].low, (long long)all[i].high,
                           (long long)all[i].value);
    if (l->stall >= 0.1 && l->stall <= 86400)
        return 0;
    return err_set(E_USAGE, "option --stall: 0.1 to 86400 seconds, not %g", l->stall);
}
