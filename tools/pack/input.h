/* SPDX-License-Identifier: MIT */
/* input.h - which files are read, in which order, and what identifies them.
 *
 * Operands are taken in their order.  A file is read whatever its name; of a folder all
 * files below it whose names a reader knows, sorted by their names relative to the
 * folder by byte value.  Names that begin with a dot or end in ".tmp" are left out.  Of
 * a folder that datasets has saved its own files are read, in its own order, and of its
 * splits one (dataset.h). */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "par.h"
#include "reader.h"

struct input_file {
    char *path;        /* owned */
    char *name;        /* relative to its operand; owned */
    const char *shown; /* in messages: name, or path where two names are alike */
    int64_t size;
    uint64_t xxh3;      /* of its bytes; of stdin known only behind its end */
    int64_t set, place; /* the saved dataset, from 1, and its place there; 0: none */
};

/* What is read of a folder; NULL: whatever there is. */
struct input_choice {
    const struct reader *format; /* only files with its endings */
    const char *split;           /* of a DatasetDict */
};

struct input {
    struct input_file *at;
    int64_t n, cap;
    int64_t ignored;      /* files in folders that no reader knows */
    int64_t sets, splits; /* saved datasets met so far, folders with splits */
    struct buf said;      /* which splits were taken; empty when there was no choice */
    struct input_choice choice;
    bool stream; /* stdin is among them: no digest before the end */
};

/* input_list fills `in` from operands (NULL-terminated), as `choice` says.  E_MISSING
 * when an operand does not exist or a folder has nothing to read; E_USAGE when a split
 * must be chosen, or when one is and there are none. */
int input_list(struct input *in, char *const *operand,
               const struct input_choice *choice);

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
