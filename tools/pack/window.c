/* SPDX-License-Identifier: MIT */
/* window.c - collect, pack, choose what stays, shuffle the rest, emit. */
#include "window.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "binpack.h"
#include "err.h"
#include "mem.h"
#include "rng.h"

/* A piece in the window; its tokens begin at `at` in ids and mask. */
struct waiting {
    int64_t source[3], at;
    int32_t n;
};

/* One packing: bins of pieces, as lists. */
struct packing {
    int32_t bins;
    int32_t *bin;    // [n] of each piece
    int32_t *space;  // [bins] that is left
    int32_t *length; // [n] of each piece
    int64_t *order;  // [bins] the emptiest first; later those that leave, as drawn
    int64_t *first;  // [bins + 1] where a bin's pieces begin in `piece`
    int64_t *piece;  // [n] numbers of pieces, bin by bin
};

void window_open(struct window *w, struct emit *to, int64_t length, int64_t pieces,
                 uint64_t seed, uint64_t stream)
{
    *w = (struct window){
        .length = length, .pieces = pieces, .seed = seed, .stream = stream, .to = to};
}

static int append(struct window *w, const struct waiting *what)
{
    struct waiting *at = mem_room(w->at, w->n, &w->cap, sizeof *at);
    if (!at)
        return E_MEMORY;
    w->at = at;
    w->at[w->n++] = *what;
    return 0;
}

static int64_t tokens(const struct window *w)
{
    return (int64_t)w->mask.len;
}

static int add_tokens(struct window *w, const struct piece *p, int64_t unsupervised)
{
    buf_add(&w->ids, p->ids, (size_t)p->n * sizeof *p->ids);
    buf_fill(&w->mask, 0, (size_t)unsupervised);
    buf_add(&w->mask, p->mask + unsupervised, (size_t)(p->n - unsupervised));
    TRY(buf_check(&w->ids));
    return buf_check(&w->mask);
}

/* ---- packing ---- */

static void packing_drop(struct packing *k)
{
    mem_free(k->bin);
    mem_free(k->space);
    mem_free(k->order);
    mem_free(k->first);
    mem_free(k->piece);
    mem_free(k->length);
}

static int packing_room(struct packing *k, int64_t n)
{
    size_t bytes = (size_t)(n + 1) * sizeof(int64_t);
    k->bin = mem_alloc(bytes);
    k->space = mem_alloc(bytes);
    k->order = mem_alloc(bytes);
    k->first = mem_alloc(bytes);
    k->piece = mem_alloc(bytes);
    k->length = mem_alloc(bytes);
    bool there = k->bin && k->space && k->order && k->first && k->piece && k->length;
    return there ? 0 : E_MEMORY;
}

/* Lists the pieces of each bin, in the window's order. */
static void list_bins(struct packing *k, int64_t n)
{
    memset(k->first, 0, (size_t)(k->bins + 1) * sizeof *k->first);
    for (int64_t i = 0; i < n; i++)
        k->first[k->bin[i] + 1]++;
    for (int64_t b = 0; b < k->bins; b++)
        k->first[b + 1] += k->first[b];
    /* Filling moves each start to the next bin's; then they are moved back. */
    for (int64_t i = 0; i < n; i++)
        k->piece[k->first[k->bin[i]]++] = i;
    memmove(k->first + 1, k->first, (size_t)k->bins * sizeof *k->first);
    k->first[0] = 0;
}

