/* SPDX-License-Identifier: MIT */
/* read_npy.h - .npy files: each row of a matrix is a document; a vector is cut behind
 * each --separator. */
#ifndef READ_NPY_H
#define READ_NPY_H

#include "reader.h"

/* Functions of struct reader; the others are tokens_block, tokens_parse and npy_is. */
int read_npy_open(void **state, struct inflow *in, const struct read_rules *rules);

#endif
