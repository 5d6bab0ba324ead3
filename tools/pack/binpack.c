/* SPDX-License-Identifier: MIT */
/* binpack.c - a counting sort, and a stack of bins for each amount of free space.
 *
 * "The least space that holds it" is the next set bit in a map of the amounts for which
 * some bin exists; a second map over the words of the first skips empty regions, so a
 * step touches a handful of words whatever the number of bins. */
#include "binpack.h"

#include <stdbool.h>
#include <string.h>

#include "err.h"
#include "mem.h"

struct space {
    int32_t capacity;
    int64_t *top;    // [capacity + 1] last bin with this much space, -1: none
    int64_t *below;  // [bins] the bin under it on the stack
    uint64_t *map;   // bit s: top[s] >= 0
    uint64_t *words; // bit w: map[w] != 0
};

static int64_t words_of(int64_t bits)
{
    return bits / 64 + 1;
}

/* The first set bit at or after `from`, -1 when there is none below `bits`. */
static int64_t next_bit(const uint64_t *map, int64_t from, int64_t bits)
{
    int64_t w = from / 64, last = words_of(bits);
    uint64_t word = w < last ? map[w] & (~(uint64_t)0 << (from % 64)) : 0;
    while (word == 0) {
        if (++w >= last)
            return -1;
        word = map[w];
    }
    return w * 64 + __builtin_ctzll(word);
}

/* The least space of at least `want` that some bin has, -1: none. */
static int64_t space_find(const struct space *s, int32_t want)
{
    int64_t w = want / 64;
    uint64_t word = s->map[w] & (~(uint64_t)0 << (want % 64));
    if (word == 0) {
        w = next_bit(s->words, w + 1, words_of(s->capacity));
        if (w < 0)
            return -1;
        word = s->map[w];
    }
    return w * 64 + __builtin_ctzll(word);
}

static void space_push(struct space *s, int64_t amount, int64_t bin)
{
    s->below[bin] = s->top[amount];
    s->top[amount] = bin;
    s->map[amount / 64] |= (uint64_t)1 << (amount % 64);
    s->words[amount / 4096] |= (uint64_t)1 << (amount / 64 % 64);
}

static int64_t space_pop(struct space *s, int64_t amount)
{
    int64_t bin = s->top[amount];
    s->top[amount] = s->below[bin];
    if (s->top[amount] < 0) {
        uint64_t *word = &s->map[amount / 64];
        *word &= ~((uint64_t)1 << (amount % 64));
        if (*word == 0)
            s->words[amount / 4096] &= ~((uint64_t)1 << (amount / 64 % 64));
    }
    return bin;
}

static int space_open(struct space *s, int32_t capacity, int64_t n)
{
    int64_t words = words_of(capacity);
    s->capacity = capacity;
    s->top = mem_alloc(sizeof *s->top * ((size_t)capacity + 1));
    s->below = mem_alloc(sizeof *s->below * (size_t)n);
    s->map = mem_zero((size_t)words, sizeof *s->map);
    s->words = mem_zero((size_t)words_of(words), sizeof *s->words);
    if (!s->top || !s->below || !s->map || !s->words)
        return E_MEMORY;
    memset(s->top, 0xff, sizeof *s->top * ((size_t)capacity + 1)); // -1
    return 0;
}

static void space_close(struct space *s)
{
    mem_free(s->top);
    mem_free(s->below);
    mem_free(s->map);
    mem_free(s->words);
}

/* order[] = the items from the longest to the shortest, equal ones in their order. */
static int sort(int64_t *order, const int32_t *length, int64_t n, int32_t capacity)
{
    int64_t *start = mem_zero((size_t)capacity + 2, sizeof *start);
    if (!start)
        return E_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        if (length[i] < 1 || length[i] > capacity)
            bug("item %lld of length %d, capacity %d", (long long)i, length[i],
                capacity);
        start[capacity - length[i] + 1]++;
    }
    for (int32_t k = 0; k < capacity; k++)
        start[k + 1] += start[k];
    for (int64_t i = 0; i < n; i++)
        order[start[capacity - length[i]]++] = i;
    mem_free(start);
    return 0;
}

static int64_t place(struct space *s, int64_t *bin, int64_t *space,
                     const int64_t *order, const int32_t *length, int64_t n)
{
    int64_t bins = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = order[k], amount = space_find(s, length[i]), b;
        if (amount < 0) {
            amount = s->capacity;
            b = bins++;
        } else {
            b = space_pop(s, amount);
        }
        bin[i] = b;
        space[b] = amount - length[i];
        if (space[b] > 0)
            space_push(s, space[b], b);
    }
    return bins;
}

int binpack(int64_t *bin, int64_t *space, int64_t *bins, const int32_t *length,
            int64_t n, int32_t capacity)
{
    struct space s = {0};
    *bins = 0;
    if (n == 0)
        return 0;
    int64_t *order = mem_alloc(sizeof *order * (size_t)n);
    int rc = order ? space_open(&s, capacity, n) : E_MEMORY;
    if (rc == 0)
        rc = sort(order, length, n, capacity);
    if (rc == 0)
        *bins = place(&s, bin, space, order, length, n);
    space_close(&s);
    mem_free(order);
    return rc;
}
