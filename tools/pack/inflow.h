/* SPDX-License-Identifier: MIT */
/* inflow.h - the bytes of one input file or of stdin, decompressed where need be.
 *
 * The bytes are collected in `have`; a reader takes what it can use from the front and
 * asks for more.  Compression (zstd, and what unpack.h knows) is told by the first
 * bytes, never by a name.  The raw bytes are hashed as they pass, so that at the end it
 * is known what was read. */
#ifndef INFLOW_H
#define INFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct inflow {
    int fd;
    const char *path, *name; /* the latter for messages; borrowed */
    struct buf have;         /* decompressed and not yet taken */
    bool ended;              /* nothing more will come */
    int64_t raw;             /* bytes read from the file so far */
    struct unzip *unzip;     /* zstd */
    struct unpack *unpack;   /* any other compression */
    struct hash *hash;
    char *buffer; /* raw bytes: [at, end) are not yet used */
    size_t at, end;
    bool begun;
};

/* inflow_open opens a file, "-" is stdin.  Ended by inflow_close, a zero struct is
 * fine. */
int inflow_open(struct inflow *in, const char *path, const char *name);

/* inflow_more appends up to about `want` bytes to `have`: 1, or 0 when the input has
 * ended.  A compressed frame that is damaged or cut is E_FORMAT. */
int inflow_more(struct inflow *in, size_t want);

/* inflow_take forgets the first n bytes of `have`. */
void inflow_take(struct inflow *in, size_t n);

/* inflow_cut moves the first n bytes of `have` into `out`, whose memory it takes in
 * exchange: only what lies behind them is copied. */
int inflow_cut(struct inflow *in, size_t n, struct buf *out);

/* inflow_xxh3 is the checksum of the raw bytes so far. */
uint64_t inflow_xxh3(const struct inflow *in);

void inflow_close(struct inflow *in);

#endif
