/* SPDX-License-Identifier: MIT */
/* anchor.c - shares by largest remainder, then a partial shuffle inside each document.
 *
 * The shuffle of a document's candidates is the beginning of one fixed permutation, so
 * a larger share draws the same anchors and some more. */
#include "anchor.h"

#include "err.h"
#include "mem.h"
#include "rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A document of the row: its rows [begin, end) and its part of the budget. */
struct piece {
    int64_t begin, end, doc;
    int64_t candidates, share, remainder;
};

static bool is_candidate(const struct anchor_row *r, int64_t t)
{
    return t + 1 < r->length && r->doc[t] >= 0 && r->doc[t] == r->doc[t + 1] &&
           r->mask[t] && r->mask[t + 1];
}

int64_t anchor_candidates(const struct anchor_row *r)
{
    int64_t n = 0;
    for (int64_t t = 0; t < r->length; t++)
        n += is_candidate(r, t);
    return n;
}

/* find_pieces lists the runs of equal document numbers that have candidates; piece has
 * room for one a row. */
static int64_t find_pieces(struct piece *piece, const struct anchor_row *r)
{
    int64_t n = 0;
    for (int64_t t = 0, begin = 0, found = 0; t < r->length; t++) {
        found += is_candidate(r, t);
        if (t + 1 < r->length && r->doc[t + 1] == r->doc[t])
            continue;
        if (found)
            piece[n++] = (struct piece){begin, t + 1, r->doc[t], found, 0, 0};
        begin = t + 1;
        found = 0;
    }
    return n;
}

/* divide shares `budget`, at most all candidates: the whole part of budget * candidates
 * / all to each, what is left to the largest remainders, the earlier first.  A
 * remainder is only there when the quota is below the candidates, so nobody gets more
 * than it has. */
static void divide(struct piece *piece, int64_t n, int64_t budget, int64_t all)
{
    int64_t left = budget;
    for (int64_t i = 0; i < n; i++) {
        int64_t quota = budget * piece[i].candidates;
        piece[i].share = quota / all;
        piece[i].remainder = quota % all;
        left -= piece[i].share;
    }
    for (; left > 0; left--) {
        struct piece *best = piece;
        for (int64_t i = 1; i < n; i++)
            if (piece[i].remainder > best->remainder)
                best = &piece[i];
        best->share++;
        best->remainder = -1;
    }
}

/* draw marks `share` candidates of a piece; list has room for its rows. */
static void draw(uint8_t *drawn, int32_t *list, const struct piece *p,
                 const struct anchor_row *r, uint64_t key)
{
    const int64_t *source = r->source + 3 * p->doc;
    uint64_t word[4] = {key, (uint64_t)source[0], (uint64_t)source[1],
                        (uint64_t)source[2]};
    struct rng rng = rng_new(rng_key(word, 4));
    int64_t n = 0;
    for (int64_t t = p->begin; t < p->end; t++)
        if (is_candidate(r, t))
            list[n++] = (int32_t)t;
    for (int64_t i = 0; i < p->share; i++) {
        int64_t j = i + (int64_t)rng_below(&rng, (uint64_t)(n - i));
        drawn[list[j]] = 1;
        list[j] = list[i]; /* what place i held stays to be drawn */
    }
}

int64_t anchor_draw(int32_t *anchor, int64_t budget, const struct anchor_row *r,
                    uint64_t key)
{
    int64_t all = anchor_candidates(r), count = 0;
    size_t room = (size_t)r->length;
    if (all == 0 || budget <= 0)
        return 0;
    struct piece *piece = mem_alloc(room * sizeof *piece);
    int32_t *list = mem_alloc(room * sizeof *list);
    uint8_t *drawn = mem_zero(room, 1);
    if (!piece || !list || !drawn) {
        count = E_MEMORY;
        goto out;
    }
    int64_t pieces = find_pieces(piece, r);
    divide(piece, pieces, budget < all ? budget : all, all);
    for (int64_t i = 0; i < pieces; i++)
        draw(drawn, list, &piece[i], r, key);
    for (int64_t t = 0; t < r->length; t++)
        if (drawn[t])
            anchor[count++] = (int32_t)t;
out:
    mem_free(piece);
    mem_free(list);
    mem_free(drawn);
    return count;
}

int64_t anchor_labels(int32_t *row, int32_t *label, float *weight,
                      const int32_t *anchor, int64_t anchors, int64_t block,
                      double gamma, const struct anchor_row *r)
{
    int64_t n = 0;
    for (int64_t j = 0; j < anchors; j++) {
        int64_t a = anchor[j];
        for (int64_t k = 1; k < block && a + k < r->length; k++) {
            if (r->doc[a + k] != r->doc[a] || !r->mask[a + k])
                break;
            row[n] = (int32_t)(j * block + k);
            label[n] = r->ids[a + k];
            weight[n] = gamma > 0 ? (float)exp(-(double)(k - 1) / gamma) : 1.0f;
            n++;
        }
    }
    return n;
}

void anchor_accepted(int32_t *accepted, int32_t *length, const int32_t *hit,
                     const int32_t *row, int64_t labelled, int64_t anchors,
                     int64_t block)
{
    memset(accepted, 0, (size_t)anchors * sizeof *accepted);
    memset(length, 0, (size_t)anchors * sizeof *length);
    for (int64_t i = 0; i < labelled; i++) {
        int64_t j = row[i] / block;
        /* Slots come in order, so the run is unbroken while it has every slot. */
        if (hit[i] && accepted[j] == length[j])
            accepted[j]++;
        length[j]++;
    }
}
