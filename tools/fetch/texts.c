/* SPDX-License-Identifier: MIT */
/* texts.c - blocks in a chain, filled one after another. */
#include "texts.h"

#include <string.h>

#include "mem.h"

enum { BLOCK = 64 << 10 };

static int add_block(struct texts *t, size_t text)
{
    size_t size = sizeof(char *) + (text > BLOCK ? text : BLOCK);
    char *block = mem_alloc(size);
    if (!block)
        return -1;
    memcpy(block, &t->block, sizeof t->block);
    *t = (struct texts){block, sizeof t->block, size};
    return 0;
}

char *texts_add(struct texts *t, const char *s)
{
    size_t n = strlen(s) + 1;
    if (t->size - t->used < n && add_block(t, n) < 0)
        return NULL;
    char *to = memcpy(t->block + t->used, s, n);
    t->used += n;
    return to;
}

void texts_drop(struct texts *t)
{
    while (t->block) {
        char *before;
        memcpy(&before, t->block, sizeof before);
        mem_free(t->block);
        t->block = before;
    }
    *t = (struct texts){0};
}
