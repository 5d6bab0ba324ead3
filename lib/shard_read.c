/* SPDX-License-Identifier: MIT */
/* shard_read.c - the reader: a thread that is one shard ahead of its caller.
 *
 * There are two slots.  The caller holds one while the thread fills the other; asking
 * for the next shard gives the held one back.  Three counters say it all: slots filled,
 * handed out, given back; the thread fills while filled - back < 2.  Positions in the
 * sources belong to the thread, and to the caller only while it is stopped. */
#include "shard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "shard_source.h"

struct slot {
    struct shard_slot shard;
    int64_t source, first_row;
    int rc; /* of the filling: 1, 0 at the end, or a code with its text */
    char text[ERR_TEXT_MAX];
};

struct shard_reader {
    struct shard_sources sources;
    int64_t total;           /* rows, -1 with a stream */
    struct shard_head model; /* of some shard: what all others must look like */
    const volatile sig_atomic_t *stop_flag;
    int wake[2];

    /* The thread's own. */
    int64_t source, next_row; /* row -1: not known yet */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool running, stop;
    int64_t filled, handed, back;
    struct slot slot[2];
};

/* ---- one look for all ---- */

static bool same_tensor(const struct st_tensor *a, const struct st_tensor *b)
{
    bool same = b && a->type == b->type && a->rank == b->rank;
    for (int i = 1; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

static int check_model(const struct shard_head *model, const struct shard_head *h)
{
    if (strcmp(model->id.stage, h->id.stage) != 0)
        return err_set(E_CONFIG, "written by %s, the input before it by %s",
                       h->id.stage, model->id.stage);
    if (h->st.tensors != model->st.tensors)
        return err_set(E_CONFIG,
                       "%" PRId64 " columns, the input before it has %" PRId64,
                       h->st.tensors, model->st.tensors);
    for (int64_t i = 0; i < h->st.tensors; i++) {
        const struct st_tensor *t = &h->st.tensor[i];
        if (!same_tensor(t, st_find(&model->st, t->name)) ||
            shard_head_is_fixed(h->fixed, t->name) !=
                shard_head_is_fixed(model->fixed, t->name))
            return err_set(E_CONFIG,
                           "tensor %s: type or shape differs from the input before it",
                           t->name);
    }
    return 0;
}

/* The first header seen becomes the model, by parsing the same bytes again. */
static int adopt(struct shard_reader *r, const struct shard_slot *s)
{
    const void *bytes = s->map.data ? (const void *)s->map.data : s->raw.p;
    if (r->model.st.tensors > 0)
        return check_model(&r->model, &s->head);
    return shard_head_parse(&r->model, bytes, s->head.st.header_bytes);
}

/* Looks at the first header of every folder and file, so that inputs that do not fit
 * together are refused before hours of work. */
static int check_sources(struct shard_reader *r)
{
    struct shard_slot *slot = &r->slot[0].shard;
    r->total = 0;
    for (int64_t i = 0; i < r->sources.n; i++) {
        struct shard_source *s = &r->sources.at[i];
        if (s->kind == SHARD_STREAM)
            r->total = -1;
        else if (r->total >= 0)
            r->total += s->rows;
        if (s->kind == SHARD_STREAM || s->rows == 0)
            continue;
        TRY(shard_source_next(s, slot, false));
        int rc = adopt(r, slot);
        if (rc < 0)
            return err_wrap(rc, "%s", slot->label);
        shard_source_rewind(s);
    }
    return 0;
}

/* ---- the thread ---- */

static int fill(struct shard_reader *r, struct slot *s)
{
    s->source = r->source;
    for (; r->source < r->sources.n; r->source++) {
        s->source = r->source;
        int rc = shard_source_next(&r->sources.at[r->source], &s->shard, true);
        if (rc == 0)
            continue;
        TRY(rc);
        rc = adopt(r, &s->shard);
        if (rc < 0)
            return err_wrap(rc, "%s", s->shard.label);
        if (r->next_row < 0)
            r->next_row = s->shard.head.id.first_row;
        s->first_row = r->next_row;
        r->next_row += s->shard.head.id.rows;
        return 1;
    }
    return 0;
}

static bool wait_for_room(struct shard_reader *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->stop && r->filled - r->back == 2)
        pthread_cond_wait(&r->change, &r->lock);
    bool go_on = !r->stop;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

static void *read_ahead(void *ctx)
{
    struct shard_reader *r = ctx;
    int rc = 1;
    while (rc > 0 && wait_for_room(r)) {
        struct slot *s = &r->slot[r->filled % 2];
        rc = s->rc = fill(r, s);
        if (rc < 0) {
            strncpy(s->text, err_text(), sizeof s->text - 1);
            s->text[sizeof s->text - 1] = 0;
        }
        pthread_mutex_lock(&r->lock);
        r->filled++;
        pthread_cond_broadcast(&r->change);
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

/* The thread takes no signals: they are the main thread's. */
static int start(struct shard_reader *r)
{
    sigset_t all, before;
    r->filled = r->handed = r->back = 0;
    r->stop = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&r->thread, NULL, read_ahead, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->running = !failed;
    return failed ? err_errno(failed, "cannot start a thread") : 0;
}

static void stop(struct shard_reader *r)
{
    if (!r->running)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    r->running = false;
}

/* Waits for the next slot; 0, or E_AGAIN when the caller's flag was set. */
static int wait_for_slot(struct shard_reader *r)
{
    int rc = 0;
    pthread_mutex_lock(&r->lock);
    r->back = r->handed;
    pthread_cond_broadcast(&r->change);
    while (r->filled == r->handed && rc == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 100 * 1000 * 1000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        if (r->stop_flag && *r->stop_flag)
            rc = err_set(E_AGAIN, "stopped while waiting for a shard");
        else if (r->stop_flag)
            pthread_cond_timedwait(&r->change, &r->lock, &t);
        else
            pthread_cond_wait(&r->change, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* ---- the reader ---- */

static int open_all(struct shard_reader *r, char *const *path, int paths)
{
    if (pipe2(r->wake, O_CLOEXEC) != 0)
        return err_errno(errno, "cannot make a pipe");
    for (int i = 0; i < paths; i++)
        TRY(shard_source_add(&r->sources, path[i], r->wake[0]));
    TRY(check_sources(r));
    TRY(start(r));
    TRY(wait_for_slot(r));
    const struct slot *s = &r->slot[0];
    return s->rc < 0 ? err_copy(s->rc, s->text) : 0;
}

int shard_open(struct shard_reader **out, char *const *path, int paths)
{
    struct shard_reader *r = mem_zero(1, sizeof *r);
    if (!r)
        return E_MEMORY;
    r->wake[0] = r->wake[1] = -1;
    r->next_row = -1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->change, NULL);
    int rc = open_all(r, path, paths);
    if (rc < 0) {
        shard_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

int shard_next(struct shard_reader *r, struct shard_view *v)
{
    const struct slot *last = &r->slot[(r->handed + 1) % 2];
    *v = (struct shard_view){0};
    if (r->handed > 0 && last->rc <= 0)
        return last->rc < 0 ? err_copy(last->rc, last->text) : 0;
    TRY(wait_for_slot(r));
    const struct slot *s = &r->slot[r->handed++ % 2];
    if (s->rc <= 0)
        return s->rc < 0 ? err_copy(s->rc, s->text) : 0;
    *v = (struct shard_view){s->shard.label, s->shard.head.st, s->first_row,
                             s->shard.head.id.rows, s->shard.data};
    return 1;
}

void shard_watch(struct shard_reader *r, const volatile sig_atomic_t *stop_flag)
{
    r->stop_flag = stop_flag;
}

/* With the thread stopped: leaves the sources before the shard that holds `row`. */
static int walk_to(struct shard_reader *r, int64_t row)
{
    struct shard_slot *slot = &r->slot[0].shard;
    for (; r->source < r->sources.n; r->source++) {
        struct shard_source *s = &r->sources.at[r->source];
        if (row >= r->next_row + s->rows) {
            r->next_row += s->rows;
            continue;
        }
        for (;;) {
            int rc = shard_source_next(s, slot, false);
            if (rc <= 0)
                return rc;
            if (row < r->next_row + slot->head.id.rows)
                break;
            r->next_row += slot->head.id.rows;
        }
        shard_source_unread(s, &slot->head);
        return 0;
    }
    return 0;
}

int shard_seek(struct shard_reader *r, int64_t row)
{
    if (r->total < 0)
        return err_set(E_CONFIG, "cannot go to row %" PRId64 " of a stream", row);
    int64_t first = r->sources.n > 0 ? r->sources.at[0].first_row : 0;
    if (row < first || row > first + r->total)
        return err_set(E_CONFIG,
                       "no row %" PRId64 ": the input has %" PRId64 " to "
                       "%" PRId64,
                       row, first, first + r->total - 1);
    stop(r);
    for (int64_t i = 0; i < r->sources.n; i++)
        shard_source_rewind(&r->sources.at[i]);
    r->source = 0;
    r->next_row = first;
    TRY(walk_to(r, row));
    TRY(start(r));
    return wait_for_slot(r);
}

static bool has_ended(const struct shard_reader *r)
{
    return r->handed > 0 && r->slot[(r->handed + 1) % 2].rc == 0;
}

const char *shard_meta(const struct shard_reader *r, const char *key)
{
    const struct slot *s = &r->slot[r->handed ? (r->handed + 1) % 2 : 0];
    const char *value = st_meta(&s->shard.head.st, key);
    if (value || r->sources.n == 0)
        return value;
    int64_t n = s->source < r->sources.n ? s->source : r->sources.n - 1;
    const struct shard_source *from = &r->sources.at[n];
    if (from->kind == SHARD_STREAM && !has_ended(r))
        return NULL;
    return st_meta(&from->end.st, key);
}

const void *shard_column(const struct shard_view *v, const char *name,
                         const struct st_tensor **out)
{
    const struct st_tensor *t = st_find(&v->header, name);
    if (out)
        *out = t;
    return t ? (const char *)v->data + t->begin : NULL;
}

int64_t shard_total_rows(const struct shard_reader *r)
{
    return r->total;
}

int shard_digest(const struct shard_reader *r, uint64_t *out)
{
    struct buf all = {0};
    if (r->total < 0 && !has_ended(r))
        return err_set(E_AGAIN, "a stream's digest is known at its end");
    for (int64_t i = 0; i < r->sources.n; i++) {
        const struct buf *d = &r->sources.at[i].digests;
        buf_add(&all, buf_text(d), d->len);
    }
    int rc = buf_check(&all);
    if (rc == 0 && all.len != 8) {
        *out = hash_bytes(buf_text(&all), all.len);
    } else if (rc == 0) {
        *out = 0;
        for (int i = 0; i < 8; i++)
            *out |= (uint64_t)(uint8_t)all.p[i] << (8 * i);
    }
    buf_drop(&all);
    return rc;
}

/* Gives the pipe back, so that its writer learns at once that nobody reads on; the
 * descriptor stays in use, lest the next file opened becomes stdin. */
static void leave_stdin(const struct shard_sources *list)
{
    for (int64_t i = 0; i < list->n; i++) {
        int fd = list->at[i].fd == STDIN_FILENO ? open("/dev/null", O_RDONLY) : -1;
        if (fd > STDIN_FILENO) {
            dup2(fd, STDIN_FILENO);
            close(fd);
        }
    }
}

void shard_close(struct shard_reader *r)
{
    if (!r)
        return;
    if (r->wake[1] >= 0)
        close(r->wake[1]); // the thread's end of the pipe becomes readable
    stop(r);
    if (r->wake[0] >= 0)
        close(r->wake[0]);
    leave_stdin(&r->sources);
    shard_source_drop(&r->sources);
    shard_head_drop(&r->model);
    shard_slot_drop(&r->slot[0].shard);
    shard_slot_drop(&r->slot[1].shard);
    pthread_cond_destroy(&r->change);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}
