/* SPDX-License-Identifier: MIT */
/* ints.h - arrays of whole numbers of any width, little-endian, at any address: what
 * binary formats hold where we want token ids and masks. */
#ifndef INTS_H
#define INTS_H

#include <stddef.h>
#include <stdint.h>

enum ints_type {
    INTS_NONE, /* not said */
    INTS_U8,
    INTS_I8,
    INTS_U16,
    INTS_I16,
    INTS_U32,
    INTS_I32,
    INTS_U64,
    INTS_I64,
    INTS_TYPES
};

struct ints {
    const void *at; /* borrowed; NULL: there is no such array */
    int64_t n;
    enum ints_type type;
};

size_t ints_size(enum ints_type t); /* bytes of a number; 0 for INTS_NONE */

/* ints_named finds a type by "u16" or "uint16", n characters of it; INTS_NONE when
 * there is none of that name. */
enum ints_type ints_named(const char *name, size_t n);

/* ints_get is one number; what does not fit int64_t is INT64_MAX. */
int64_t ints_get(const struct ints *a, int64_t i);

/* ints_narrow writes all numbers to out[n] as int32_t; the index of the first that is
 * not in [0, below), or n when all are.  below is at most 2^31. */
int64_t ints_narrow(int32_t *out, const struct ints *a, int64_t below);

/* ints_bits writes all numbers to out[n] as bytes; the index of the first that is not 0
 * or 1, or n. */
int64_t ints_bits(uint8_t *out, const struct ints *a);

/* ints_marks writes to out[n] which numbers are not `none`; the index of the first of
 * those that is not want[n]'s, or n. */
int64_t ints_marks(uint8_t *out, const struct ints *a, const int32_t *want,
                   int64_t none);

/* ints_differs is the index of the first number that is not `value`, or n. */
int64_t ints_differs(const struct ints *a, int64_t value);

/* ints_find is the index of the first `value` at or behind `from`, or n. */
int64_t ints_find(const struct ints *a, int64_t from, int64_t value);

#endif
