/* SPDX-License-Identifier: MIT */
/* transfer.c - the caller's side: it opens the files of large objects, closes those
 * that are whole, and tells its user. */
#include "transfer.h"

#include <string.h>
#include <time.h>

#include "crc.h"
#include "log.h"
#include "mem.h"
#include "tool.h"
#include "transfer_parts.h"

enum { RESTARTS = 2 };

/* ---- opening ---- */

/* Is the file read once more when all of it is there (close_many)? */
static bool is_reread(const struct keep *k, const struct object *o)
{
    if (k->want.kind == WANT_NOTHING)
        return o->sha256 || o->blob;
    return k->want.kind != WANT_CRC || (k->want.crc != CRC64NVME && !k->other);
}

static int open_task(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    TRY(partial_open(&k->partial, t->place, task->object, t->rules->piece));
    memcpy(k->temp, k->partial.temp, sizeof k->temp);
    bool other = k->want.kind == WANT_CRC && k->want.crc != CRC64NVME;
    if (other && k->partial.have == 0 &&
        !(k->other = mem_zero((size_t)k->partial.pieces, sizeof *k->other)))
        return E_MEMORY;
    k->partial.reread = is_reread(k, task->object);
    return 0;
}

static void wake_loops(struct transfer *t)
{
    for (int i = 0; i < t->loops; i++)
        http_wake(t->loop[i].http);
}

static void open_fresh(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    int rc = open_task(t, task);
    pthread_mutex_lock(&t->lock);
    if (rc < 0) {
        task_fail(task, rc);
        task_end(t, task);
    } else {
        task->piece = k->partial.piece;
        task->pieces = k->partial.pieces;
        task->left = task->pieces - k->partial.have;
        task->have = k->partial.there;
        t->state.kept += k->partial.bytes;
        t->state.bytes += k->partial.bytes;
        if (task->left == 0)
            task_end(t, task);
        else
            queue_open(&t->queue, task);
    }
    pthread_mutex_unlock(&t->lock);
    wake_loops(t);
}

/* ---- checking what is whole ---- */

static uint64_t join(const struct task *task, enum crc kind, const uint64_t *of)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < task->pieces; i++) {
        struct piece p = piece_of(task->object, task->piece, i);
        sum = crc_join(kind, sum, of[i], (uint64_t)(p.end - p.begin));
    }
    return sum;
}

/* An object in many pieces: its sum, held against what is wanted; then it is closed. */
static int close_many(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    const struct object *o = task->object;
    const struct want *w = &k->want;
    struct want own;
    if (w->kind == WANT_NOTHING && (o->sha256 || o->blob)) { // there was no head
        TRY(want_of(&own, o, &(struct head){0}, 0));
        w = &own;
    }
    k->size = o->size;
    k->sum = join(task, CRC64NVME, k->partial.sum);
    if (w->kind == WANT_CRC && w->crc == CRC64NVME)
        TRY(want_crc(w, o, k->sum));
    else if (w->kind == WANT_CRC && k->other)
        TRY(want_crc(w, o, join(task, w->crc, k->other)));
    else if (w->kind != WANT_NOTHING)
        TRY(want_file(w, o, k->partial.fd, o->size));
    int fd = k->partial.fd;
    k->partial.fd = -1;
    return place_written(t->place, k->temp, fd, o->size, o->mtime_ns);
}

/* ---- ending ---- */

/* All pieces are there but one of them was damaged, nobody knows which. */
static int restart(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    k->restarts++;
    partial_close(&k->partial);
    partial_forget(t->place, task->object->key);
    mem_free(k->other);
    k->other = NULL;
    struct work head = {.task = task, .index = -1, .begun = log_now()};
    head.piece = (struct piece){task->object, PIECE_HEAD, 0, task->object->size};
    pthread_mutex_lock(&t->lock);
    t->state.wasted += task->object->size;
    t->state.bytes -= task->object->size;
    t->state.retries++;
    t->left++;
    task->next = 0;
    task->out++;
    int rc = queue_again(&t->queue, &head);
    pthread_mutex_unlock(&t->lock);
    wake_loops(t);
    return rc < 0 ? rc : 1;
}

/* The files of a failed object stay when another run may go on with them. */
static void leave(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    bool useless =
        task->code == E_IO || task->code == E_FORMAT || task->code == E_MISSING;
    partial_close(&k->partial);
    if (useless && task->pieces > 1)
        partial_forget(t->place, task->object->key);
}

