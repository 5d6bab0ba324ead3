/* SPDX-License-Identifier: MIT */
/* matmul.h - the three matrix products, and what they keep with a device: d->state. */
#ifndef MATMUL_H
#define MATMUL_H

#include "cpu.h"
#include "tile.h"

struct matmul {
    const struct tile_set *tiles; /* the fastest for this processor */
    void *room;                   /* matmul_room(threads) bytes, 64-byte aligned */
};

/* matmul_room is the working memory of all workers of a device: about 350 KB each. */
size_t matmul_room(int threads);

#endif
