/* SPDX-License-Identifier: MIT */
/* queue.c - two lanes and a heap of what is to be tried again. */
#include "queue.h"

#include <math.h>

#include "err.h"
#include "mem.h"

/* What a request costs beside its bytes, in bytes: a round trip at some speed. */
static const double REQUEST = 256 << 10;

static bool is_many(const struct queue *q, const struct object *o)
{
    return piece_count(o, q->piece) > 1;
}

static double cost_of(const struct piece *p)
{
    return REQUEST + (double)piece_bytes(p);
}

static int fill_lane(struct queue *q, struct lane *l, const bool *wanted, bool many)
{
    l->object = mem_alloc((size_t)q->list->n * sizeof *l->object);
    if (!l->object)
        return E_MEMORY;
    for (int64_t i = 0; i < q->list->n; i++) {
        const struct object *o = &q->list->at[i];
        if (!wanted[i] || is_many(q, o) != many)
            continue;
        l->object[l->n++] = i;
        l->cost += (double)(o->size > 0 ? o->size : 0) +
                   REQUEST * (double)piece_count(o, q->piece);
    }
    return 0;
}

int queue_start(struct queue *q, const struct objects *list, const bool *wanted,
                int64_t piece)
{
    *q = (struct queue){.list = list, .piece = piece};
    if (fill_lane(q, &q->one, wanted, false) == 0 &&
        fill_lane(q, &q->many, wanted, true) == 0)
        return 0;
    queue_drop(q);
    return E_MEMORY;
}

void queue_drop(struct queue *q)
{
    mem_free(q->one.object);
    mem_free(q->many.object);
    mem_free(q->again);
    *q = (struct queue){0};
}

/* ---- again: a binary heap, the soonest on top ---- */

static void swap(struct work *a, struct work *b)
{
    struct work t = *a;
    *a = *b;
    *b = t;
}

int queue_again(struct queue *q, const struct work *w)
{
    struct work *at = mem_room(q->again, q->n_again, &q->cap_again, sizeof *at);
    if (!at)
        return E_MEMORY;
    q->again = at;
    int64_t i = q->n_again++;
    at[i] = *w;
    for (; i > 0 && at[(i - 1) / 2].due > at[i].due; i = (i - 1) / 2)
        swap(&at[(i - 1) / 2], &at[i]);
    return 0;
}

static void take_soonest(struct queue *q, struct work *out)
{
    struct work *at = q->again;
    *out = at[0];
    at[0] = at[--q->n_again];
    for (int64_t i = 0, child; (child = 2 * i + 1) < q->n_again; i = child) {
        if (child + 1 < q->n_again && at[child + 1].due < at[child].due)
            child++;
        if (at[i].due <= at[child].due)
            break;
        swap(&at[i], &at[child]);
    }
}

double queue_due(const struct queue *q)
{
    return q->n_again > 0 ? q->again[0].due : HUGE_VAL;
}

/* ---- lanes ---- */

static void append(struct lane *l, struct task *t)
{
    t->link = NULL;
    if (l->first)
        l->last->link = t;
    else
        l->first = t;
    l->last = t;
}

void queue_open(struct queue *q, struct task *t)
{
    append(&q->many, t);
}

void queue_shut(struct queue *q, struct task *t)
{
    struct lane *l = &q->many;
    for (struct task **at = &l->first, *before = NULL; *at; at = &before->link) {
        if (*at == t) {
            *at = t->link;
            if (l->last == t)
                l->last = before;
            return;
        }
        before = *at;
    }
}

static struct task *begin(struct queue *q, struct lane *l)
{
    struct task *t = mem_zero(1, sizeof *t);
    if (!t)
        return NULL;
    t->number = l->object[l->next++];
    t->object = &q->list->at[t->number];
    t->piece = q->piece;
    t->pieces = t->left = piece_count(t->object, q->piece);
    t->after = q->tasks;
    if (q->tasks)
        q->tasks->before = t;
    q->tasks = t;
    return t;
}

void queue_forget(struct queue *q, struct task *t)
{
    if (t->before)
        t->before->after = t->after;
    else
        q->tasks = t->after;
    if (t->after)
        t->after->before = t->before;
    mem_free(t);
}

static int take_one(struct queue *q, struct work *out)
{
    struct lane *l = &q->one;
    if (l->next == l->n)
        return 0;
    struct task *t = begin(q, l);
    if (!t)
        return E_MEMORY;
    t->next = 1;
    t->out++;
    *out = (struct work){.task = t, .piece = piece_of(t->object, q->piece, 0)};
    l->done += cost_of(&out->piece);
    return 1;
}

/* The next piece of an open task that is not there yet; false: none. */
static bool next_piece(struct task *t, struct work *out)
{
    for (; t->next < t->pieces && t->code == 0; t->next++) {
        if (t->have && t->have[t->next])
            continue;
        out->task = t;
        out->index = t->next;
        out->piece = piece_of(t->object, t->piece, t->next++);
        return true;
    }
    return false;
}

static int take_many(struct queue *q, struct work *out)
{
    struct lane *l = &q->many;
    *out = (struct work){0};
    for (; l->first; l->first = l->first->link) {
        if (!next_piece(l->first, out))
            continue;
        out->task->out++;
        l->done += cost_of(&out->piece);
        return 1;
    }
    if (l->next == l->n)
        return 0;
    struct task *t = begin(q, l);
    if (!t)
        return E_MEMORY;
    t->out++;
    *out = (struct work){.task = t, .index = -1};
    out->piece = (struct piece){t->object, PIECE_HEAD, 0, t->object->size};
    return 1;
}

static double share_done(const struct lane *l)
{
    return l->cost > 0 ? l->done / l->cost : 1;
}

int queue_take(struct queue *q, double now, struct work *out)
{
    if (q->n_again > 0 && q->again[0].due <= now) {
        take_soonest(q, out);
        return 1;
    }
    bool many = share_done(&q->many) <= share_done(&q->one);
    int got = many ? take_many(q, out) : take_one(q, out);
    if (got == 0)
        got = many ? take_one(q, out) : take_many(q, out);
    return got;
}
