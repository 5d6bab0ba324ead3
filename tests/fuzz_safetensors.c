/* SPDX-License-Identifier: MIT */
/* fuzz_safetensors.c - any bytes as a safetensors file: refused, or readable to the
 * last byte and the same after being written again. */
#include "safetensors.h"

#include <string.h>

#include "err.h"
#include "fuzz.h"

/* Every byte of every tensor lies in the mapping, where its type can be read. */
static void touch(const struct st_file *f)
{
    uint64_t covered = 0;
    for (int64_t i = 0; i < f->header.tensors; i++) {
        const struct st_tensor *t = &f->header.tensor[i];
        const uint8_t *p = st_data(f, t);
        size_t bytes = (size_t)st_count(t) * st_type_size(t->type);
        volatile uint8_t sum = 0;
        must(bytes == t->end - t->begin);
        must((uintptr_t)p % st_type_size(t->type) == 0);
        for (size_t b = 0; b < bytes; b++)
            sum = (uint8_t)(sum + p[b]);
        covered += bytes;
    }
    must(covered == f->header.data_bytes);
    must(f->header.header_bytes + covered == f->map.size);
}

static void write_again(const struct st_header *h)
{
    struct buf out = {0};
    struct st_header again;
    must(st_header_write(&out, h->tensor, h->tensors, (const char *const *)h->meta,
                         h->metas, 8) == 0);
    must(st_header_parse(&again, out.p + 8, out.len - 8) == 0);
    must(again.tensors == h->tensors && again.metas == h->metas);
    must(again.data_bytes == h->data_bytes);
    for (int64_t i = 0; i < 2 * h->metas; i++)
        must(strcmp(again.meta[i], h->meta[i]) == 0);
    for (int64_t i = 0; i < h->tensors; i++) {
        const struct st_tensor *a = &again.tensor[i], *b = &h->tensor[i];
        must(strcmp(a->name, b->name) == 0 && a->begin == b->begin);
        must(a->rank == b->rank && memcmp(a->dim, b->dim, sizeof a->dim) == 0);
    }
    st_header_drop(&again);
    buf_drop(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_file f;
    int rc = st_open(&f, fuzz_file(data, size));
    must(rc == 0 || rc == E_FORMAT);
    if (rc < 0)
        return 0;
    touch(&f);
    /* A writer aligns the data to 8 bytes; an input need not. */
    if (f.header.header_bytes % 8 == 0)
        write_again(&f.header);
    st_close(&f);
    return 0;
}
