/* SPDX-License-Identifier: MIT */
/* window.h - pieces wait in a window until it is full, and leave it as rows.
 *
 * A full window is packed (binpack.h).  The emptiest bins, up to an eighth of them,
 * give their pieces back: they are the first of the next window, where partners may
 * come that fit better.  The other bins leave in an order drawn from the seed, and so
 * do the pieces inside each, because best fit decreasing leaves them sorted by length.
 * So the memory is bounded, and the rows depend on the pieces and the seed alone. */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdint.h>

#include "buf.h"
#include "emit.h"

enum {
    WINDOW_TOKENS = 32 << 20, /* a window is also full with this many tokens ... */
    WINDOW_ROWS = 64,         /* ... but not before this many rows' worth */
    WINDOW_CARRY = 8,         /* one in so many bins may give its pieces back ... */
    WINDOW_SLACK = 256        /* ... when it lacks more than 1/256 of a row */
};

struct window {
    int64_t length, pieces; /* tokens of a row; pieces of a full window */
    uint64_t seed, stream;  /* the draw's key, with the window's number */
    int64_t number;
    struct emit *to; /* borrowed */
    struct waiting *at;
    int64_t n, cap;
    struct buf ids, mask; /* of the pieces */
};

/* window_open prepares an empty window of up to `pieces` pieces of 1 .. length tokens;
 * `stream` tells the draws of several windows with one seed apart. */
void window_open(struct window *w, struct emit *to, int64_t length, int64_t pieces,
                 uint64_t seed, uint64_t stream);

/* window_add copies a piece into the window, whose first `unsupervised` tokens get mask
 * 0, and packs the window when it is full. */
int window_add(struct window *w, const struct piece *p, int64_t unsupervised);

/* window_end packs what is left. */
int window_end(struct window *w);
void window_close(struct window *w);

#endif
