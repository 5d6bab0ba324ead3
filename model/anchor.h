/* SPDX-License-Identifier: MIT */
/* anchor.h - which positions of a packed row are drawn, and what their slots must
 * predict.
 *
 * A candidate is a supervised token whose successor, in the same document, is
 * supervised. The row's budget N is shared by its documents in proportion to their
 * candidates (largest remainder, ties to the earlier document, never more than a
 * document has); inside a document anchors are drawn uniformly without replacement by a
 * generator keyed by (seed, epoch, source digest, file, record, first token): the same
 * document gives the same draw order in any row, shard or rank.  Labels: DFlash's
 * same-position convention (arXiv 2602.06036 section 4.2): slot k predicts token a + k.
 */
#ifndef ANCHOR_H
#define ANCHOR_H

#include <stdint.h>

struct anchor_row {
    int64_t length;        /* S */
    const int32_t *ids;    /* [S] */
    const uint8_t *mask;   /* [S] 1 = supervised */
    const int32_t *doc;    /* [S] index into source, -1 = padding */
    const int64_t *source; /* [docs,3]: file, record, first token */
    int64_t docs;
};

/* anchor_candidates counts them. */
int64_t anchor_candidates(const struct anchor_row *r);

/* anchor_draw writes at most `budget` anchors, ascending, and returns how many.  `key`
 * is rng_key of (seed, epoch, source digest).  Negative: E_MEMORY. */
int64_t anchor_draw(int32_t *anchor, int64_t budget, const struct anchor_row *r,
                    uint64_t key);

/* anchor_labels: for each block row j * block + k, k >= 1, of the anchors, while the
 * document and its supervision go on without a gap (contiguous prefix), one labelled
 * row: row[i] = j * block + k, label[i] = ids[a_j + k], weight[i] = exp(-(k - 1) /
 * gamma) (arXiv 2602.06036 eq. 4; gamma <= 0: all 1).  Returns the count, at most
 * anchors * (block - 1); ascending in row. */
int64_t anchor_labels(int32_t *row, int32_t *label, float *weight,
                      const int32_t *anchor, int64_t anchors, int64_t block,
                      double gamma, const struct anchor_row *r);

/* anchor_accepted: from hit[i] of the labelled rows, per block the count of leading
 * slots that are right: accepted[j], and length[j] = how many labelled slots block j
 * has. Acceptance length of a block = accepted + 1 (the bonus token). */
void anchor_accepted(int32_t *accepted, int32_t *length, const int32_t *hit,
                     const int32_t *row, int64_t labelled, int64_t anchors,
                     int64_t block);

#endif
