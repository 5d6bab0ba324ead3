/* SPDX-License-Identifier: MIT */
/* transfer_parts.h - what the files of the transfer share; private to transfer*.c.
 *
 * One lock is over the queue, the tasks and the counts.  All that takes time (requests,
 * checksums, writing) happens outside of it, in the loop that has the piece. */
#ifndef TRANSFER_PARTS_H
#define TRANSFER_PARTS_H

#include <pthread.h>

#include "digest.h"
#include "err.h"
#include "http.h"
#include "pace.h"
#include "partial.h"
#include "pool.h"
#include "queue.h"
#include "transfer.h"
#include "want.h"

/* What a task keeps beside what the queue knows: task->user. */
struct keep {
    struct partial partial; /* of an object in many pieces */
    struct want want;
    int64_t part;    /* bytes of the first of its upload; 0: not asked, -1: not told */
    uint64_t *other; /* CRCs of pieces of the kind that is wanted, or NULL */
    uint64_t sum;    /* of an object in one piece */
    int64_t size;    /* the same */
    int restarts, moves;
    struct texts places;  /* URLs that it was redirected to */
    const char *location; /* the last of them, NULL: not redirected */
    char temp[PLACE_NAME], why[ERR_TEXT_MAX];
};

/* The caller is woken when so many have ended; a few can wait for its next look. */
enum { NEWS = 256 };

struct tasks {
    struct task *first, **last;
    int n;
};

struct transfer {
    const struct transfer_rules *rules;
    const struct place *place;
    pthread_mutex_t lock;
    pthread_cond_t news; /* for the caller */
    struct queue queue;
    struct pace pace;
    struct pool pool;
    struct transfer_state state;
    struct tasks fresh, ended; /* for the caller: to be opened; done with */
    int64_t left;              /* objects that have not ended */
    struct loop *loop;
    int loops;
    double success; /* when a piece last arrived */
    bool stop;
    int code; /* of what ends the run, and why */
    char why[ERR_TEXT_MAX];
};

/* One event loop. */
struct loop {
    struct transfer *t;
    struct http *http;
    pthread_t thread;
    bool running;
    struct flight *idle, *all;
    struct work held; /* taken, but there was no buffer for it; task NULL: none */
    uint64_t random;
};

/* One request in flight. */
struct flight {
    struct http_call call;
    struct loop *loop;
    struct work work;
    char *buffer;
    size_t size, got;     /* of the buffer */
    int64_t at;           /* bytes of the piece that were written before it */
    bool begun, also;     /* the body has begun; `other` is added up, too */
    uint64_t sum, other;  /* of all that came: CRC-64/NVME; another CRC */
    struct want_run *run; /* the same, when a digest is wanted; else NULL */
    int fd;               /* of an object in one piece that does not fit the buffer */
    int code;             /* why the body was refused, and */
    char why[ERR_TEXT_MAX];
    struct flight *next, *next_all;
};

static inline struct keep *keep_of(struct task *task)
{
    return task->user;
}

/* transfer_flight.c: one request.  flight_start begins work: 1, or 0 when there is no
 * buffer for it now.  flights_drop ends and frees all of a loop. */
int flight_start(struct loop *l, const struct work *w);
void flights_drop(struct loop *l);

/* transfer_loop.c: threads.  loops_open starts them, loops_close ends them. */
int loops_open(struct transfer *t);
void loops_close(struct transfer *t);

/* transfer_task.c, all under the lock: a task's first work was taken; one of its works
 * has ended; it fails with err_text(); it waits for the caller to open its file; the
 * run ends with err_text(). */
int task_begin(struct task *task);
void task_settle(struct transfer *t, struct task *task);
void task_fail(struct task *task, int code);
void task_hand_over(struct transfer *t, struct task *task);
void task_end(struct transfer *t, struct task *task);
void task_forget(struct transfer *t, struct task *task);
void task_fail_all(struct transfer *t, int code);
void tasks_append(struct tasks *list, struct task *task);

#endif
