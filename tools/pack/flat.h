/* SPDX-License-Identifier: MIT */
/* flat.h - a strict look into a flatbuffer, in which Arrow writes its metadata.
 *
 * A table knows where its fields lie, or that they are absent and have their default.
 * Whatever points outside the buffer reads as absent and leaves a mark, so that many
 * reads can be followed by one question.  Source: flatbuffers.dev, "internals". */
#ifndef FLAT_H
#define FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flat {
    const uint8_t *at;
    size_t size; /* bytes */
    bool bad;    /* something pointed outside */
};

struct flat_table {
    struct flat *of;
    size_t at;               /* 0: there is none */
    size_t fields;           /* where their offsets lie */
    size_t bytes, described; /* of the table, of the list of offsets */
};

/* Items of equal size, one behind another. */
struct flat_vector {
    struct flat *of;
    size_t at;
    int64_t n;
};

struct flat_table flat_root(struct flat *f);

/* Fields by their number.  flat_int reads `size` bytes (1, 2, 4 or 8), signed. */
int64_t flat_int(const struct flat_table *t, int field, size_t size, int64_t absent);
struct flat_table flat_table(const struct flat_table *t, int field);
struct flat_vector flat_vector(const struct flat_table *t, int field, size_t size);

/* Parts of vectors: the table in item i, 8 bytes at a byte offset. */
struct flat_table flat_item(const struct flat_vector *v, int64_t i);
int64_t flat_long(const struct flat_vector *v, int64_t byte);

#endif
