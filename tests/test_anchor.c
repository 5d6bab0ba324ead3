/* SPDX-License-Identifier: MIT */
/* test_anchor.c - who is drawn, how the budget is shared, what is predicted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "anchor.h"
#include "kit.h"
#include "rng.h"

enum { S = 200, DOCS = 4, BLOCK = 8, BUDGET = 64 };

struct fixture {
    struct anchor_row row;
    int32_t ids[S], doc[S];
    uint8_t mask[S];
    int64_t source[3 * DOCS];
};

/* fill makes documents of the given lengths, all supervised behind `prompt` tokens;
 * what is left of the row is padding. */
static void fill(struct fixture *f, const int *length, int docs, int prompt)
{
    memset(f, 0, sizeof *f);
    int t = 0;
    for (int i = 0; i < S; i++) {
        f->doc[i] = -1;
        f->ids[i] = 1000 + i;
    }
    for (int d = 0; d < docs; d++) {
        f->source[3 * d + 1] = 70 + d;
        for (int i = 0; i < length[d]; i++, t++) {
            f->doc[t] = d;
            f->mask[t] = i >= prompt;
        }
    }
    f->row = (struct anchor_row){S, f->ids, f->mask, f->doc, f->source, docs};
}

static int64_t count_in(const int32_t *anchor, int64_t n, const struct fixture *f,
                        int d)
{
    int64_t in = 0;
    for (int64_t i = 0; i < n; i++)
        in += f->doc[anchor[i]] == d;
    return in;
}

/* ---- drawing ---- */

START_TEST(candidates)
{
    struct fixture f;
    fill(&f, (const int[]){5, 1, 4}, 3, 2);
    /* Document 0: tokens 2, 3 (4 has no successor in it); 1: none; 2: token 8. */
    ck_assert_int_eq(anchor_candidates(&f.row), 3);
    int32_t a[BUDGET];
    ck_assert_int_eq(anchor_draw(a, BUDGET, &f.row, 1), 3);
    ck_assert(a[0] == 2 && a[1] == 3 && a[2] == 8);
    f.row.length = 4; /* the row ends inside the document: 3 has no successor */
    ck_assert_int_eq(anchor_candidates(&f.row), 1);
    ck_assert_int_eq(anchor_draw(a, BUDGET, &f.row, 1), 1);
    f.row.length = S;
    f.mask[3] = 0; /* a gap: 2 lacks a supervised successor, 3 is not supervised */
    ck_assert_int_eq(anchor_draw(a, BUDGET, &f.row, 1), 1);
    ck_assert_int_eq(a[0], 8);
    memset(f.mask, 0, sizeof f.mask);
    ck_assert_int_eq(anchor_draw(a, BUDGET, &f.row, 1), 0);
}
END_TEST

/* 10, 20 and 30 candidates; quotas of 7: 1.17, 2.33, 3.5: the rest goes to the last. */
START_TEST(shares)
{
    struct fixture f;
    int32_t a[BUDGET];
    fill(&f, (const int[]){11, 21, 31}, 3, 0);
    ck_assert_int_eq(anchor_draw(a, 7, &f.row, 5), 7);
    ck_assert_int_eq(count_in(a, 7, &f, 0), 1);
    ck_assert_int_eq(count_in(a, 7, &f, 1), 2);
    ck_assert_int_eq(count_in(a, 7, &f, 2), 4);
    fill(&f, (const int[]){11, 11, 11, 11}, 4, 0); /* 6 over equals: ties go early */
    ck_assert_int_eq(anchor_draw(a, 6, &f.row, 5), 6);
    ck_assert_int_eq(count_in(a, 6, &f, 0), 2);
    ck_assert_int_eq(count_in(a, 6, &f, 1), 2);
    ck_assert_int_eq(count_in(a, 6, &f, 2), 1);
    ck_assert_int_eq(count_in(a, 6, &f, 3), 1);
    ck_assert_int_eq(anchor_draw(a, 0, &f.row, 5), 0);
}
END_TEST

START_TEST(distinct_and_ascending)
{
    struct fixture f;
    int32_t a[BUDGET];
    fill(&f, (const int[]){60, 50, 40}, 3, 3);
    for (uint64_t key = 0; key < 50; key++) {
        int64_t n = anchor_draw(a, 40, &f.row, key);
        ck_assert_int_eq(n, 40);
        for (int64_t i = 0; i < n; i++) {
            ck_assert(f.mask[a[i]] && f.mask[a[i] + 1]);
            ck_assert(f.doc[a[i]] >= 0 && f.doc[a[i]] == f.doc[a[i] + 1]);
            ck_assert(i == 0 || a[i] > a[i - 1]);
        }
    }
}
END_TEST

/* A document draws alike alone, in company and elsewhere in a row; a larger share keeps
 * the smaller one's anchors; another key, record or first token draws otherwise. */
