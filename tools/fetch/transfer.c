/* SPDX-License-Identifier: MIT */
/* transfer.c - one lock over queue and tasks; everything that takes time (requests,
 * checksums, writing) is done outside of it by the loop that has the piece. */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crc.h"
#include "err.h"
#include "file.h"
#include "log.h"
#include "mem.h"
#include "pool.h"
#include "queue.h"
#include "sha256.h"
#include "tool.h"

/* What a task keeps between its pieces. */
struct keep {
    int fd;        // of an object in many pieces, -1: not created
    uint64_t *sum; // of each piece, CRC-64/NVME
    uint64_t total;
    char why[ERR_TEXT_MAX];
};

struct transfer {
    const struct transfer_rules *rules;
    const struct place *place;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct queue queue;
    struct pool pool;
    struct transfer_state state;
    struct task *ended, **ended_last; // for the caller
    int64_t left;                     // objects that have not ended
    struct loop *loop;
    int loops;
    double success; // time of the last piece that arrived
    bool stop;
    int code; // of what ends the run
    char why[ERR_TEXT_MAX];
};

/* One event loop. */
struct loop {
    struct transfer *t;
    struct http *http;
    pthread_t thread;
    bool running;
    struct flight *idle, *all;
    struct work held; // taken, but there was no buffer for it; task NULL: none
    uint64_t random;
};

/* One request in flight. */
struct flight {
    struct http_call call;
    struct loop *loop;
    struct work work;
    char *buffer;
    size_t size, got; // of the buffer
    int64_t at;       // where the buffer's first byte goes, when it is filled again
    uint64_t sum;     // of what went before it
    int fd;           // of an object in one piece that does not fit the buffer
    int code;         // why the body was refused, with the text
    char why[ERR_TEXT_MAX];
    struct flight *next, *next_all;
};

/* ---- tasks ---- */

static struct keep *keep_of(struct task *t)
{
    return t->user;
}

static int keep_new(struct task *t)
{
    struct keep *k = mem_zero(1, sizeof *k);
    if (!k)
        return E_MEMORY;
    k->fd = -1;
    if (t->pieces > 1 && !(k->sum = mem_zero((size_t)t->pieces, sizeof *k->sum))) {
        mem_free(k);
        return E_MEMORY;
    }
    t->user = k;
    return 0;
}

/* Under the lock, or when no loop runs. */
static void forget(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    if (k) {
        if (k->fd >= 0)
            close(k->fd);
        mem_free(k->sum);
        mem_free(k);
    }
    queue_forget(&t->queue, task);
}

/* Under the lock.  A task has ended when nothing of it is out any more and it has
 * failed or is whole. */
static void settle(struct transfer *t, struct task *task)
{
    task->out--;
    if (task->out > 0 || (task->code == 0 && task->left > 0))
        return;
    task->link = NULL;
    *t->ended_last = task;
    t->ended_last = &task->link;
    t->left--;
    pthread_cond_signal(&t->news);
    if (t->left == 0)
        for (int i = 0; i < t->loops; i++)
            if (t->loop[i].http)
                http_wake(t->loop[i].http);
}

/* Under the lock: the task fails with the message in err_text. */
static void fail(struct task *task, int code)
{
    if (task->code == 0) {
        task->code = code;
        memcpy(keep_of(task)->why, err_text(), strlen(err_text()) + 1);
    }
}

/* Under the lock: everything ends. */
static void fail_all(struct transfer *t, int code)
{
    if (t->code == 0) {
        t->code = code;
        memcpy(t->why, err_text(), strlen(err_text()) + 1);
    }
    t->stop = true;
    pthread_cond_signal(&t->news);
}

/* ---- files ---- */

