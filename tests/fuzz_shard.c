/* SPDX-License-Identifier: MIT */
/* fuzz_shard.c - any bytes as a shard file, a stream, or a file's name.
 *
 * The headers' checksums are repaired first in every other input, since no mutation
 * would get past them; what they then say is taken at its word. */
#include "shard_source.h"

#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "hash.h"
#include "mem.h"

enum { SUM_AT = 40, SUM_BYTES = HASH_TEXT - 1 };

static void repair_one(char *p, size_t size)
{
    char text[HASH_TEXT];
    memset(p + SUM_AT, '0', SUM_BYTES);
    memcpy(p + SUM_AT, hash_text(text, hash_bytes(p, size)), SUM_BYTES);
}

static void repair(char *p, size_t size)
{
    struct st_header h;
    size_t n;
    while (size > SUM_AT + SUM_BYTES && st_length(p, size, &n) == 0 && n <= size - 8 &&
           n > SUM_AT + SUM_BYTES && shard_head_is(p, size)) {
        repair_one(p, 8 + n);
        if (st_header_parse(&h, p + 8, n) < 0)
            return;
        size_t used = 8 + n + h.data_bytes;
        st_header_drop(&h);
        if (used < n || used > size)
            return;
        p += used;
        size -= used;
    }
}

/* What is handed out is covered by its mapping or buffer and agrees with its header. */
static void check(const struct shard_slot *s)
{
    must(!s->head.id.end && s->head.id.rows > 0);
    for (int64_t i = 0; i < s->head.st.tensors; i++) {
        const struct st_tensor *t = &s->head.st.tensor[i];
        const uint8_t *p = (const uint8_t *)s->data + t->begin;
        volatile uint8_t sum = 0;
        must((uintptr_t)p % st_type_size(t->type) == 0);
        for (size_t b = 0; b < t->end - t->begin; b++)
            sum = (uint8_t)(sum + p[b]);
    }
}

static void read_all(const char *path)
{
    struct shard_sources list = {0};
    struct shard_slot slot = {0};
    int rc = shard_source_add(&list, path, -1);
    for (int64_t i = 0; i < list.n && rc >= 0; i++)
        while ((rc = shard_source_next(&list.at[i], &slot, true)) > 0)
            check(&slot);
    must(rc == 0 || rc == E_FORMAT || rc == E_CONFIG);
    shard_slot_drop(&slot);
    shard_source_drop(&list);
}

/* A name that is taken for ours is exactly the one that would be written. */
static void read_name(const uint8_t *data, size_t size)
{
    char text[80] = {0};
    struct shard_id id;
    struct buf again = {0};
    size_t len;
    memcpy(text, data, size < sizeof text ? size : sizeof text - 1);
    if (!shard_name_parse(&id, &len, text))
        return;
    char *name = mem_text(text);
    name[len] = 0;
    id.name = name;
    shard_name_add(&again, &id);
    must(strcmp(buf_text(&again), text) == 0);
    buf_drop(&again);
    mem_free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    read_name(data + 1, size - 1);
    char *copy = mem_alloc(size);
    memcpy(copy, data + 1, size - 1);
    if (data[0] % 2)
        repair(copy, size - 1);
    read_all(fuzz_file((const uint8_t *)copy, size - 1));
    mem_free(copy);
    return 0;
}