/* Sort keys: space descending, then the bin's number. */
static int by_space(const void *a, const void *b, void *ctx)
{
    const int32_t *space = ctx;
    const int64_t *x = a, *y = b;
    if (space[*x] != space[*y])
        return space[*x] > space[*y] ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

/* Orders the bins and returns how many of the first stay behind. */
static int64_t choose_carry(const struct window *w, struct packing *k, bool last)
{
    int64_t carry = 0;
    for (int64_t b = 0; b < k->bins; b++)
        k->order[b] = b;
    if (last)
        return 0;
    qsort_r(k->order, (size_t)k->bins, sizeof *k->order, by_space, k->space);
    while (carry < k->bins / WINDOW_CARRY &&
           k->space[k->order[carry]] > w->length / WINDOW_SLACK)
        carry++;
    return carry;
}

static int pack(struct window *w, struct packing *k)
{
    TRY(packing_room(k, w->n));
    for (int64_t i = 0; i < w->n; i++)
        k->length[i] = w->at[i].n;
    TRY(binpack(k->bin, k->space, &k->bins, k->length, (int32_t)w->n,
                (int32_t)w->length));
    list_bins(k, w->n);
    return 0;
}

/* ---- leaving ---- */

static int emit_bin(struct window *w, const int64_t *number, int64_t n,
                    struct piece *room)
{
    for (int64_t i = 0; i < n; i++) {
        const struct waiting *p = &w->at[number[i]];
        room[i] = (struct piece){.source = {p->source[0], p->source[1], p->source[2]},
                                 .n = p->n,
                                 .ids = (const int32_t *)(const void *)w->ids.p + p->at,
                                 .mask = (const uint8_t *)w->mask.p + p->at};
    }
    return emit_row(w->to, room, n);
}

static int emit_bins(struct window *w, struct packing *k, int64_t carry)
{
    uint64_t words[] = {w->seed, w->stream, (uint64_t)w->number};
    struct rng rng = rng_new(rng_key(words, 3));
    struct piece *room = mem_alloc(sizeof *room * (size_t)w->n);
    int rc = room ? 0 : E_MEMORY;
    rng_shuffle(&rng, k->order + carry, k->bins - carry);
    for (int64_t b = carry; b < k->bins && rc == 0; b++) {
        int64_t *list = k->piece + k->first[k->order[b]];
        int64_t n = k->first[k->order[b] + 1] - k->first[k->order[b]];
        rng_shuffle(&rng, list, n);
        rc = emit_bin(w, list, n, room);
    }
    mem_free(room);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Moves the pieces of the first `carry` bins to the front, in their old order. */
static void keep(struct window *w, struct packing *k, int64_t carry)
{
    int64_t n = 0, at = 0;
    for (int64_t b = 0; b < carry; b++)
        for (int64_t i = k->first[k->order[b]]; i < k->first[k->order[b] + 1]; i++)
            k->bin[n++] = (int32_t)k->piece[i];
    if (n > 0)
        qsort(k->bin, (size_t)n, sizeof *k->bin, by_number);
    int32_t *ids = (int32_t *)(void *)w->ids.p;
    for (int64_t i = 0; i < n; i++) {
        struct waiting *p = &w->at[i];
        *p = w->at[k->bin[i]];
        memmove(ids + at, ids + p->at, (size_t)p->n * sizeof *ids);
        memmove(w->mask.p + at, w->mask.p + p->at, (size_t)p->n);
        p->at = at;
        at += p->n;
    }
    w->n = n;
    w->ids.len = (size_t)at * sizeof *ids;
    w->mask.len = (size_t)at;
}

static int leave(struct window *w, bool last)
{
    struct packing k = {0};
    int rc = pack(w, &k);
    if (rc == 0) {
        int64_t carry = choose_carry(w, &k, last);
        rc = emit_bins(w, &k, carry);
        keep(w, &k, carry);
        w->number++;
    }
    packing_drop(&k);
    return rc;
}

int window_add(struct window *w, const struct piece *p, int64_t unsupervised)
{
    struct waiting what = {
        {p->source[0], p->source[1], p->source[2]}, tokens(w), (int32_t)p->n};
    TRY(append(w, &what));
    TRY(add_tokens(w, p, unsupervised));
    bool much = tokens(w) >= WINDOW_TOKENS && tokens(w) >= WINDOW_ROWS * w->length;
    return w->n >= w->pieces || much ? leave(w, false) : 0;
}

int window_end(struct window *w)
{
    return w->n > 0 ? leave(w, true) : 0;
}

void window_close(struct window *w)
{
    mem_free(w->at);
    buf_drop(&w->ids);
    buf_drop(&w->mask);
    *w = (struct window){0};
}
