/* SPDX-License-Identifier: MIT */
/* span.c - masks as intervals: what each row of a packed row or block sees.
 *
 * Every mask of the project is an interval of context rows, since a document's piece is
 * contiguous, positions restart in it, and a row sees a prefix of its piece or a window
 * at the prefix's end. */
#include "span.h"

void span_docs(int32_t *pos, int32_t *lo, int32_t *hi, const int32_t *doc, int64_t s)
{
    int32_t start = 0;
    for (int32_t t = 0; t < s; t++) {
        if (t > 0 && doc[t] != doc[t - 1])
            start = t;
        pos[t] = t - start;
        lo[t] = start;
        hi[t] = doc[t] < 0 ? start : t + 1;
    }
}

void span_block(int32_t *at, int32_t *lo, int32_t *slide, int32_t *hi, int32_t row,
                int32_t pos, int64_t block, int64_t window)
{
    int64_t start = row - pos;
    for (int64_t k = 0; k < block; k++) {
        /* The first row in reach; past the anchor when the window is shorter than the
         * block, and then nothing of the context is seen. */
        int64_t edge = window > 0 ? row + k - window + 1 : start;
        at[k] = (int32_t)(pos + k);
        lo[k] = (int32_t)start;
        slide[k] = (int32_t)(edge < start ? start : edge > row ? row : edge);
        hi[k] = row;
    }
}

void span_blocks(int32_t *at, int32_t *lo, int32_t *slide, int32_t *hi,
                 const int32_t *a, int64_t blocks, int64_t block, int64_t window,
                 const int32_t *pos)
{
    for (int64_t j = 0; j < blocks; j++) {
        int64_t r = j * block;
        span_block(at + r, lo + r, slide + r, hi + r, a[j], pos[a[j]], block, window);
    }
}
