/* SPDX-License-Identifier: MIT */
/* npy.h - the header of a .npy file (numpy.lib.format), versions 1 to 3.
 *
 * Whole numbers and truth values in little-endian C order, of one or two dimensions;
 * whatever else numpy can write is E_FORMAT that says what it is. */
#ifndef NPY_H
#define NPY_H

#include <stdbool.h>

#include "ints.h"

enum { NPY_HEADER_MAX = 1 << 16 };

struct npy {
    enum ints_type type; /* truth values are INTS_U8 */
    int rank;            /* 1 or 2 */
    int64_t dim[2];      /* their product, in bytes, fits int64_t */
    size_t header;       /* bytes before the numbers */
};

bool npy_is(const char *bytes, size_t n);

/* npy_head reads the header at the beginning of n bytes: 1, or 0 when they are too few;
 * messages begin with the reason, the caller wraps with the file. */
int npy_head(struct npy *out, const char *bytes, size_t n);

/* npy_vector reads a whole file of one dimension, or of two of which the first is 1. */
int npy_vector(struct ints *out, const char *bytes, size_t n);

#endif
