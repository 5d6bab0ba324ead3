/* SPDX-License-Identifier: MIT */
/* par.c - a pool that runs one job at a time on all its threads.
 *
 * A job is a function that every thread enters with its worker number and leaves when
 * nothing is left to do; the caller enters it too and then waits for the others.  Loop
 * and stream are such jobs: what they share is taken by counter (loop) or under one
 * lock (stream).  Threads that have nothing to do sleep on a condition variable.
 *
 * Positions are handed out in ascending order.  After a failure at k only positions
 * above k are left out, so the smallest failing position is always met, whatever the
 * timing. */
#include "par.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"

typedef void job_fn(void *job, int worker);

struct worker {
    struct par *pool;
    pthread_t thread;
    int number;
};

struct par {
    int threads; // the caller counts
    int started; // workers that run, threads - 1 once open
    struct worker *worker;
    pthread_mutex_t lock;
    pthread_cond_t wake, rest; // a job or the end has come; the last worker is through
    job_fn *run;
    void *job;
    int64_t jobs; // counts jobs, so that a worker enters each one once
    int busy;     // workers still inside the job
    bool closing;
};

/* ---- the pool ---- */

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct par *p = w->pool;
    int64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->jobs == seen && !p->closing)
            pthread_cond_wait(&p->wake, &p->lock);
        if (p->closing)
            break;
        seen = p->jobs;
        pthread_mutex_unlock(&p->lock);
        p->run(p->job, w->number);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->rest);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void pool_run(struct par *p, job_fn *run, void *job)
{
    if (!p || p->threads == 1) {
        run(job, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->run = run;
    p->job = job;
    p->jobs++;
    p->busy = p->threads - 1;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    run(job, p->threads - 1);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0)
        pthread_cond_wait(&p->rest, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

int par_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* Signals stay with the caller's threads, whose blocking calls they shall interrupt. */
static int start_worker(struct par *p, int number)
{
    struct worker *w = &p->worker[number];
    sigset_t all, old;
    *w = (struct worker){.pool = p, .number = number};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e ? err_errno(e, "cannot start thread %d of %d", number + 1, p->threads) : 0;
}

int par_open(struct par **out, int threads)
{
    struct par *p = mem_zero(1, sizeof *p);
    if (!p)
        return E_MEMORY;
    p->threads = threads > 0 ? threads : par_processors();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->rest, NULL);
    p->worker = mem_zero((size_t)p->threads, sizeof *p->worker);
    int rc = p->worker ? 0 : E_MEMORY;
    while (rc == 0 && p->started < p->threads - 1) {
        rc = start_worker(p, p->started);
        p->started += rc == 0;
    }
    if (rc < 0) {
        par_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void par_close(struct par *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->rest);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->worker);
    mem_free(p);
}

int par_threads(const struct par *p)
{
    return p ? p->threads : 1;
}

/* ---- failures ---- */

/* The failure with the smallest position so far. */
struct failure {
    _Atomic int64_t at; // INT64_MAX: none
    int rc;
    char text[ERR_TEXT_MAX];
};

static void failure_note(struct failure *f, int64_t at, int rc)
{
    if (at < f->at) {
        f->at = at;
        f->rc = rc;
        memcpy(f->text, err_text(), sizeof f->text);
    }
}

static int failure_result(const struct failure *f)
{
    return f->at == INT64_MAX ? 0 : err_copy(f->rc, f->text);
}

/* ---- the loop ---- */

struct loop {
    int64_t n, grain;
    par_fn *fn;
    void *ctx;
    _Atomic int64_t next; // piece to hand out
    pthread_mutex_t lock; // of failure
    struct failure failure;
};

static void loop_run(void *job, int worker)
{
    struct loop *l = job;
    int64_t pieces = (l->n - 1) / l->grain + 1;
    for (;;) {
        int64_t piece = atomic_fetch_add(&l->next, 1);
        if (piece >= pieces || piece > l->failure.at)
            return;
        int64_t begin = piece * l->grain, left = l->n - begin;
        int rc =
            l->fn(l->ctx, begin, begin + (left < l->grain ? left : l->grain), worker);
        if (rc < 0) {
            pthread_mutex_lock(&l->lock);
            failure_note(&l->failure, piece, rc);
            pthread_mutex_unlock(&l->lock);
        }
    }
}

int par_for(struct par *p, int64_t n, int64_t grain, par_fn *fn, void *ctx)
{
    if (n <= 0)
        return 0;
    if (grain < 1)
        bug("par_for with a grain of %lld", (long long)grain);
    struct loop l = {.n = n, .grain = grain, .fn = fn, .ctx = ctx};
    l.failure.at = INT64_MAX;
    pthread_mutex_init(&l.lock, NULL);
    if (n <= grain) // waking the others would cost more than it gives
        loop_run(&l, par_threads(p) - 1);
    else
        pool_run(p, loop_run, &l);
    pthread_mutex_destroy(&l.lock);
    return failure_result(&l.failure);
}

/* ---- the stream ---- */

/* Items pass read, work and write in the order of their numbers; item i lies in slot
 * i mod slots.  Every thread takes whatever step is possible, the latest stage first,
 * so that slots become free soonest and one thread alone does item after item. */
struct stream {
    const struct par_stages *stages;
    void *ctx, **item;
    int slots;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int64_t to_read, to_work, to_write; // the next number of each stage
    bool *worked;                       // by slot
    bool reading, writing, ended;
    struct failure failure;
};

static void stream_read(struct stream *s)
{
    int64_t i = s->to_read;
    s->reading = true;
    pthread_mutex_unlock(&s->lock);
    int rc = s->stages->read(s->ctx, s->item[i % s->slots]);
    pthread_mutex_lock(&s->lock);
    s->reading = false;
    if (rc < 0)
        failure_note(&s->failure, i, rc);
    else if (rc == 0)
        s->ended = true;
    else
        s->to_read++;
}

static void stream_work(struct stream *s, int worker)
{
    int64_t i = s->to_work++;
    pthread_mutex_unlock(&s->lock);
    int rc = s->stages->work(s->ctx, s->item[i % s->slots], worker);
    pthread_mutex_lock(&s->lock);
    if (rc < 0)
        failure_note(&s->failure, i, rc);
    s->worked[i % s->slots] = true;
}

static void stream_write(struct stream *s)
{
    int64_t i = s->to_write;
    s->writing = true;
    pthread_mutex_unlock(&s->lock);
    int rc = s->stages->write(s->ctx, s->item[i % s->slots]);
    pthread_mutex_lock(&s->lock);
    s->writing = false;
    s->worked[i % s->slots] = false;
    if (rc < 0)
        failure_note(&s->failure, i, rc);
    else
        s->to_write++;
}

static bool can_write(const struct stream *s)
{
    return !s->writing && s->to_write < s->failure.at && s->to_write < s->to_work &&
           s->worked[s->to_write % s->slots];
}

static bool can_work(const struct stream *s)
{
    return s->to_work < s->to_read && s->to_work < s->failure.at;
}

static bool can_read(const struct stream *s)
{
    return !s->reading && !s->ended && s->to_read < s->failure.at &&
           s->to_read - s->to_write < s->slots;
}

/* All is written that ever will be: everything, or everything before the failure. */
static bool is_over(const struct stream *s)
{
    return s->to_write == s->failure.at || (s->ended && s->to_write == s->to_read);
}

static void stream_run(void *job, int worker)
{
    struct stream *s = job;
    pthread_mutex_lock(&s->lock);
    while (!is_over(s)) {
        if (can_write(s))
            stream_write(s);
        else if (can_work(s))
            stream_work(s, worker);
        else if (can_read(s))
            stream_read(s);
        else {
            pthread_cond_wait(&s->moved, &s->lock);
            continue;
        }
        pthread_cond_broadcast(&s->moved);
    }
    pthread_mutex_unlock(&s->lock);
}

int par_stream(struct par *p, const struct par_stages *stages, void *ctx, void **item,
               int items)
{
    struct stream s = {.stages = stages, .ctx = ctx, .item = item, .slots = items};
    if (items < 1)
        bug("par_stream with %d items", items);
    s.failure.at = INT64_MAX;
    s.worked = mem_zero((size_t)items, sizeof *s.worked);
    if (!s.worked)
        return E_MEMORY;
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.moved, NULL);
    pool_run(p, stream_run, &s);
    pthread_cond_destroy(&s.moved);
    pthread_mutex_destroy(&s.lock);
    mem_free(s.worked);
    return failure_result(&s.failure);
}
