/* SPDX-License-Identifier: MIT */
/* reader.h - the formats that pack reads: a table of a few functions each.
 *
 * `block` cuts the next run of whole records off a file, cheaply and in order; `parse`
 * makes documents of it, on any thread.  So a format is a row in reader.c and a file of
 * its own, and everything behind sees documents. */
#ifndef READER_H
#define READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "document.h"
#include "inflow.h"
#include "ints.h"

struct reader;

/* Whole records of one file. */
struct block {
    const struct reader *reader;
    struct buf bytes;
    int64_t file;            /* number of the input file */
    int64_t record, records; /* number of the first record in the file, how many */
    int64_t index;           /* of the first record among all of the input */
    bool aside; /* set at the end of a file that has no records, but is for others */
};

/* Instead of a separator. */
enum { READ_WHOLE = -1 /* a file is one document */, READ_UNSAID = -2 };

/* What open and parse need to know of the call. */
struct read_rules {
    int64_t vocab;        /* ids lie in [0, vocab) */
    int64_t part, parts;  /* only records with index mod parts == part are wanted */
    enum ints_type dtype; /* of numbers that do not say what they are */
    int64_t separator;    /* id of the token that ends a document, or one of these: */
};

struct reader {
    const char *name;           /* as --format takes it */
    const char *const *endings; /* of names in folders, without .gz etc.; NULL ends */

    /* is tells whether decompressed bytes begin a file of this format; NULL: they never
     * do. */
    bool (*is)(const char *bytes, size_t n);

    /* beside tells it by another file beside the one at `path`; or NULL. */
    bool (*beside)(const char *path);

    /* open makes what block keeps of a file from call to call, and close frees it; both
     * are NULL for a format that keeps nothing. */
    int (*open)(void **state, struct inflow *in, const struct read_rules *rules);
    void (*close)(void *state);

    /* block fills bytes, records: 1, or 0 at the end of the file.  parse may run when
     * the file is closed, so `bytes` holds all that it needs. */
    int (*block)(struct block *b, void *state, struct inflow *in);

    /* parse appends the wanted records of a block, in order, refused ones too. */
    int (*parse)(struct documents *out, const struct block *b,
                 const struct read_rules *rules);
};

/* reader_named finds a format by its name, "auto" is NULL; E_USAGE lists them. */
int reader_named(const struct reader **out, const char *name);

/* reader_takes tells whether a file in a folder has the name of a format, compressed or
 * not; reader_of_name finds the first that does, or NULL. */
bool reader_takes(const struct reader *r, const char *name);
const struct reader *reader_of_name(const char *name);

/* reader_of_content finds the format by the first bytes; E_FORMAT names the file. */
int reader_of_content(const struct reader **out, struct inflow *in);

#endif
