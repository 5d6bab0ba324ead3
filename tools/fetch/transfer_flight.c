/* SPDX-License-Identifier: MIT */
/* transfer_flight.c - one request: what comes is held against what was asked for, added
 * up, gathered in a window, and written a window at a time.
 *
 * A window is small, so that its bytes are still in the processor's cache when they are
 * written, and a piece may be of any size: what a piece has written counts only when
 * all of it came (partial_note, place_written).  An object that fits into a window has
 * no file before it is known to be right. */
#include <string.h>

#include "crc.h"
#include "file.h"
#include "log.h"
#include "mem.h"
#include "transfer_parts.h"

enum { DAMAGED_TRIES = 3 }; // a checksum that is wrong so often is wrong at the source

/* ---- the body ---- */

static const char *key_of(const struct flight *f)
{
    return f->work.task->object->key;
}

/* The first bytes: are they what was asked for, and what will they be checked by? */
static int begin_body(struct flight *f)
{
    const struct piece *p = &f->work.piece;
    struct keep *k = keep_of(f->work.task);
    struct want *w = &k->want;
    TRY(piece_check(p, &f->call.head));
    if (p->kind == PIECE_WHOLE)
        TRY(want_of(w, p->object, &f->call.head, k->part));
    f->also = w->kind == WANT_CRC && w->crc != CRC64NVME &&
              (p->kind == PIECE_WHOLE || k->other);
    if (p->kind == PIECE_WHOLE && w->kind == WANT_DIGEST &&
        !(f->run = want_begin(w, p->object->size)))
        return E_MEMORY;
    f->begun = true;
    return 0;
}

static void add_up(struct flight *f, const char *bytes, size_t n)
{
    f->sum = crc_add(CRC64NVME, f->sum, bytes, n);
    if (f->also)
        f->other = crc_add(keep_of(f->work.task)->want.crc, f->other, bytes, n);
    if (f->run)
        want_add(f->run, bytes, n);
}

/* Writes the window to the piece's place in its file. */
static int write_window(struct flight *f)
{
    const struct piece *p = &f->work.piece;
    const struct keep *k = keep_of(f->work.task);
    int fd = k->partial.fd;
    if (p->kind == PIECE_WHOLE) {
        if (f->fd < 0)
            f->fd = place_create(f->loop->t->place, k->temp);
        TRY(fd = f->fd);
    }
    if (f->got > 0)
        TRY(file_pwrite(fd, f->buffer, f->got, p->begin + f->at, key_of(f)));
    f->at += (int64_t)f->got;
    f->got = 0;
    return 0;
}

