/* SPDX-License-Identifier: MIT */
/* tensor.c - shapes: counting, slicing and renaming memory that others own. */
#include "tensor.h"

#include "err.h"

static const struct {
    size_t size;
    const char *name;
} kind[] = {
    [DT_U8] = {1, "u8"},     [DT_I32] = {4, "i32"}, [DT_E4M3] = {1, "e4m3"},
    [DT_BF16] = {2, "bf16"}, [DT_F32] = {4, "f32"}, [DT_F64] = {8, "f64"},
};

size_t dtype_size(enum dtype t)
{
    return kind[t].size;
}

const char *dtype_name(enum dtype t)
{
    return kind[t].name;
}

struct tensor tensor_of(void *data, enum dtype type, int rank, const int64_t *dim)
{
    struct tensor t = {.data = data, .type = type, .layout = T_ROWS, .rank = rank};
    if (rank < 0 || rank > 4)
        bug("a tensor of rank %d", rank);
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            bug("dimension %d of a tensor is %lld", i, (long long)dim[i]);
        t.dim[i] = dim[i];
    }
    return t;
}

int64_t tensor_count(const struct tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

size_t tensor_bytes(const struct tensor *t)
{
    return (size_t)tensor_count(t) * dtype_size(t->type);
}

struct tensor tensor_rows(struct tensor t, int64_t begin, int64_t n)
{
    if (t.layout != T_ROWS || t.rank < 1 || begin < 0 || n < 0 || begin > t.dim[0] - n)
        bug("rows %lld + %lld of a tensor with %lld", (long long)begin, (long long)n,
            t.rank < 1 ? 0 : (long long)t.dim[0]);
    t.dim[0] = 1;
    if (t.data)
        t.data = (char *)t.data + (size_t)begin * tensor_bytes(&t);
    t.dim[0] = n;
    return t;
}

struct tensor tensor_view(struct tensor t, int rank, const int64_t *dim)
{
    struct tensor v = tensor_of(t.data, t.type, rank, dim);
    if (t.layout != T_ROWS || tensor_count(&v) != tensor_count(&t))
        bug("a view of %lld elements on a tensor of %lld", (long long)tensor_count(&v),
            (long long)tensor_count(&t));
    return v;
}

struct tensor tensor_wide(struct tensor t)
{
    if (t.rank != 3)
        bug("heads of rank %d", t.rank);
    return tensor_view(t, T2(t.dim[0], t.dim[1] * t.dim[2]));
}
