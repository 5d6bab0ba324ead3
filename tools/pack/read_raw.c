/* SPDX-License-Identifier: MIT */
/* read_raw.c - all that is to be known is in the call. */
#include "read_raw.h"

#include "err.h"
#include "mem.h"
#include "tokens.h"

int read_raw_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    struct tokens t = {.type = rules->dtype, .left = -1};
    if (t.type == INTS_NONE)
        return err_set(E_USAGE, "%s: numbers of which type?  --dtype says it",
                       in->name);
    TRY(tokens_ends(&t, rules, in->name));
    struct tokens *at = *state = mem_alloc(sizeof *at);
    if (!at)
        return E_MEMORY;
    *at = t;
    return 0;
}
