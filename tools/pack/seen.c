/* SPDX-License-Identifier: MIT */
/* seen.c - open addressing: a key lies in the first free place from the one that its
 * low bits name; the table is at most half full. */
#include "seen.h"

#include <stdbool.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "mem.h"

enum { FIRST = 1024 };

/* A free place is all zeros; a key that were so takes another form. */
static bool is_free(const struct seen_key *k)
{
    return (k->word[0] | k->word[1]) == 0;
}

struct seen_key seen_key_of(const int32_t *ids, const uint8_t *mask, int64_t n)
{
    uint64_t part[5];
    struct seen_key key;
    hash_bytes128(part, ids, (size_t)n * sizeof *ids);
    hash_bytes128(part + 2, mask, (size_t)n);
    part[4] = (uint64_t)n;
    hash_bytes128(key.word, part, sizeof part);
    key.word[1] += is_free(&key);
    return key;
}

/* The place where the key is, or where it would be. */
static struct seen_key *place(const struct seen *s, struct seen_key key)
{
    uint64_t i = key.word[0] & (uint64_t)(s->cap - 1);
    while (!is_free(&s->at[i]) && memcmp(&s->at[i], &key, sizeof key) != 0)
        i = (i + 1) & (uint64_t)(s->cap - 1);
    return &s->at[i];
}

static int grow(struct seen *s)
{
    struct seen more = {.n = s->n, .cap = s->cap ? 2 * s->cap : FIRST};
    more.at = mem_zero((size_t)more.cap, sizeof *more.at);
    if (!more.at)
        return E_MEMORY;
    for (int64_t i = 0; i < s->cap; i++)
        if (!is_free(&s->at[i]))
            *place(&more, s->at[i]) = s->at[i];
    mem_free(s->at);
    *s = more;
    return 0;
}

int seen_add(struct seen *s, struct seen_key key)
{
    if (2 * s->n >= s->cap)
        TRY(grow(s));
    struct seen_key *at = place(s, key);
    if (!is_free(at))
        return 0;
    *at = key;
    s->n++;
    return 1;
}

void seen_drop(struct seen *s)
{
    mem_free(s->at);
    *s = (struct seen){0};
}