static int take_body(struct flight *f, const char *bytes, size_t n)
{
    const struct piece *p = &f->work.piece;
    if (!f->begun)
        TRY(begin_body(f));
    if (p->end >= 0 && f->at + (int64_t)(f->got + n) > p->end - p->begin)
        return err_set(E_REMOTE, "%s: more bytes than were asked for", key_of(f));
    add_up(f, bytes, n);
    while (n > 0) {
        if (f->got == f->size)
            TRY(write_window(f));
        size_t now = n < f->size - f->got ? n : f->size - f->got;
        memcpy(f->buffer + f->got, bytes, now);
        f->got += now;
        bytes += now;
        n -= now;
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

/* ---- all bytes are there ---- */

static int check_whole(struct flight *f)
{
    const struct object *o = f->work.task->object;
    const struct want *w = &keep_of(f->work.task)->want;
    struct want_run *run = f->run;
    f->run = NULL;
    return run ? want_end(run, o) : want_crc(w, o, f->also ? f->other : f->sum);
}

/* A body of no known size that ended with its connection: nothing tells it from a part
 * of one, unless a checksum does. */
static bool may_lack(const struct flight *f)
{
    const struct head *h = &f->call.head;
    return f->work.piece.end < 0 && h->length < 0 && !h->coding[0] &&
           keep_of(f->work.task)->want.kind == WANT_NOTHING;
}

static int finish_whole(struct flight *f)
{
    struct keep *k = keep_of(f->work.task);
    TRY(check_whole(f));
    if (may_lack(f))
        k->want.missing =
            "the server tells neither its size nor a checksum, so its end "
            "may be missing";
    TRY(write_window(f));
    int fd = f->fd;
    f->fd = -1;
    k->sum = f->sum;
    k->size = f->at;
    return place_written(f->loop->t->place, k->temp, fd, k->size,
                         f->work.task->object->mtime_ns);
}

static int finish_piece(struct flight *f)
{
    struct keep *k = keep_of(f->work.task);
    if (f->also)
        k->other[f->work.index] = f->other;
    TRY(write_window(f));
    return partial_note(&k->partial, f->work.index, f->sum);
}

static int finish(struct flight *f)
{
    const struct piece *p = &f->work.piece;
    int64_t got = f->at + (int64_t)f->got;
    struct keep *k = keep_of(f->work.task);
    if (p->kind == PIECE_HEAD) {
        TRY(piece_check(p, &f->call.head));
        return want_of(&k->want, p->object, &f->call.head, k->part);
    }
    if (p->kind == PIECE_PART) { // a server without such requests answers as to others
        TRY(piece_check(p, &f->call.head));
        bool told = f->call.head.parts > 0 && f->call.head.length > 0 &&
                    f->call.head.length <= p->object->size;
        k->part = told ? f->call.head.length : -1;
        return 0;
    }
    if (!f->begun) // no body
        TRY(begin_body(f));
    if (p->end >= 0 && got != p->end - p->begin)
        return err_set(E_REMOTE, "%s: %lld of %lld bytes came", key_of(f),
                       (long long)got, (long long)(p->end - p->begin));
    return p->kind == PIECE_RANGE ? finish_piece(f) : finish_whole(f);
}

/* ---- the end of a call ---- */

/* A server that knows no parts: their size is not told, and that is all. */
static bool refuses_parts(struct flight *f, int code, enum verdict v)
{
    bool refuses = f->work.piece.kind == PIECE_PART && v == VERDICT_NEVER &&
                   (code == E_CONFIG || code == E_REMOTE) && f->call.end == HTTP_WHOLE;
    if (refuses)
        keep_of(f->work.task)->part = -1;
    return refuses;
}

/* What the end of a call means; the message is in err_text. */
static int judge(struct flight *f, enum verdict *v)
{
    struct source *s = f->work.task->object->source;
    int rc = f->code;
    if (rc < 0) // we ended it ourselves
        err_copy(rc, f->why);
    else if ((rc = s->scheme->judge(s, &f->work.piece, &f->call, v)) < 0)
        return refuses_parts(f, rc, *v) ? 0 : rc;
    else
        rc = finish(f);
    *v = rc == E_REMOTE || rc == E_FORMAT ? VERDICT_LATER : VERDICT_NEVER;
    return rc;
}

/* Under the lock: where the object has gone. */
static int move(struct flight *f)
{
    struct keep *k = keep_of(f->work.task);
    struct buf url = {0};
    int rc = scheme_move(&url, &f->call, &k->moves);
    if (rc == 0 && !(k->location = texts_add(&k->places, url.p)))
        rc = E_MEMORY;
    buf_drop(&url);
    return rc;
}

/* Under the lock: a place that an object was redirected to may be gone after a while;
 * then the way there is asked for again. */
static bool move_back(struct flight *f)
{
    struct keep *k = keep_of(f->work.task);
    int status = f->call.head.status;
    if (!f->work.location || f->call.end != HTTP_WHOLE ||
        (status != 401 && status != 403 && status != 404 && status != 410) ||
        f->work.tries > 2)
        return false;
    if (k->location == f->work.location)
        k->location = NULL;
    k->moves = 0;
    return true;
}

/* Under the lock: what a redirect, or the end of one, makes of the verdict. */
static int follow(struct flight *f, int code, enum verdict *v)
{
    if (*v == VERDICT_NEVER && move_back(f))
        *v = VERDICT_NOW;
    if (*v != VERDICT_MOVED)
        return code;
    int rc = move(f);
    if (rc < 0)
        *v = VERDICT_NEVER;
    return rc < 0 ? rc : code;
}

static bool is_enough(const struct flight *f, int code)
{
    return f->work.tries > f->loop->t->rules->retries || f->work.task->code < 0 ||
           (code == E_FORMAT && f->work.damages >= DAMAGED_TRIES);
}

/* Under the lock. */
static void give_up(struct flight *f, int code, enum verdict v)
{
    struct transfer *t = f->loop->t;
    struct task *task = f->work.task;
    task_fail(task, code);
    if (code == E_REMOTE && v != VERDICT_NEVER && t->success < f->work.begun &&
        t->left > 1)
        task_fail_all(t, code); // nothing at all has come since its first attempt
    task_settle(t, task);
}

/* Under the lock: tries again, if that may help and is not too late. */
static void retry(struct flight *f, int code, enum verdict v)
{
    struct transfer *t = f->loop->t;
    struct work *w = &f->work;
    double now = log_now(), pause = 0;
    code = follow(f, code, &v);
    if (v == VERDICT_SLOW)
        pace_slow(&t->pace, now);
    w->tries += v != VERDICT_MOVED;
    w->damages += code == E_FORMAT;
    if (v == VERDICT_NEVER || is_enough(f, code)) {
        give_up(f, code, v);
        return;
    }
    if (v != VERDICT_MOVED && (v != VERDICT_NOW || w->tries > 3))
        pause = retry_delay(w->tries, f->call.head.retry_after, &f->loop->random);
    w->due = now + pause;
    t->state.retries += v != VERDICT_MOVED;
    if (queue_again(&t->queue, w) < 0)
        give_up(f, E_MEMORY, VERDICT_NEVER);
}

/* Under the lock: the work for which the size of parts was asked first. */
static void go_on(struct flight *f)
{
    struct task *task = f->work.task;
    struct work w = {.task = task, .index = f->work.index};
    const struct piece head = {task->object, PIECE_HEAD, 0, task->object->size};
    w.piece = w.index < 0 ? head : piece_of(task->object, task->piece, w.index);
    if (queue_again(&f->loop->t->queue, &w) < 0)
        give_up(f, E_MEMORY, VERDICT_NEVER);
}

/* Under the lock. */
static void arrive(struct flight *f)
{
    struct transfer *t = f->loop->t;
    struct task *task = f->work.task;
    int64_t got = f->at + (int64_t)f->got;
    t->success = log_now();
    if (f->work.piece.kind == PIECE_PART) {
        go_on(f);
        return;
    }
    if (f->work.index < 0) {
        task->out--;
        task_hand_over(t, task);
        return;
    }
    pace_got(&t->pace, got, t->success);
    t->state.bytes += got;
    task->left--;
    task_settle(t, task);
}

static void clear(struct flight *f)
{
    if (f->buffer)
        pool_give(&f->loop->t->pool, f->buffer, f->size);
    f->buffer = NULL;
    want_drop(f->run);
    f->run = NULL;
    if (f->fd >= 0)
        place_discard(f->loop->t->place, keep_of(f->work.task)->temp, f->fd);
    f->fd = -1;
    f->next = f->loop->idle;
    f->loop->idle = f;
}

static void on_done(struct http_call *c)
{
    struct flight *f = c->user;
    struct transfer *t = f->loop->t;
    enum verdict v = VERDICT_NEVER;
    int rc = judge(f, &v);
    if (f->fd >= 0) // an attempt that failed leaves nothing
        place_discard(t->place, keep_of(f->work.task)->temp, f->fd);
    f->fd = -1;
    pthread_mutex_lock(&t->lock);
    t->state.flying--;
    if (rc < 0) {
        t->state.wasted += c->received;
        retry(f, rc, v);
    } else {
        arrive(f);
    }
    pthread_mutex_unlock(&t->lock);
    clear(f);
}

/* ---- the beginning ---- */

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

static size_t window_size(const struct piece *p)
{
    int64_t want = p->end >= 0 ? p->end - p->begin : TRANSFER_WINDOW;
    return (size_t)(want < TRANSFER_WINDOW ? want : TRANSFER_WINDOW);
}

static int send(struct flight *f)
{
    struct source *s = f->work.task->object->source;
    http_call_clear(&f->call);
    TRY(s->scheme->ask(s, &f->work.piece, &f->call));
    if (f->work.location)
        http_call_move(&f->call, f->work.location);
    TRY(http_start(f->loop->http, &f->call));
    return 1;
}

int flight_start(struct loop *l, const struct work *w)
{
    struct flight *f = flight_new(l);
    if (!f)
        return E_MEMORY;
    f->work = *w;
    f->size = f->got = 0;
    f->at = 0;
    f->sum = f->other = 0;
    f->begun = f->also = false;
    f->code = 0;
    bool bare = w->piece.kind == PIECE_HEAD || w->piece.kind == PIECE_PART;
    if (!bare) {
        f->size = window_size(&w->piece);
        f->buffer = pool_take(&l->t->pool, f->size);
    }
    int rc = bare || f->buffer ? send(f) : 0;
    if (rc <= 0)
        clear(f);
    return rc;
}

void flights_drop(struct loop *l)
{
    for (struct flight *f = l->all, *next; f; f = next) {
        next = f->next_all;
        http_drop(l->http, &f->call);
        clear(f);
        http_call_drop(&f->call);
        mem_free(f);
    }
    l->all = l->idle = NULL;
}
