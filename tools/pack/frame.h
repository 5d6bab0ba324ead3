/* SPDX-License-Identifier: MIT */
/* frame.h - a compressed run of bytes in memory, whose size is known beforehand. */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>

#include "buf.h"

enum frame { FRAME_LZ4, FRAME_ZSTD };

/* frame_unpack puts the `want` bytes that are packed in p[0 .. n) into `out`; any other
 * number of them, or anything behind, is E_FORMAT. */
int frame_unpack(struct buf *out, enum frame how, const void *p, size_t n, size_t want);

#endif
