/* SPDX-License-Identifier: MIT */
/* queue.h - which piece of which object is asked for next.
 *
 * There is one queue over all objects, with two lanes: objects of one piece, whose cost
 * is mostly the request, and objects of many, whose cost is their bytes.  The lane that
 * is further behind goes next, so that both end together and neither starves; within a
 * lane the order is the list's, and an object's pieces go in ascending order.
 *
 * Nothing here waits, and one thread at a time may use it. */
#ifndef QUEUE_H
#define QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "object.h"
#include "piece.h"

/* An object on its way, from its first work until queue_forget. */
struct task {
    const struct object *object;
    int64_t number;              /* of the object in the list that was queued */
    int64_t piece;               /* bytes of one; may be changed before queue_open */
    int64_t pieces, next;        /* next: the first that was not handed out */
    int64_t left;                /* pieces that have not arrived */
    int out;                     /* work handed out, or waiting to be tried again */
    int code;                    /* not 0: it has failed, no more pieces go out */
    struct task *link;           /* of its lane; of its user when it has ended */
    struct task *before, *after; /* of all that live */
    void *user;
    const uint8_t *have; /* 1 for pieces that are there, or NULL; borrowed */
};

struct work {
    struct task *task;
    struct piece piece;
    int64_t index;        /* of the piece; -1: the head */
    int tries;            /* attempts before this one */
    int damages;          /* of them, those that brought wrong bytes */
    double due, begun;    /* not before; time of the first attempt */
    const char *location; /* of its user */
};

struct lane {
    int64_t *object; /* indices into the list, owned */
    int64_t n, next;
    struct task *first, *last; /* opened, with pieces to go */
    double cost, done;         /* of all, and of what was handed out */
};

struct queue {
    const struct objects *list;
    int64_t piece; /* bytes */
    struct lane one, many;
    struct task *tasks; /* handed out and not forgotten */
    struct work *again; /* a heap by time due */
    int64_t n_again, cap_again;
};

/* queue_start takes the objects of a list that `wanted` marks. */
int queue_start(struct queue *q, const struct objects *list, const bool *wanted,
                int64_t piece);
void queue_drop(struct queue *q);

/* queue_take gives the next work: 1, or 0 when nothing may go out at this time
 * (queue_due tells when the next retry is due, HUGE_VAL: none is waiting).  The first
 * work of an object comes with a new task; of an object in many pieces that is its
 * head, and its pieces go out after queue_open. */
int queue_take(struct queue *q, double now, struct work *out);
double queue_due(const struct queue *q);

/* queue_again puts work back to be handed out at w->due; E_MEMORY.  queue_open lets the
 * pieces of a task go out, from t->next on and without those that it has. */
int queue_again(struct queue *q, const struct work *w);
void queue_open(struct queue *q, struct task *t);

/* queue_shut: no more pieces of a task go out; its link is its user's from now on. */
void queue_shut(struct queue *q, struct task *t);

/* queue_forget takes a task from the queue's list of tasks and frees it, but not what
 * its user keeps with it. */
void queue_forget(struct queue *q, struct task *t);

#endif
