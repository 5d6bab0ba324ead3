/* SPDX-License-Identifier: MIT */
/* span.h - which keys a row sees: positions and intervals of packed documents and
 * blocks.
 *
 * Host arrays, plain integers; the only place where masks are thought about.  Tests and
 * the walk of draft-eval use the same functions as training. */
#ifndef SPAN_H
#define SPAN_H

#include <stdint.h>

/* span_docs: a packed row of S tokens, doc[s] >= 0 equal within a document's piece and
 * -1 for padding; pieces are contiguous.  pos restarts at 0 in each piece; row s sees
 * [lo[s], hi[s]) = [start of its piece, s + 1); padding sees nothing (lo = hi). */
void span_docs(int32_t *pos, int32_t *lo, int32_t *hi, const int32_t *doc, int64_t s);

/* span_block: one block of `block` slots whose anchor is context row `row` at position
 * `pos` of its piece.  Slot k: at[k] = pos + k; full layers see context rows [lo[k],
 * hi[k]) = [row - pos, row), the piece so far but never the anchor's own features,
 * which do not exist yet when it is decoded.  Sliding layers see [slide[k], hi[k]),
 * those at distance below `window`: pos + k - (position of the row) < window; 0: slide
 * = lo. */
void span_block(int32_t *at, int32_t *lo, int32_t *slide, int32_t *hi, int32_t row,
                int32_t pos, int64_t block, int64_t window);

/* span_blocks: the same for `blocks` anchors a[j] of a row with positions pos (from
 * span_docs); outputs [blocks * block]. */
void span_blocks(int32_t *at, int32_t *lo, int32_t *slide, int32_t *hi,
                 const int32_t *a, int64_t blocks, int64_t block, int64_t window,
                 const int32_t *pos);

#endif
