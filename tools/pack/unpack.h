/* SPDX-License-Identifier: MIT */
/* unpack.h - what libarchive does for us: decompression, and the members of a tar.
 *
 * Both read from a function of the caller's, front to back, in bounded memory.  Nothing
 * is ever written: names of members are texts, and links and devices are only told
 * apart. */
#ifndef UNPACK_H
#define UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpack;

/* Where bytes come from: *bytes is the next run of them, valid until the next call; how
 * many, 0 at the end, or a code. */
typedef int64_t unpack_source(void *ctx, const void **bytes);

/* unpack_knows tells whether bytes begin a compressed file: gzip, bzip2, xz, lzip, lz4
 * or compress.  (zstd is inflow's own.) */
bool unpack_knows(const void *bytes, size_t n);

/* unpack_stream begins to decompress, unpack_tar to read a tar that is not compressed
 * any more; tars one behind another are one.  `name` is for messages and borrowed. */
int unpack_stream(struct unpack **out, unpack_source *source, void *ctx,
                  const char *name);
int unpack_tar(struct unpack **out, unpack_source *source, void *ctx, const char *name);

struct unpack_member {
    const char *name;   /* valid until the next member; may be anything */
    int64_t size;       /* bytes of data */
    const char *oddity; /* NULL for a file, else what it is: "a link", "a folder" ... */
    bool folder;
};

/* unpack_next goes to the next member of a tar: 1, or 0 at the end.  A tar without its
 * end mark, or damaged, is E_FORMAT. */
int unpack_next(struct unpack *u, struct unpack_member *m);

/* unpack_read reads up to n bytes of the stream, or of the member: how many, 0 at the
 * end.  What is damaged, cut, or followed by other bytes is E_FORMAT. */
int64_t unpack_read(struct unpack *u, void *to, size_t n);

void unpack_close(struct unpack *u); /* NULL is fine */

#endif