START_TEST(keyed_by_document)
{
    struct fixture one, two;
    int32_t a[BUDGET], b[BUDGET], c[BUDGET];
    fill(&one, (const int[]){80}, 1, 0);
    fill(&two, (const int[]){80, 80}, 2, 0);
    two.source[1] = 11;
    two.source[4] = one.source[1]; /* the second document of the row is `one` */
    ck_assert_int_eq(anchor_draw(a, 8, &one.row, 3), 8);
    ck_assert_int_eq(anchor_draw(b, 16, &two.row, 3), 16);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(b[8 + i], a[i] + 80);
    ck_assert_int_eq(anchor_draw(c, 20, &one.row, 3), 20);
    for (int i = 0, j = 0; i < 8; i++, j++) {
        while (j < 20 && c[j] != a[i])
            j++;
        ck_assert_msg(j < 20, "anchor %d is lost in a larger draw", a[i]);
    }
    anchor_draw(b, 8, &one.row, 4);
    ck_assert(memcmp(a, b, 8 * sizeof *a) != 0);
    for (int i = 0; i < 3; i++) {
        one.source[i]++;
        anchor_draw(b, 8, &one.row, 3);
        ck_assert(memcmp(a, b, 8 * sizeof *a) != 0);
        one.source[i]--;
    }
    anchor_draw(b, 8, &one.row, 3);
    kit_same("the same draw again", b, a, 8 * sizeof *a);
}
END_TEST

/* Each of 20 candidates is drawn equally often: chi-square below the 99.99 % point of
 * 19 degrees of freedom; a draw that favours the first half would exceed it. */
START_TEST(uniform)
{
    enum { N = 20, DRAWS = 4000, SHARE = 5 };
    struct fixture f;
    int32_t a[BUDGET];
    double count[N] = {0}, chi = 0, expected = (double)DRAWS * SHARE / N;
    fill(&f, (const int[]){N + 1}, 1, 0);
    for (uint64_t key = 0; key < DRAWS; key++) {
        ck_assert_int_eq(anchor_draw(a, SHARE, &f.row, key), SHARE);
        for (int i = 0; i < SHARE; i++)
            count[a[i]]++;
    }
    for (int i = 0; i < N; i++)
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    printf("uniform: chi-square %.1f of 19 degrees\n", chi);
    ck_assert_double_lt(chi, 50.8);
    ck_assert_double_gt(chi, 3.5);
}
END_TEST

/* ---- labels ---- */

START_TEST(labels)
{
    struct fixture f;
    int32_t row[BUDGET], label[BUDGET];
    float weight[BUDGET];
    fill(&f, (const int[]){30, 10}, 2, 3);
    f.mask[16] = 0;                               /* a gap */
    const int32_t anchor[] = {5, 12, 25, 33, 38}; /* free, gap, end, end, end */
    int64_t n = anchor_labels(row, label, weight, anchor, 5, BLOCK, 4.0, &f.row);
    const int want[] = {7, 3, 4, 6, 1}; /* labelled slots of each block */
    int64_t i = 0;
    for (int j = 0; j < 5; j++)
        for (int k = 1; k <= want[j]; k++, i++) {
            ck_assert_int_eq(row[i], j * BLOCK + k);
            ck_assert_int_eq(label[i], f.ids[anchor[j] + k]);
            ck_assert(fabs((double)weight[i] - exp(-(k - 1) / 4.0)) < 1e-7);
        }
    ck_assert_int_eq(n, i);
    anchor_labels(row, label, weight, anchor, 5, BLOCK, 0, &f.row);
    for (i = 0; i < n; i++)
        ck_assert(weight[i] == 1);
}
END_TEST

/* The row's last token ends its labels, though what lies behind goes on. */
START_TEST(labels_end_of_row)
{
    struct fixture f;
    int32_t row[BUDGET], label[BUDGET];
    float weight[BUDGET];
    fill(&f, (const int[]){S}, 1, 0);
    f.row.length = S - 20;
    const int32_t anchor[] = {S - 23};
    ck_assert_int_eq(anchor_labels(row, label, weight, anchor, 1, BLOCK, 7, &f.row), 2);
    ck_assert_int_eq(label[1], f.ids[S - 21]);
}
END_TEST

START_TEST(accepted)
{
    /* Blocks of 4: all right; wrong in the middle (what follows does not count); wrong
     * at once; no labels; one label, right. */
    const int32_t row[] = {1, 2, 3, 5, 6, 7, 9, 10, 17};
    const int32_t hit[] = {1, 1, 1, 1, 0, 1, 0, 1, 1};
    const int32_t want[] = {3, 1, 0, 0, 1}, have[] = {3, 3, 2, 0, 1};
    int32_t got[5], length[5];
    anchor_accepted(got, length, hit, row, 9, 5, 4);
    kit_same("accepted", got, want, sizeof want);
    kit_same("length", length, have, sizeof have);
}
END_TEST

KIT_MAIN("anchor", candidates, shares, distinct_and_ascending, keyed_by_document,
         uniform, labels, labels_end_of_row, accepted)
