/* SPDX-License-Identifier: MIT */
/* hash.c - a thin cover over xxHash; no other file knows its types.
 *
 * The code is taken from the header, not the library: it is then compiled for the
 * vector width of this build. */
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "err.h"
#include "mem.h"

struct hash {
    XXH3_state_t state; // 64-byte aligned, as mem_alloc gives
};

uint64_t hash_bytes(const void *p, size_t n)
{
    return XXH3_64bits(p, n);
}

void hash_bytes128(uint64_t out[2], const void *p, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(p, n);
    out[0] = h.low64;
    out[1] = h.high64;
}

struct hash *hash_open(void)
{
    struct hash *h = mem_alloc(sizeof *h);
    if (h)
        XXH3_64bits_reset(&h->state);
    return h;
}

void hash_add(struct hash *h, const void *p, size_t n)
{
    if (n > 0)
        XXH3_64bits_update(&h->state, p, n);
}

uint64_t hash_value(const struct hash *h)
{
    return XXH3_64bits_digest(&h->state);
}

void hash_close(struct hash *h)
{
    mem_free(h);
}

char *hash_text(char out[HASH_TEXT], uint64_t value)
{
    for (int i = 0; i < HASH_TEXT - 1; i++)
        out[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    out[HASH_TEXT - 1] = 0;
    return out;
}

int hash_parse(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    int n = 0;
    for (; text[n] && n < HASH_TEXT; n++) {
        char c = text[n];
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    if (n != HASH_TEXT - 1 || text[n])
        return err_set(E_FORMAT, "not a checksum of 16 hex digits: %.40s", text);
    *out = value;
    return 0;
}
