/* SPDX-License-Identifier: MIT */
/* tally.c - acceptance length, rates, distinct 4-grams. */
#include "tally.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "mem.h"

enum { GRAM = 4 };

struct gram {
    int32_t id[GRAM];
};

int tally_open(struct tally *t, int64_t block)
{
    *t = (struct tally){.block = block};
    t->count = mem_zero((size_t)block, sizeof *t->count);
    return t->count ? 0 : E_MEMORY;
}

void tally_close(struct tally *t)
{
    mem_free(t->count);
    *t = (struct tally){0};
}

static int by_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct gram)); // any order does
}

static int add_grams(struct tally *t, const int32_t *ids, int64_t n)
{
    int64_t grams = n - GRAM + 1;
    if (grams < 1)
        return 0;
    struct gram *g = mem_alloc((size_t)grams * sizeof *g);
    if (!g)
        return E_MEMORY;
    for (int64_t i = 0; i < grams; i++)
        memcpy(g[i].id, ids + i, sizeof *g);
    qsort(g, (size_t)grams, sizeof *g, by_ids);
    t->grams += grams;
    t->distinct++;
    for (int64_t i = 1; i < grams; i++)
        t->distinct += by_ids(&g[i - 1], &g[i]) != 0;
    mem_free(g);
    return 0;
}

int tally_add(struct tally *t, const int32_t *ids, int64_t n, const int32_t *accepted,
              int64_t rounds)
{
    t->sequences++;
    t->tokens += n;
    t->passes += rounds;
    for (int64_t i = 0; i < rounds; i++)
        t->count[accepted[i]]++;
    return add_grams(t, ids, n);
}

double tally_tau(const struct tally *t)
{
    return t->passes ? (double)(t->tokens - t->sequences) / (double)t->passes : 0;
}

double tally_rate(const struct tally *t, int64_t k)
{
    int64_t kept = 0;
    for (int64_t i = k; i < t->block; i++)
        kept += t->count[i];
    return t->passes ? (double)kept / (double)t->passes : 0;
}

double tally_distinct(const struct tally *t)
{
    return t->grams ? (double)t->distinct / (double)t->grams : 1;
}

double tally_speed(const struct tally *t)
{
    return t->seconds > 0 ? (double)t->tokens / t->seconds : 0;
}
