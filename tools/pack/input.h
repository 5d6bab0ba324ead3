/* SPDX-License-Identifier: MIT */
/* input.h - which files are read, in which order, and what identifies them.
 *
 * Operands are taken in their order.  A file is read whatever its name; of a folder all
 * files below it whose names a reader knows, sorted by their names relative to the
 * folder by byte value.  Names that begin with a dot or end in ".tmp" are left out. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "par.h"
#include "reader.h"

struct input_file {
    char *path; /* owned */
    char *name; /* relative to its operand; owned */
    int64_t size;
    uint64_t xxh3; /* of its bytes; of stdin known only behind its end */
};

struct input {
    struct input_file *at;
    int64_t n, cap;
    int64_t ignored;             /* files in folders that no reader knows */
    const struct reader *format; /* the only one, if not NULL; borrowed */
    bool stream;                 /* stdin is among them: no digest before the end */
};

/* input_list fills `in` from operands (NULL-terminated); of folders, with a `format`,
 * only the files that have its endings.  E_MISSING when an operand does not exist or a
 * folder has nothing to read. */
int input_list(struct input *in, char *const *operand, const struct reader *format);

/* input_hash computes size and xxh3 of all files but stdin, in parallel. */
int input_hash(struct input *in, struct par *p);

/* input_hash_stream reads stdin to its end and does the same for it. */
int input_hash_stream(struct input *in);

/* input_describe appends the list as JSON, [{"name", "size", "xxh3"}, ...]: what the
 * packed run's metadata calls `files`.  input_digest is its xxh3: the identity of the
 * input, without paths. */
void input_describe(const struct input *in, struct buf *out);
int input_digest(const struct input *in, uint64_t *out);

int64_t input_bytes(const struct input *in); /* all sizes, 0 with stdin */
void input_drop(struct input *in);

#endif
