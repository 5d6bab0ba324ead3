/* SPDX-License-Identifier: MIT */
/* test_span.c - intervals against the masks' definition, element by element.
 *
 * The definition (DFlash, arXiv 2602.06036 section 4.2; the window as in z-lab's
 * reference): slot k of a block with anchor a sees context row s iff s is of a's
 * document, s < a, and, in a sliding layer, pos[a] + k - pos[s] < window. */
#include <stdio.h>

#include "kit.h"
#include "span.h"

enum { S = 24, BLOCK = 5, ANCHORS = 4 };

/* Three documents, padding, and a document of one token. */
static const int32_t doc[S] = {0, 0, 0, 0, 0, 0, 0, 3, 1,  1,  1,  1,
                               1, 1, 1, 1, 1, 1, 2, 2, -1, -1, -1, -1};
static const int32_t anchor[ANCHORS] = {0, 5, 12, 16};

START_TEST(docs)
{
    int32_t pos[S], lo[S], hi[S];
    span_docs(pos, lo, hi, doc, S);
    for (int t = 0; t < S; t++) {
        int start = t;
        while (start > 0 && doc[start - 1] == doc[t])
            start--;
        ck_assert_int_eq(pos[t], t - start);
        ck_assert(doc[t] >= 0 || lo[t] == hi[t]);
        for (int s = 0; s < S; s++) {
            bool sees = doc[t] >= 0 && doc[s] == doc[t] && s <= t;
            ck_assert_msg(sees == (s >= lo[t] && s < hi[t]), "row %d, key %d", t, s);
        }
    }
}
END_TEST

/* wrong counts the pairs in which intervals differ from the definition. */
static int wrong(const int32_t *lo, const int32_t *hi, const int32_t *pos, int window)
{
    int n = 0;
    for (int r = 0; r < ANCHORS * BLOCK; r++) {
        int a = anchor[r / BLOCK], k = r % BLOCK;
        for (int s = 0; s < S; s++) {
            bool sees = doc[s] == doc[a] && s < a;
            if (window)
                sees = sees && pos[a] + k - pos[s] < window;
            n += sees != (s >= lo[r] && s < hi[r]);
        }
    }
    return n;
}

START_TEST(blocks)
{
    int32_t pos[S], none[S], at[ANCHORS * BLOCK], lo[ANCHORS * BLOCK];
    int32_t slide[ANCHORS * BLOCK], hi[ANCHORS * BLOCK];
    span_docs(pos, none, none, doc, S);
    for (int window = 0; window <= 12; window++) {
        span_blocks(at, lo, slide, hi, anchor, ANCHORS, BLOCK, window, pos);
        ck_assert_int_eq(wrong(lo, hi, pos, 0), 0);
        ck_assert_int_eq(wrong(slide, hi, pos, window), 0);
        for (int r = 0; r < ANCHORS * BLOCK; r++) {
            ck_assert_int_eq(at[r], pos[anchor[r / BLOCK]] + r % BLOCK);
            ck_assert(lo[r] <= slide[r] && slide[r] <= hi[r]);
        }
    }
}
END_TEST

/* The comparison sees each edge move by one. */
START_TEST(blocks_mutants)
{
    enum { N = ANCHORS * BLOCK };
    int32_t pos[S], none[S], at[N], lo[N], slide[N], hi[N];
    span_docs(pos, none, none, doc, S);
    span_blocks(at, lo, slide, hi, anchor, ANCHORS, BLOCK, 6, pos);
    hi[N - 1]++; /* the anchor's own features */
    ck_assert_int_gt(wrong(lo, hi, pos, 0), 0);
    hi[N - 1]--;
    slide[N - 1]--;
    ck_assert_int_gt(wrong(slide, hi, pos, 6), 0);
    slide[N - 1] += 2;
    ck_assert_int_gt(wrong(slide, hi, pos, 6), 0);
    lo[N - 1]--; /* the document before */
    ck_assert_int_gt(wrong(lo, hi, pos, 0), 0);
}
END_TEST

/* One block alone: a document from row 0, as in decoding. */
START_TEST(one_block)
{
    int32_t at[BLOCK], lo[BLOCK], slide[BLOCK], hi[BLOCK];
    span_block(at, lo, slide, hi, 9, 9, BLOCK, 7);
    for (int k = 0; k < BLOCK; k++) {
        ck_assert(at[k] == 9 + k && lo[k] == 0 && hi[k] == 9);
        ck_assert_int_eq(slide[k], 9 + k - 6);
    }
    span_block(at, lo, slide, hi, 0, 0, BLOCK, 7); /* no context at all */
    for (int k = 0; k < BLOCK; k++)
        ck_assert(lo[k] == 0 && slide[k] == 0 && hi[k] == 0);
}
END_TEST

KIT_MAIN("span", docs, blocks, blocks_mutants, one_block)
