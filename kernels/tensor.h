/* SPDX-License-Identifier: MIT */
/* tensor.h - a typed block of device memory with a shape; passed by value, owns
 * nothing.
 *
 * Row-major and contiguous, up to four dimensions, sizes in elements.  A tensor with
 * layout T_PANELS is a weight [N,K] repacked by op_pack for the backend's matrix
 * product and readable by op_matmul only. */
#ifndef TENSOR_H
#define TENSOR_H

#include <stddef.h>
#include <stdint.h>

enum dtype { DT_U8, DT_I32, DT_E4M3, DT_BF16, DT_F32, DT_F64 };
enum layout { T_ROWS, T_PANELS };

/* The CPU backend's arithmetic type: float, or double in the gradient tests' build. */
#ifndef REAL
#define REAL float
#endif
typedef REAL real;
#define DT_REAL (sizeof(real) == 8 ? DT_F64 : DT_F32)

struct tensor {
    void *data; /* device memory, borrowed from an arena or a mapping */
    enum dtype type;
    enum layout layout;
    int rank;
    int64_t dim[4];
};

size_t dtype_size(enum dtype t);
const char *dtype_name(enum dtype t); /* "bf16" */

struct tensor tensor_of(void *data, enum dtype type, int rank, const int64_t *dim);
int64_t tensor_count(const struct tensor *t); /* elements */
size_t tensor_bytes(const struct tensor *t);

/* tensor_rows is the view of rows [begin, begin + n) of the first dimension. */
struct tensor tensor_rows(struct tensor t, int64_t begin, int64_t n);

/* tensor_view is the same memory under another shape of the same count; bug()
 * otherwise. */
struct tensor tensor_view(struct tensor t, int rank, const int64_t *dim);

/* tensor_wide is the view of heads [T,n,D] as rows [T,n*D]. */
struct tensor tensor_wide(struct tensor t);

/* T1 .. T3 write shapes in place: tensor_view(x, T2(rows, width)). */
#define T1(a)                                                                          \
    1, (const int64_t[])                                                               \
    {                                                                                  \
        a                                                                              \
    }
#define T2(a, b)                                                                       \
    2, (const int64_t[])                                                               \
    {                                                                                  \
        a, b                                                                           \
    }
#define T3(a, b, c)                                                                    \
    3, (const int64_t[])                                                               \
    {                                                                                  \
        a, b, c                                                                        \
    }

#endif
