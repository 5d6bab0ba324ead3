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

/* span_blocks: `blocks` blocks of `block` slots with anchors a[j] (row indices,
 * ascending). Row r = j * block + k: at[r] = pos[a_j] + k; full layers see [lo[r],
 * hi[r]) = [start of a_j's piece, a_j); sliding layers [slide[r], hi[r]), the context
 * rows at distance below `window`: pos[a_j] + k - pos[s] < window (window 0: slide =
 * lo). doc_lo is span_docs's lo of the context. */
void span_blocks(int32_t *at, int32_t *lo, int32_t *slide, int32_t *hi,
                 const int32_t *a, int64_t blocks, int64_t block, int64_t window,
                 const int32_t *pos, const int32_t *doc_lo);

#endif