/* 1: the task goes on. */
static int finish_task(struct transfer *t, struct task *task,
                       const struct transfer_user *user)
{
    struct keep *k = keep_of(task);
    if (task->code == 0 && task->pieces > 1) {
        int rc = close_many(t, task);
        if (rc == E_FORMAT && k->restarts < RESTARTS)
            return restart(t, task);
        if (rc < 0)
            task_fail(task, rc);
    }
    if (task->code < 0)
        leave(t, task);
    struct transfer_end end = {task->number, k->size, k->sum,         k->temp,
                               task->code,   k->why,  k->want.missing};
    return user->ended(user->ctx, &end);
}

/* Under the lock: of what is on its way, the object that began first. */
static void find_oldest(struct transfer *t)
{
    t->state.oldest = NULL;
    for (const struct task *task = t->queue.tasks; task; task = task->after) {
        if (task->code < 0 || task->left == 0)
            continue;
        t->state.oldest = task->object;
        t->state.oldest_done = 1 - (double)task->left / (double)task->pieces;
    }
}

/* Waits a moment for tasks to open or to end, and takes them all. */
static void wait_news(struct transfer *t, struct tasks *fresh, struct tasks *ended,
                      struct transfer_state *state)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&t->lock);
    if (!t->fresh.first && t->ended.n < NEWS && t->left > 0 && !t->stop)
        pthread_cond_timedwait(&t->news, &t->lock, &until);
    *fresh = t->fresh;
    *ended = t->ended;
    t->fresh = t->ended = (struct tasks){0};
    t->state.limit = t->pace.limit;
    find_oldest(t);
    *state = t->state;
    t->stop |= tool_stopped() != 0;
    pthread_mutex_unlock(&t->lock);
}

static int take_news(struct transfer *t, const struct transfer_user *user,
                     struct transfer_state *state)
{
    struct tasks fresh, ended;
    int rc = 0;
    wait_news(t, &fresh, &ended, state);
    for (struct task *task = fresh.first, *next; task; task = next) {
        next = task->link;
        open_fresh(t, task);
    }
    for (struct task *task = ended.first, *next; task; task = next) {
        next = task->link;
        int more = rc < 0 ? 0 : finish_task(t, task, user);
        if (more > 0)
            continue;
        rc = rc < 0 ? rc : more;
        pthread_mutex_lock(&t->lock);
        task_forget(t, task);
        pthread_mutex_unlock(&t->lock);
    }
    return rc < 0 ? rc : user->tick(user->ctx, state);
}

static int watch(struct transfer *t, const struct transfer_user *user,
                 struct transfer_state *state)
{
    int rc = 0;
    bool on = true;
    while (rc == 0 && on) {
        rc = take_news(t, user, state);
        pthread_mutex_lock(&t->lock);
        on = (t->left > 0 && !t->stop) || t->ended.first;
        pthread_mutex_unlock(&t->lock);
    }
    return rc;
}

/* ---- the run ---- */

static int run(struct transfer *t, const struct transfer_user *user,
               struct transfer_state *state)
{
    char why[ERR_TEXT_MAX];
    int rc = loops_open(t);
    if (rc == 0)
        rc = watch(t, user, state);
    memcpy(why, err_text(), strlen(err_text()) + 1);
    loops_close(t);
    if (rc == 0)
        rc = take_news(t, user, state); // what ended on the way
    else
        err_copy(rc, why);
    return rc == 0 && t->code < 0 ? err_copy(t->code, t->why) : rc;
}

int transfer_run(const struct objects *list, const bool *wanted,
                 const struct place *place, const struct transfer_rules *rules,
                 const struct transfer_user *user, struct transfer_state *state)
{
    struct transfer t = {.rules = rules, .place = place, .success = log_now()};
    *state = (struct transfer_state){0};
    for (int64_t i = 0; i < list->n; i++)
        t.left += wanted[i];
    if (t.left == 0)
        return 0;
    TRY(queue_start(&t.queue, list, wanted, rules->piece));
    pace_start(&t.pace, rules->connections, rules->rate, log_now());
    pool_open(&t.pool, rules->memory);
    pthread_mutex_init(&t.lock, NULL);
    pthread_cond_init(&t.news, NULL);
    int rc = run(&t, user, state);
    while (t.queue.tasks)
        task_forget(&t, t.queue.tasks);
    pthread_cond_destroy(&t.news);
    pthread_mutex_destroy(&t.lock);
    pool_close(&t.pool);
    queue_drop(&t.queue);
    return rc;
}
