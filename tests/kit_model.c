/* SPDX-License-Identifier: MIT */
/* kit_model.c - checkpoints and golden files for the tests of networks. */
#include "kit_model.h"

#include <string.h>

#include "buf.h"
#include "kit.h"
#include "mem.h"
#include "num.h"

void kit_st_write(const char *path, const struct kit_tensor *t, int64_t n)
{
    struct st_tensor *list = mem_zero((size_t)n, sizeof *list);
    struct buf b = {0};
    ck_assert_ptr_nonnull(list);
    for (int64_t i = 0; i < n; i++) {
        list[i] = (struct st_tensor){.type = t[i].type, .rank = t[i].rank};
        list[i].name = mem_text(t[i].name);
        memcpy(list[i].dim, t[i].dim, sizeof list[i].dim);
    }
    kit_ok(st_header_write(&b, list, n, NULL, 0, 8));
    for (int64_t i = 0; i < n; i++) {
        buf_add(&b, t[i].data, (size_t)(list[i].end - list[i].begin));
        mem_free(list[i].name);
    }
    kit_ok(buf_check(&b));
    kit_write(path, b.p, b.len);
    buf_drop(&b);
    mem_free(list);
}

const void *kit_golden(const struct st_file *f, const char *name, enum st_type type,
                       int64_t *n)
{
    const struct st_tensor *t = st_find(&f->header, name);
    ck_assert_msg(t && t->type == type, "%s: no %s of this type", f->path, name);
    if (n)
        *n = st_count(t);
    return st_data(f, t);
}

void kit_bf16(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = num_bf16_f32(num_f32_bf16(x[i]));
}

struct tensor kit_tensor_new(enum dtype type, int rank, const int64_t *dim)
{
    struct tensor t = tensor_of(NULL, type, rank, dim);
    t.data = mem_zero(tensor_bytes(&t), 1);
    ck_assert_ptr_nonnull(t.data);
    return t;
}

void kit_tensor_free(struct tensor *t)
{
    mem_free(t->data);
    t->data = NULL;
}

void kit_arena(struct arena *a, struct dev *d, size_t bytes)
{
    kit_ok(arena_open(a, d, "test", bytes));
    if (bytes)
        memset(a->base, 0xff, bytes);
}

void kit_arena_spent(struct arena *a)
{
    ck_assert_uint_eq(a->used, 0);
    ck_assert_uint_eq(a->high, a->size);
    arena_close(a);
}
