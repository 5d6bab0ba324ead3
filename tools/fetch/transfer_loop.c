/* SPDX-License-Identifier: MIT */
/* transfer_loop.c - a thread that starts what may be started and waits for the network.
 */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "mem.h"
#include "transfer_parts.h"

static const double WAIT = 0.25;  // at most, with requests in flight
static const double LOOK = 0.02;  // without any: there may be something new
static const double SOON = 0.005; // for a buffer that another loop gives back

static bool wants_head(const struct object *o)
{
    return o->source->scheme->head && (o->md5 || !o->source->rules->no_checksum);
}

/* An ETag of many MD5s says how many, but not of which bytes each. */
static bool wants_part(struct task *task)
{
    return task->object->md5 && keep_of(task)->part == 0 &&
           want_parts(task->object) > 1;
}

/* Under the lock: the next work that needs a request. */
static int take_next(struct transfer *t, struct work *out, double now)
{
    int rc;
    while ((rc = queue_take(&t->queue, now, out)) > 0) {
        struct task *task = out->task;
        if (!task->user)
            TRY(task_begin(task));
        if (out->index < 0 && !wants_head(task->object)) {
            task->out--;
            task_hand_over(t, task);
        } else if (task->code < 0) {
            task_settle(t, task); // what is to be tried again, of what has failed
        } else {
            break;
        }
    }
    return rc;
}

static int take(struct loop *l, struct work *out)
{
    struct transfer *t = l->t;
    int rc = 0;
    if (l->held.task) {
        *out = l->held;
        l->held.task = NULL;
        return 1;
    }
    double now = log_now();
    pthread_mutex_lock(&t->lock);
    if (!t->stop && pace_may(&t->pace, (int)t->state.flying, now))
        rc = take_next(t, out, now);
    if (rc > 0 && wants_part(out->task))
        out->piece = (struct piece){out->task->object, PIECE_PART, 0, 0};
    if (rc > 0) {
        t->state.flying++;
        pace_begin(&t->pace, out->index < 0 ? 0 : piece_bytes(&out->piece), now);
        out->location = keep_of(out->task)->location;
        if (out->begun == 0)
            out->begun = now;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static int fill(struct loop *l)
{
    struct work w;
    int rc;
    while ((rc = take(l, &w)) > 0) {
        rc = flight_start(l, &w);
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
    double now = log_now();
    pthread_mutex_lock(&t->lock);
    double due = fmax(queue_due(&t->queue) - now, pace_wait(&t->pace, now));
    if (t->rules->rate > 0)
        due = fmin(due, fmax(pace_wait(&t->pace, now), 1e-3));
    pthread_mutex_unlock(&t->lock);
    double most = l->held.task ? SOON : http_flying(l->http) > 0 ? WAIT : LOOK;
    return fmax(0, fmin(due, most));
}

static bool goes_on(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    bool on = !t->stop;
    pthread_mutex_unlock(&t->lock);
    return on;
}

static void *run(void *arg)
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
        task_fail_all(l->t, rc);
        pthread_mutex_unlock(&l->t->lock);
    }
    return NULL;
}

int loops_open(struct transfer *t)
{
    int n = t->rules->threads;
    if (!(t->loop = mem_zero((size_t)n, sizeof *t->loop)))
        return E_MEMORY;
    for (int i = 0; i < n; i++) {
        struct loop *l = &t->loop[i];
        l->t = t;
        l->random = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid() << 8 ^ (uint64_t)i;
        TRY(http_open(&l->http, &t->rules->http));
        t->loops++;
    }
    for (int i = 0; i < n; i++) {
        struct loop *l = &t->loop[i];
        if (pthread_create(&l->thread, NULL, run, l) != 0)
            return err_set(E_MEMORY, "cannot start a thread");
        l->running = true;
    }
    return 0;
}

void loops_close(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->loops; i++)
        http_wake(t->loop[i].http);
    for (int i = 0; i < t->loops; i++) {
        struct loop *l = &t->loop[i];
        if (l->running)
            pthread_join(l->thread, NULL);
        flights_drop(l);
        http_close(l->http);
    }
    mem_free(t->loop);
    t->loop = NULL;
    t->loops = 0;
}