/* Reserves the room, so that a full disk shows before the bytes are fetched. */
static int reserve(int fd, const struct object *o)
{
    if (o->size <= 0 || fallocate(fd, 0, 0, o->size) == 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
        return 0; // then it shows later
    return err_errno(errno, "cannot write %s", o->key);
}

/* The file of a task with many pieces; created by the first one that goes out. */
static int open_file(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    if (k->fd >= 0)
        return 0;
    k->fd = place_create(t->place, task->number);
    TRY(k->fd < 0 ? k->fd : 0);
    return reserve(k->fd, task->object);
}

static int write_small(struct flight *f)
{
    struct task *task = f->work.task;
    const struct object *o = task->object;
    const struct place *place = f->loop->t->place;
    int fd = f->fd >= 0 ? f->fd : place_create(place, task->number);
    TRY(fd < 0 ? fd : 0);
    f->fd = -1;
    int rc = f->got > 0 ? file_pwrite(fd, f->buffer, f->got, f->at, o->key) : 0;
    if (rc == 0)
        rc = sha256_check(fd, f->at + (int64_t)f->got, o->sha256, o->key);
    if (rc < 0) {
        place_discard(place, task->number, fd);
        return rc;
    }
    return place_written(place, task->number, fd, f->at + (int64_t)f->got, o->mtime_ns);
}

/* ---- a piece ---- */

/* A body that is longer than the buffer: its file is written as it comes. */
static int spill(struct flight *f)
{
    struct task *task = f->work.task;
    if (f->fd < 0)
        f->fd = place_create(f->loop->t->place, task->number);
    TRY(f->fd < 0 ? f->fd : 0);
    TRY(file_pwrite(f->fd, f->buffer, f->got, f->at, task->object->key));
    f->sum = crc_add(CRC64NVME, f->sum, f->buffer, f->got);
    f->at += (int64_t)f->got;
    f->got = 0;
    return 0;
}

static int take_body(struct flight *f, const char *bytes, size_t n)
{
    const struct piece *p = &f->work.piece;
    if (f->at == 0 && f->got == 0)
        TRY(piece_check(p, &f->call.head));
    if (p->end >= 0 && f->at + (int64_t)(f->got + n) > p->end - p->begin)
        return err_set(E_REMOTE, "%s: more bytes than were asked for", p->object->key);
    while (n > 0) {
        size_t now = n < f->size - f->got ? n : f->size - f->got;
        memcpy(f->buffer + f->got, bytes, now);
        f->got += now;
        bytes += now;
        n -= now;
        if (n > 0)
            TRY(spill(f));
    }
    return 0;
}

static int on_body(struct http_call *c, const void *bytes, size_t n)
{
    struct flight *f = c->user;
    f->code = take_body(f, bytes, n);
    if (f->code < 0)
        memcpy(f->why, err_text(), strlen(err_text()) + 1);
    return f->code;
}

/* The sum of a whole object against what its reply says. */
static int check_sum(const struct object *o, const struct head *h, uint64_t sum)
{
    (void)o;
    (void)h;
    (void)sum;
    return 0;
}

/* All bytes are there: checked, and written. */
static int finish_piece(struct flight *f, uint64_t *sum)
{
    const struct piece *p = &f->work.piece;
    struct keep *k = keep_of(f->work.task);
    int64_t got = f->at + (int64_t)f->got;
    if (got == 0) // no body, so nobody has looked
        TRY(piece_check(p, &f->call.head));
    if (p->end >= 0 && got != p->end - p->begin)
        return err_set(E_REMOTE, "%s: %lld of %lld bytes came", p->object->key,
                       (long long)got, (long long)(p->end - p->begin));
    *sum = crc_add(CRC64NVME, f->sum, f->buffer, f->got);
    if (p->kind == PIECE_RANGE)
        return file_pwrite(k->fd, f->buffer, f->got, p->begin, p->object->key);
    TRY(check_sum(p->object, &f->call.head, *sum));
    return write_small(f);
}

/* Under the lock. */
static void take_piece(struct transfer *t, struct flight *f, uint64_t sum)
{
    struct task *task = f->work.task;
    struct keep *k = keep_of(task);
    int64_t got = f->at + (int64_t)f->got;
    t->state.bytes += got;
    t->success = log_now();
    if (k->sum)
        k->sum[f->work.index] = sum;
    else
        k->total = sum;
    task->left--;
}

/* Under the lock: tries again, if that may help and is not too late. */
static void retry(struct transfer *t, struct flight *f, int code, enum verdict v)
{
    struct work *w = &f->work;
    w->tries++;
    if (v == VERDICT_NEVER || w->tries > t->rules->retries || w->task->code < 0) {
        fail(w->task, code);
        if (v != VERDICT_NEVER && t->success < w->begun && t->left > 1)
            fail_all(t, code); // nothing at all has come since its first attempt
        settle(t, w->task);
        return;
    }
    bool now = v == VERDICT_NOW && w->tries <= 2;
    double pause =
        now ? 0 : retry_delay(w->tries, f->call.head.retry_after, &f->loop->random);
    w->due = log_now() + pause;
    t->state.retries++;
    if (queue_again(&t->queue, w) < 0) {
        fail(w->task, E_MEMORY);
        settle(t, w->task);
    }
}

/* What the end of a call means; the message is in err_text. */
static int judge(struct flight *f, enum verdict *v)
{
    const struct piece *p = &f->work.piece;
    struct source *s = p->object->source;
    if (f->code < 0) { // our own refusal of the body
        *v = f->code == E_REMOTE ? VERDICT_LATER : VERDICT_NEVER;
        return err_copy(f->code, f->why);
    }
    return s->scheme->judge(s, p, &f->call, v);
}

static void give_up_buffer(struct flight *f)
{
    if (f->buffer)
        pool_give(&f->loop->t->pool, f->buffer, f->size);
    f->buffer = NULL;
    if (f->fd >= 0)
        place_discard(f->loop->t->place, f->work.task->number, f->fd);
    f->fd = -1;
}

static void on_done(struct http_call *c)
{
    struct flight *f = c->user;
    struct transfer *t = f->loop->t;
    enum verdict v = VERDICT_LATER;
    uint64_t sum = 0;
    int rc = judge(f, &v);
    bool head = f->work.index < 0;
    if (rc == 0 && head) {
        rc = piece_check(&f->work.piece, &c->head);
        v = rc == E_REMOTE ? VERDICT_LATER : VERDICT_NEVER;
    } else if (rc == 0) {
        rc = finish_piece(f, &sum);
        v = rc == E_REMOTE ? VERDICT_LATER : VERDICT_NEVER;
    }
    pthread_mutex_lock(&t->lock);
    t->state.flying--;
    if (rc < 0) {
        t->state.wasted += f->call.received;
        retry(t, f, rc, v);
    } else {
        if (head)
            queue_open(&t->queue, f->work.task);
        else
            take_piece(t, f, sum);
        settle(t, f->work.task);
    }
    pthread_mutex_unlock(&t->lock);
    give_up_buffer(f);
    f->next = f->loop->idle;
    f->loop->idle = f;
}

/* ---- the loop ---- */

static struct flight *flight_new(struct loop *l)
{
    struct flight *f = l->idle;
    if (f) {
        l->idle = f->next;
        return f;
    }
    if (!(f = mem_zero(1, sizeof *f)))
        return NULL;
    f->loop = l;
    f->call.user = f;
    f->call.done = on_done;
    f->call.body = on_body;
    f->fd = -1;
    f->next_all = l->all;
    l->all = f;
    return f;
}

static size_t buffer_size(const struct transfer *t, const struct piece *p)
{
    int64_t want = p->end >= 0 ? p->end - p->begin : t->rules->piece;
    return (size_t)(want < t->rules->piece ? want : t->rules->piece);
}

/* 1: started; 0: no buffer, the work stays with the caller. */
static int start(struct loop *l, const struct work *w)
{
    struct transfer *t = l->t;
    const struct piece *p = &w->piece;
    struct source *s = p->object->source;
    struct flight *f = flight_new(l);
    if (!f)
        return E_MEMORY;
    f->work = *w;
    f->size = f->got = 0;
    f->at = 0;
    f->sum = 0;
    f->code = 0;
    if (p->kind != PIECE_HEAD) {
        f->size = buffer_size(t, p);
        f->buffer = pool_take(&t->pool, f->size);
    }
    int rc = p->kind != PIECE_HEAD && !f->buffer ? 0 : 1;
    if (rc > 0) {
        http_call_clear(&f->call);
        rc = s->scheme->ask(s, p, &f->call);
        rc = rc < 0 ? rc : http_start(l->http, &f->call);
        rc = rc < 0 ? rc : 1;
    }
    if (rc <= 0) {
        give_up_buffer(f);
        f->next = l->idle;
        l->idle = f;
    }
    return rc;
}

/* Takes work from the queue; 1, 0: none now.  A task is made ready by its first work.
 */
static int take(struct loop *l, struct work *out)
{
    struct transfer *t = l->t;
    int rc = 0;
    if (l->held.task) {
        *out = l->held;
        l->held.task = NULL;
        return 1;
    }
    pthread_mutex_lock(&t->lock);
    if (t->state.flying < t->rules->connections && !t->stop)
        rc = queue_take(&t->queue, log_now(), out);
    if (rc > 0) {
        struct task *task = out->task;
        int ready = task->user ? 0 : keep_new(task);
        if (ready == 0 && out->piece.kind == PIECE_RANGE)
            ready = open_file(t, task);
        if (ready < 0 && !task->user) {
            rc = ready;
        } else if (ready < 0) {
            fail(task, ready);
            settle(t, task);
            out->task = NULL;
        } else {
            t->state.flying++;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

/* Starts what may be started; 1: there may be more when a call has ended. */
static int fill(struct loop *l)
{
    struct work w;
    int rc;
    while ((rc = take(l, &w)) > 0) {
        if (!w.task)
            continue;
        if (w.begun == 0)
            w.begun = log_now();
        rc = start(l, &w);
        if (rc == 0)
            l->held = w;
        if (rc <= 0)
            break;
    }
    return rc;
}

static double wait_of(struct loop *l)
{
    struct transfer *t = l->t;
    pthread_mutex_lock(&t->lock);
    double due = queue_due(&t->queue) - log_now();
    pthread_mutex_unlock(&t->lock);
    double most = l->held.task || http_flying(l->http) == 0 ? 0.01 : 0.25;
    return fmax(0, fmin(due, most));
}

static bool goes_on(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    bool on = t->left > 0 && !t->stop;
    pthread_mutex_unlock(&t->lock);
    return on;
}

static void *run_loop(void *arg)
{
    struct loop *l = arg;
    int rc = 0;
    while (rc >= 0 && goes_on(l->t)) {
        rc = fill(l);
        if (rc >= 0)
            rc = http_turn(l->http, wait_of(l));
    }
    if (rc < 0) {
        pthread_mutex_lock(&l->t->lock);
        fail_all(l->t, rc);
        pthread_mutex_unlock(&l->t->lock);
    }
    return NULL;
}

static int open_loops(struct transfer *t)
{
    t->loop = mem_zero((size_t)t->rules->threads, sizeof *t->loop);
    if (!t->loop)
        return E_MEMORY;
    for (int i = 0; i < t->rules->threads; i++, t->loops++) {
        struct loop *l = &t->loop[i];
        l->t = t;
        l->random = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid() << 8 ^ (uint64_t)i;
        TRY(http_open(&l->http, &t->rules->http));
    }
    for (int i = 0; i < t->loops; i++) {
        if (pthread_create(&t->loop[i].thread, NULL, run_loop, &t->loop[i]) != 0)
            return err_set(E_MEMORY, "cannot start a thread");
        t->loop[i].running = true;
    }
    return 0;
}

static void close_loop(struct loop *l)
{
    if (l->running)
        pthread_join(l->thread, NULL);
    http_close(l->http);
    for (struct flight *f = l->all, *next; f; f = next) {
        next = f->next_all;
        give_up_buffer(f);
        http_call_drop(&f->call);
        mem_free(f);
    }
}

/* ---- the caller's side ---- */

/* The sum of an object from those of its pieces. */
static uint64_t join_sums(const struct task *task, const struct keep *k, int64_t size)
{
    uint64_t sum = 0;
    for (int64_t i = 0; k->sum && i < task->pieces; i++) {
        struct piece p = piece_of(task->object, size, i);
        sum = crc_join(CRC64NVME, sum, k->sum[i], (uint64_t)(p.end - p.begin));
    }
    return k->sum ? sum : k->total;
}

static int finish_task(struct transfer *t, struct task *task,
                       const struct transfer_user *user)
{
    struct keep *k = keep_of(task);
    const struct object *o = task->object;
    int code = task->code;
    if (code < 0)
        err_copy(code, k->why);
    uint64_t sum = code < 0 ? 0 : join_sums(task, k, t->rules->piece);
    if (k->fd >= 0 && code == 0)
        code = sha256_check(k->fd, o->size, o->sha256, o->key);
    if (k->fd >= 0 && code == 0)
        code = place_written(t->place, task->number, k->fd, o->size, o->mtime_ns);
    else if (k->fd >= 0)
        place_discard(t->place, task->number, k->fd);
    k->fd = -1;
    return user->ended(user->ctx, task->number, sum, code, code < 0 ? err_text() : "");
}

/* Waits a moment for tasks that have ended, and takes them all. */
static struct task *wait_ended(struct transfer *t, struct transfer_state *state)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&t->lock);
    if (!t->ended && !t->stop)
        pthread_cond_timedwait(&t->news, &t->lock, &until);
    struct task *list = t->ended;
    t->ended = NULL;
    t->ended_last = &t->ended;
    *state = t->state;
    t->stop |= tool_stop != 0;
    pthread_mutex_unlock(&t->lock);
    return list;
}

static int take_ended(struct transfer *t, const struct transfer_user *user,
                      struct transfer_state *state)
{
    int rc = 0;
    for (struct task *task = wait_ended(t, state), *next; task; task = next) {
        next = task->link;
        if (rc == 0)
            rc = finish_task(t, task, user);
        pthread_mutex_lock(&t->lock);
        forget(t, task);
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
        rc = take_ended(t, user, state);
        pthread_mutex_lock(&t->lock);
        on = (t->left > 0 || t->ended) && !t->stop;
        pthread_mutex_unlock(&t->lock);
    }
    return rc;
}

int transfer_run(const struct objects *list, const bool *wanted,
                 const struct place *place, const struct transfer_rules *rules,
                 const struct transfer_user *user, struct transfer_state *state)
{
    struct transfer t = {.rules = rules, .place = place, .success = log_now()};
    t.ended_last = &t.ended;
    *state = (struct transfer_state){0};
    for (int64_t i = 0; i < list->n; i++)
        t.left += wanted[i];
    TRY(queue_start(&t.queue, list, wanted, rules->piece));
    pthread_mutex_init(&t.lock, NULL);
    pthread_cond_init(&t.news, NULL);
    pool_open(&t.pool, rules->memory);
    int rc = open_loops(&t);
    if (rc == 0)
        rc = watch(&t, user, state);
    char why[ERR_TEXT_MAX];
    memcpy(why, err_text(), strlen(err_text()) + 1);
    pthread_mutex_lock(&t.lock);
    t.stop = true;
    pthread_mutex_unlock(&t.lock);
    for (int i = 0; i < t.loops; i++)
        close_loop(&t.loop[i]);
    mem_free(t.loop);
    if (rc == 0)
        rc = take_ended(&t, user, state);
    else
        err_copy(rc, why);
    if (rc == 0 && t.code < 0)
        rc = err_copy(t.code, t.why);
    while (t.queue.tasks)
        forget(&t, t.queue.tasks);
    pool_close(&t.pool);
    queue_drop(&t.queue);
    pthread_cond_destroy(&t.news);
    pthread_mutex_destroy(&t.lock);
    return rc;
}
