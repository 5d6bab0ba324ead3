/* SPDX-License-Identifier: MIT */
/* binpack.c - a counting sort, and a stack of bins for each amount of free space.
 *
 * "The least space that holds it" is the next set bit in a map of the amounts for which
 * some bin exists; a second map over the words of the first skips empty regions, so a
 * step touches a handful of words whatever the number of bins. */
#include "binpack.h"

#include <string.h>

#include "err.h"
#include "mem.h"

/* An item to be placed: the sort leaves its length beside its number, so that the items
 * are read in the order of memory. */
struct item {
    int32_t number, length;
};

struct space {
    int32_t capacity;
    int32_t *top;    // [capacity + 1] last bin with this much space, -1: none
    int32_t *below;  // [bins] the bin under it on the stack
    uint64_t *map;   // bit s: top[s] >= 0
    uint64_t *words; // bit w: map[w] != 0
};

static int32_t words_of(int32_t bits)
{
    return bits / 64 + 1;
}

/* The least space of at least `want` that some bin has, -1: none. */
static inline int32_t space_find(const struct space *s, int32_t want)
{
    int32_t w = want / 64, last = words_of(words_of(s->capacity));
    uint64_t word = s->map[w] & (~(uint64_t)0 << (want % 64));
    if (word == 0) {
        int32_t v = ++w / 64;
        uint64_t some = v < last ? s->words[v] & (~(uint64_t)0 << (w % 64)) : 0;
        while (some == 0) {
            if (++v >= last)
                return -1;
            some = s->words[v];
        }
        w = v * 64 + __builtin_ctzll(some);
        word = s->map[w];
    }
    return w * 64 + __builtin_ctzll(word);
}

static inline void space_push(struct space *s, int32_t amount, int32_t bin)
{
    s->below[bin] = s->top[amount];
    s->top[amount] = bin;
    s->map[amount / 64] |= (uint64_t)1 << (amount % 64);
    s->words[amount / 4096] |= (uint64_t)1 << (amount / 64 % 64);
}

static inline int32_t space_pop(struct space *s, int32_t amount)
{
    int32_t bin = s->top[amount];
    s->top[amount] = s->below[bin];
    if (s->top[amount] < 0) {
        uint64_t *word = &s->map[amount / 64];
        *word &= ~((uint64_t)1 << (amount % 64));
        if (*word == 0)
            s->words[amount / 4096] &= ~((uint64_t)1 << (amount / 64 % 64));
    }
    return bin;
}

static int space_open(struct space *s, int32_t capacity, int32_t n)
{
    int32_t words = words_of(capacity);
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

/* item[] = the items from the longest to the shortest, equal ones in their order. */
static int sort(struct item *item, const int32_t *length, int32_t n, int32_t capacity)
{
    int32_t *start = mem_zero((size_t)capacity + 2, sizeof *start);
    if (!start)
        return E_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        if (length[i] < 1 || length[i] > capacity)
            bug("item %d of length %d, capacity %d", i, length[i], capacity);
        start[capacity - length[i] + 1]++;
    }
    for (int32_t k = 0; k < capacity; k++)
        start[k + 1] += start[k];
    for (int32_t i = 0; i < n; i++)
        item[start[capacity - length[i]]++] = (struct item){i, length[i]};
    mem_free(start);
    return 0;
}

static int32_t place(struct space *s, int32_t *bin, const struct item *item, int32_t n)
{
    int32_t bins = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t amount = space_find(s, item[k].length);
        int32_t b = amount < 0 ? bins++ : space_pop(s, amount);
        int32_t left = (amount < 0 ? s->capacity : amount) - item[k].length;
        bin[item[k].number] = b;
        if (left > 0)
            space_push(s, left, b);
    }
    return bins;
}

/* What is left in each bin is where it lies at the end; full ones lie nowhere. */
static void tell_space(int32_t *space, const struct space *s, int32_t bins)
{
    memset(space, 0, sizeof *space * (size_t)bins);
    for (int32_t a = space_find(s, 0); a >= 0;
         a = a < s->capacity ? space_find(s, a + 1) : -1)
        for (int32_t b = s->top[a]; b >= 0; b = s->below[b])
            space[b] = a;
}

int binpack(int32_t *bin, int32_t *space, int32_t *bins, const int32_t *length,
            int32_t n, int32_t capacity)
{
    struct space s = {0};
    *bins = 0;
    if (n == 0)
        return 0;
    struct item *item = mem_alloc(sizeof *item * (size_t)n);
    int rc = item ? space_open(&s, capacity, n) : E_MEMORY;
    if (rc == 0)
        rc = sort(item, length, n, capacity);
    if (rc == 0) {
        *bins = place(&s, bin, item, n);
        tell_space(space, &s, *bins);
    }
    space_close(&s);
    mem_free(item);
    return rc;
}
