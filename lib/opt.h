/* SPDX-License-Identifier: MIT */
/* opt.h - one table per tool: parsing, help, defaults, the man-page test, the record.
 *
 *     static struct { const char *out; int64_t length; } cfg = {"-", 8192};
 *     static const struct opt options[] = {
 *         OPT_HEAD("output"),
 *         OPT_TEXT('o', "output", &cfg.out, "DIR", "write shards to DIR", 0),
 *         OPT_HEAD("rows"),
 *         OPT_INT('n', "length", &cfg.length, "TOKENS", "tokens per row", OPT_CONTENT),
 *         OPT_END};
 *
 * Nothing here prints or exits: opt_parse returns a code and opt_help fills a buffer.
 * Options may stand anywhere before "--"; long names may be cut where unique; values
 * are "--name VALUE", "--name=VALUE", "-n VALUE" or "-nVALUE".  Options that change an
 * output's content carry OPT_CONTENT and are recorded in its metadata by opt_record. */
#ifndef OPT_H
#define OPT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

enum opt_kind {
    OPT_KIND_END,
    OPT_KIND_HEAD,
    OPT_KIND_TEXT,
    OPT_KIND_INT,
    OPT_KIND_REAL,
    OPT_KIND_FLAG
};
enum {
    OPT_CONTENT = 1 /* the value changes the output's bytes */
};

struct opt {
    enum opt_kind kind;
    char letter; /* 0: none */
    const char *name;
    void *value; /* const char **, int64_t *, double *, bool * by kind; holds the
                    default */
    const char *arg;
    const char *help;
    int flags;
};

#define OPT_HEAD(text)                                                                 \
    {                                                                                  \
        OPT_KIND_HEAD, 0, text, NULL, NULL, NULL, 0                                    \
    }
#define OPT_TEXT(c, name, at, arg, help, flags)                                        \
    {                                                                                  \
        OPT_KIND_TEXT, c, name, at, arg, help, flags                                   \
    }
#define OPT_INT(c, name, at, arg, help, flags)                                         \
    {                                                                                  \
        OPT_KIND_INT, c, name, at, arg, help, flags                                    \
    }
#define OPT_REAL(c, name, at, arg, help, flags)                                        \
    {                                                                                  \
        OPT_KIND_REAL, c, name, at, arg, help, flags                                   \
    }
#define OPT_FLAG(c, name, at, help, flags)                                             \
    {                                                                                  \
        OPT_KIND_FLAG, c, name, at, NULL, help, flags                                  \
    }
#define OPT_END                                                                        \
    {                                                                                  \
        OPT_KIND_END, 0, NULL, NULL, NULL, NULL, 0                                     \
    }

/* What a tool says about itself. */
struct opt_about {
    const char *name;     /* "draft-pack" */
    const char *purpose;  /* one line */
    const char *synopsis; /* "[options] input..." */
};

/* opt_parse stores the values and moves the operands to the front of argv + 1;
 * *operands counts them.  Wrong calls are E_USAGE with the option's name. */
int opt_parse(int argc, char **argv, const struct opt *table, int *operands);

/* opt_help appends usage, headings, options with their live defaults. */
void opt_help(struct buf *out, const struct opt_about *about, const struct opt *table);

/* opt_record appends "name=value" pairs, space-separated in table order, of the options
 * that change content: what an output's metadata says about how it was made. */
void opt_record(struct buf *out, const struct opt *table);

/* opt_list appends one line an option: long name, letter or -, argument or -, default;
 * what the man-page test and completion read. */
void opt_list(struct buf *out, const struct opt *table);

#endif
