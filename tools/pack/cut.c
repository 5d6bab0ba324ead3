/* SPDX-License-Identifier: MIT */
/* cut.c - one document's pieces, one after another. */
#include "cut.h"

#include <stdbool.h>
#include <string.h>

#include "err.h"

int cut_parse(enum cut_how *out, const char *text)
{
    static const char *const name[] = {"split", "cut", "drop"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, name[i]) == 0) {
            *out = (enum cut_how)i;
            return 0;
        }
    }
    return err_set(E_USAGE, "split, cut or drop, not \"%s\"", text);
}

void cut_begin(struct cut *c, int64_t tokens)
{
    c->tokens = tokens;
    c->at = c->n = c->unsupervised = 0;
}

int cut_next(struct cut *c)
{
    int64_t at = c->at + c->n, left = c->tokens - at;
    bool longer = c->tokens > c->length;
    if (left == 0 || (longer && (c->how == CUT_DROP || (c->how == CUT_CUT && at > 0))))
        return 0;
    c->at = at;
    c->n = left < c->length ? left : c->length;
    c->unsupervised = at == 0 ? 0 : c->block < c->n ? c->block : c->n;
    return 1;
}
