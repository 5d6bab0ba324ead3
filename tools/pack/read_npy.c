/* SPDX-License-Identifier: MIT */
/* read_npy.c - the header says what tokens.c has to do. */
#include "read_npy.h"

#include "err.h"
#include "mem.h"
#include "npy.h"
#include "tokens.h"

static int read_head(struct npy *h, struct inflow *in)
{
    for (;;) {
        int got = npy_head(h, buf_text(&in->have), in->have.len);
        if (got < 0)
            return err_wrap(got, "%s", in->name);
        if (got > 0)
            return 0;
        got = inflow_more(in, 4096);
        TRY(got);
        if (got == 0)
            return err_set(E_FORMAT, "%s: cut inside the header", in->name);
    }
}

static int plan(struct tokens *t, const struct npy *h, const struct read_rules *rules,
                const char *name)
{
    *t = (struct tokens){.type = h->type, .left = h->dim[0] * h->dim[1]};
    if (h->rank == 1)
        return tokens_ends(t, rules, name);
    t->row = h->dim[1];
    if (rules->separator >= 0)
        return err_set(E_USAGE, "%s: a matrix has a document a row, and no --separator",
                       name);
    if (t->row == 0 && h->dim[0] > 0)
        return err_set(E_FORMAT, "%s: rows of no tokens", name);
    return 0;
}

int read_npy_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    struct npy h = {0};
    struct tokens t;
    TRY(read_head(&h, in));
    TRY(plan(&t, &h, rules, in->name));
    inflow_take(in, h.header);
    struct tokens *at = *state = mem_alloc(sizeof *at);
    if (!at)
        return E_MEMORY;
    *at = t;
    return 0;
}
