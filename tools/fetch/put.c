/* SPDX-License-Identifier: MIT */
/* put.c - small files many at a time, then large ones in parts, side by side. */
#include "put.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "fate.h"
#include "mem.h"
#include "num.h"
#include "pace.h"
#include "object.h"
#include "par.h"
#include "s3.h"
#include "set.h"
#include "tool.h"
#include "upload.h"
#include "want.h"

enum {
    THREADS_MAX = 32,
    MANIFEST_MAX = 256 << 20,
    BASE = 24 << 20, // of memory: the program, its libraries and lists
    CONNECTION = 512 << 10
};

struct item {
    struct upload_item up;
    char *key;            // in the bucket; owned
    char etag[HEAD_TEXT]; // as the listing has it
    enum fate fate;
};

struct put {
    const struct put_rules *rules;
    struct source to, *source;
    int sources;
    char *prefix, *manifest; // "", or with a slash at its end; the manifest's key
    struct objects list;
    struct item *item;     // of the list
    struct objects remote; // what lies under the prefix
    struct set_index found;
    struct set before; // what the manifest said
    bool had_manifest;
    struct upload u;
    int64_t *chosen, n_chosen; // of the items, those a parallel loop is over
    int (*work)(struct put *p, int64_t i, int worker);

    pthread_mutex_t lock;              // over what follows
    int64_t done, total, unkept, kept; // kept: bytes of parts that were there
    int64_t wanted;                    // objects to be sent
    struct fates fates;
    struct pace pace; // its rate alone
};

/* ---- what there is to send ---- */

static int list_paths(struct put *p, char **path, int n)
{
    p->source = mem_zero((size_t)n, sizeof *p->source);
    if (!p->source)
        return E_MEMORY;
    for (int i = 0; i < n; i++) {
        struct source *s = &p->source[p->sources++];
        TRY(scheme_open(s, path[i], p->rules->scheme));
        if (!s->scheme->get)
            return err_set(E_USAGE, "%s: only files and folders are uploaded", path[i]);
        TRY(scheme_list(s, &p->list));
    }
    TRY(object_choose(&p->list, p->rules->include, p->rules->exclude));
    return object_arrange(&p->list);
}

static int make_items(struct put *p)
{
    p->item = mem_zero((size_t)p->list.n, sizeof *p->item);
    p->chosen = mem_zero((size_t)p->list.n, sizeof *p->chosen);
    if (!p->item || !p->chosen)
        return E_MEMORY;
    for (int64_t i = 0; i < p->list.n; i++) {
        const struct object *o = &p->list.at[i];
        struct buf key = {0};
        buf_addf(&key, "%s%s", p->prefix, o->key);
        struct item *it = &p->item[i];
        it->key = mem_text(buf_text(&key));
        buf_drop(&key);
        if (!it->key)
            return E_MEMORY;
        it->up = (struct upload_item){.path = o->from, .key = it->key, .size = o->size};
    }
    return 0;
}

/* ---- one item ---- */

static const struct object *object_of(const struct put *p, const struct item *it)
{
    return &p->list.at[it - p->item];
}

static void settle(struct put *p, struct item *it)
{
    pthread_mutex_lock(&p->lock);
    it->fate = FATE_UPLOADED;
    fate_add(&p->fates, object_of(p, it), FATE_UPLOADED);
    p->unkept += !it->up.kept;
    pthread_mutex_unlock(&p->lock);
}

/* Reports a failure, which the others need not share. */
static int note_failure(struct put *p, struct item *it, int code)
{
    if (tool_stop && code == E_AGAIN)
        return code;
    pthread_mutex_lock(&p->lock);
    it->fate = FATE_FAILED;
    fate_fail(&p->fates, object_of(p, it), code, err_text());
    pthread_mutex_unlock(&p->lock);
    return 0;
}

static double wait_to_send(struct put *p, int64_t bytes)
{
    pthread_mutex_lock(&p->lock);
    double now = log_now(), wait = pace_wait(&p->pace, now);
    if (wait <= 0)
        pace_begin(&p->pace, bytes, now);
    pthread_mutex_unlock(&p->lock);
    return wait;
}

/* A request whose bytes the rate does not allow yet waits for its turn. */
static void on_starts(void *user, int64_t bytes)
{
    static const double LOOK = 0.2; // seconds between two looks for a signal
    double wait;
    while (bytes > 0 && !tool_stopped() && (wait = wait_to_send(user, bytes)) > 0) {
        double nap = wait < LOOK ? wait : LOOK;
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * nap)}, NULL);
    }
}

static void on_told(void *user, const char *text)
{
    struct put *p = user;
    pthread_mutex_lock(&p->lock);
    log_more(p->rules->log, "cannot go on with an interrupted upload: %s", text);
    pthread_mutex_unlock(&p->lock);
}

static void on_sent(void *user, int64_t bytes, bool there)
{
    struct put *p = user;
    char extra[64];
    pthread_mutex_lock(&p->lock);
    p->done += bytes;
    p->kept += there ? bytes : 0;
    if (there)
        log_skip(p->rules->log, bytes);
    snprintf(extra, sizeof extra, "%lld of %lld objects",
             (long long)p->fates.count[FATE_UPLOADED], (long long)p->wanted);
    log_progress(p->rules->log, p->done, p->total, "bytes", extra);
    pthread_mutex_unlock(&p->lock);
}

/* Reads the file and gives its sum; 1 when `etag` is its MD5, in parts of our size. */
static int has_etag(struct put *p, const struct item *it, char sum[SET_SUM],
                    const char *etag, int worker)
{
    const struct object o = {
        .key = it->key, .etag = etag, .size = it->up.size, .md5 = true};
    struct want want;
    TRY(want_of(&want, &o, &p->u.worker[worker].call.head, p->u.part));
    if (want.kind != WANT_DIGEST)
        return 0;
    struct want_run *run = want_begin(&want, o.size);
    int rc = run ? upload_sum(&p->u, sum, run, &it->up, worker) : E_MEMORY;
    if (rc < 0)
        want_drop(run);
    TRY(rc);
    rc = want_end(run, &o);
    return rc == E_FORMAT ? 0 : rc < 0 ? rc : 1;
}

/* An object is there when the server keeps the CRC of this file; or, if it keeps none,
 * when it is the one of the manifest, and that has the CRC, or by its ETag. */
static int is_there(struct put *p, int64_t i, int worker)
{
    struct item *it = &p->item[i];
    char said[SET_SUM];
    const struct object *o = set_lookup(&p->found, it->key);
    if (!o || o->size != it->up.size)
        return 0;
    int there = upload_look(&p->u, &it->up, worker);
    if (there <= 0)
        return there;
    const struct set_entry *e = set_find(&p->before, p->list.at[i].key);
    memcpy(said, it->up.sum, sizeof said);
    if (!said[0] && e && o->etag && strcmp(e->etag, o->etag) == 0)
        memcpy(said, e->sum, sizeof said);
    if (!said[0])
        return has_etag(p, it, it->up.sum, o->etag, worker);
    TRY(upload_sum(&p->u, it->up.sum, NULL, &it->up, worker));
    return strcmp(it->up.sum, said) == 0;
}

static int look(struct put *p, int64_t i, int worker)
{
    const struct object *o = &p->list.at[i];
    int rc = o->code < 0 ? err_copy(o->code, o->why) : is_there(p, i, worker);
    TRY(rc);
    p->item[i].fate = rc > 0 ? FATE_THERE : FATE_WANTED;
    return 0;
}

static int send_small(struct put *p, int64_t i, int worker)
{
    TRY(upload_small(&p->u, &p->item[i].up, worker));
    settle(p, &p->item[i]);
    return 0;
}

/* ---- all of them ---- */

static int work_some(void *ctx, int64_t first, int64_t last, int worker)
{
    struct put *p = ctx;
    for (int64_t i = first; i < last; i++) {
        if (tool_stop)
            return err_set(E_AGAIN, "stopped by a signal");
        int rc = p->work(p, p->chosen[i], worker);
        if (rc < 0)
            TRY(note_failure(p, &p->item[p->chosen[i]], rc));
    }
    return 0;
}

static bool is_large(const struct put *p, int64_t i)
{
    return p->item[i].up.size > p->u.part;
}

/* In the order of the list, whichever thread has looked. */
static void tell_looks(struct put *p)
{
    for (int64_t i = 0; i < p->list.n; i++) {
        enum fate fate = p->item[i].fate;
        if (fate == FATE_THERE || (fate == FATE_WANTED && p->rules->dry_run))
            fate_add(&p->fates, &p->list.at[i], fate);
        p->wanted += fate == FATE_WANTED;
        p->total += fate == FATE_WANTED ? p->item[i].up.size : 0;
    }
}

static int look_at_all(struct put *p)
{
    p->n_chosen = p->list.n;
    for (int64_t i = 0; i < p->list.n; i++)
        p->chosen[i] = i;
    p->work = look;
    TRY(par_for(p->u.par, p->n_chosen, 1, work_some, p));
    tell_looks(p);
    return 0;
}

static int send_all_small(struct put *p)
{
    p->n_chosen = 0;
    for (int64_t i = 0; i < p->list.n; i++)
        if (p->item[i].fate == FATE_WANTED && !is_large(p, i))
            p->chosen[p->n_chosen++] = i;
    p->work = send_small;
    return par_for(p->u.par, p->n_chosen, 1, work_some, p);
}

static int on_ended(void *user, struct upload_item *up, int code)
{
    struct item *it = (struct item *)(void *)up; // its first member
    if (code < 0)
        return note_failure(user, it, code);
    settle(user, it);
    return 0;
}

static int send_all_large(struct put *p)
{
    struct upload_item **item = mem_alloc((size_t)p->list.n * sizeof *item);
    int64_t n = 0;
    if (!item)
        return E_MEMORY;
    for (int64_t i = 0; i < p->list.n; i++)
        if (p->item[i].fate == FATE_WANTED && is_large(p, i))
            item[n++] = &p->item[i].up;
    int rc = upload_large(&p->u, item, n, on_ended);
    mem_free(item);
    return rc;
}

static int send_all(struct put *p)
{
    TRY(send_all_small(p));
    TRY(send_all_large(p));
    return tool_stop ? err_set(E_AGAIN, "stopped by a signal") : 0;
}

/* ---- what lies there ---- */

static int list_remote(struct put *p)
{
    mem_free(p->found.at);
    p->found = (struct set_index){0};
    object_drop(&p->remote);
    p->remote = (struct objects){0};
    TRY(s3_list_raw(&p->to, &p->remote));
    return set_index(&p->found, &p->remote, 0);
}

/* The ETags of the listing, which is what a reader will see; some servers say others
 * when an object is sent. */
static int take_etags(struct put *p)
{
    TRY(list_remote(p));
    for (int64_t i = 0; i < p->list.n; i++) {
        struct item *it = &p->item[i];
        const struct object *o = set_lookup(&p->found, it->key);
        if (!o || o->size != it->up.size)
            return err_set(E_AGAIN, "%s: %s", it->key,
                           o ? "has another size than was sent" : "is not listed");
        snprintf(it->etag, sizeof it->etag, "%s", o->etag ? o->etag : "");
    }
    return 0;
}

/* ---- the manifest ---- */

static int read_manifest(struct put *p)
{
    int rc = upload_get(&p->u, p->manifest, MANIFEST_MAX);
    if (rc == E_MISSING)
        return 0;
    TRY(rc);
    const struct buf *text = &p->u.worker[0].call.text;
    p->had_manifest = true;
    rc = set_parse(&p->before, buf_text(text), text->len);
    return rc < 0 ? err_wrap(rc, "%s", p->manifest) : 0;
}

static bool is_ours(const struct put *p, const char *key)
{
    int64_t low = 0, high = p->list.n; // the list is sorted by key
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (strcmp(p->list.at[mid].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < p->list.n && strcmp(p->list.at[low].key, key) == 0;
}

/* What of the set before stays, and, when it is complete, all of ours. */
static int write_manifest(struct put *p, bool complete)
{
    struct set now = {.complete = complete};
    struct buf text = {0};
    int rc = 0;
    for (int64_t i = 0; i < p->before.n && rc == 0; i++) {
        const struct set_entry *e = &p->before.at[i];
        if (!is_ours(p, e->key))
            rc = set_add(&now, e->key, e->size, e->sum, e->etag);
    }
    for (int64_t i = 0; complete && i < p->list.n && rc == 0; i++) {
        const struct item *it = &p->item[i];
        rc = set_add(&now, p->list.at[i].key, it->up.size, it->up.sum, it->etag);
    }
    set_sort(&now);
    set_write(&text, &now);
    if (rc == 0)
        rc = upload_text(&p->u, p->manifest, &text);
    set_drop(&now);
    buf_drop(&text);
    return rc;
}

/* The manifest says already what it would say. */
static bool is_recorded(const struct put *p)
{
    bool same = p->had_manifest && p->before.complete;
    for (int64_t i = 0; i < p->list.n && same; i++) {
        const struct item *it = &p->item[i];
        const struct set_entry *e = set_find(&p->before, p->list.at[i].key);
        const struct object *o = set_lookup(&p->found, it->key);
        same = e && o && e->size == it->up.size && strcmp(e->sum, it->up.sum) == 0 &&
               strcmp(e->etag, o->etag ? o->etag : "") == 0;
    }
    return same;
}

/* ---- the run ---- */

static int report(struct put *p)
{
    char size[32], kept[32];
    const int64_t *n = p->fates.count;
    num_bytes(size, sizeof size, (double)p->fates.bytes);
    bool dry = p->rules->dry_run;
    struct log *log = p->rules->log;
    if (p->unkept > 0)
        log_note(log,
                 "the server keeps no CRC64NVME of %lld objects: they were checked by "
                 "SHA-256 on arrival only",
                 (long long)p->unkept);
    if (p->kept > 0)
        log_note(log, "%s of parts were there from an interrupted upload",
                 num_bytes(kept, sizeof kept, (double)p->kept));
    log_end(log, "%lld objects %s (%s), %lld there already, %lld failed",
            (long long)(n[FATE_WANTED] + n[FATE_UPLOADED]),
            dry ? "to upload" : "uploaded", size, (long long)n[FATE_THERE],
            (long long)n[FATE_FAILED]);
    return fate_end(&p->fates, p->list.n, tool_stop);
}

static int upload_all(struct put *p)
{
    p->to.alone = true;
    TRY(read_manifest(p));
    TRY(list_remote(p));
    p->to.alone = false;
    TRY(look_at_all(p));
    if (p->rules->dry_run)
        return report(p);
    if (p->wanted == 0 && p->fates.code == 0 && is_recorded(p)) {
        log_note(p->rules->log, "nothing to do: all %lld objects are there",
                 (long long)p->fates.count[FATE_THERE]);
        return 0;
    }
    if (p->wanted > 0) {
        TRY(write_manifest(p, false));
        int rc = send_all(p);
        if (rc < 0 && !(tool_stop && rc == E_AGAIN))
            return rc;
    }
    if (p->fates.code == 0 && !tool_stop) {
        TRY(take_etags(p));
        TRY(write_manifest(p, true));
    }
    return report(p);
}

static int open_workers(struct put *p)
{
    const struct put_rules *r = p->rules;
    p->u = (struct upload){.to = &p->to,
                           .part = r->part,
                           .sums = !r->scheme->no_checksum,
                           .user = p,
                           .starts = on_starts,
                           .sent = on_sent,
                           .told = on_told};
    int64_t n = (r->memory - BASE) / (p->u.part + CONNECTION);
    if (n < 1)
        return err_set(E_CONFIG,
                       "option --memory: %lld bytes are too few for parts of %lld "
                       "bytes: %lld would do",
                       (long long)r->memory, (long long)p->u.part,
                       (long long)(BASE + p->u.part + CONNECTION));
    n = n < r->connections ? n : r->connections;
    n = n < THREADS_MAX ? n : THREADS_MAX;
    TRY(par_open(&p->u.par, (int)n));
    int threads = par_threads(p->u.par);
    p->u.worker = mem_zero((size_t)threads, sizeof *p->u.worker);
    if (!p->u.worker)
        return E_MEMORY;
    for (int i = 0; i < threads; i++) {
        struct upload_worker *w = &p->u.worker[i];
        TRY(http_open(&w->http, &r->scheme->http));
        if (!(w->buffer = mem_alloc((size_t)p->u.part)))
            return E_MEMORY;
    }
    return 0;
}

static int open_target(struct put *p, const char *url)
{
    struct buf text = {0};
    if (strncmp(url, "s3://", 5) != 0)
        return err_set(E_USAGE, "%s: uploads go to s3://bucket/prefix", url);
    TRY(scheme_open(&p->to, url, p->rules->scheme));
    const char *prefix = s3_prefix(&p->to);
    size_t n = strlen(prefix);
    buf_adds(&text, prefix);
    if (n > 0 && prefix[n - 1] != '/')
        buf_addc(&text, '/');
    p->prefix = mem_text(buf_text(&text));
    buf_adds(&text, SET_NAME);
    p->manifest = mem_text(buf_text(&text));
    buf_drop(&text);
    return p->prefix && p->manifest ? 0 : E_MEMORY;
}

static void close_all(struct put *p)
{
    for (int i = 0; p->u.worker && i < par_threads(p->u.par); i++) {
        http_close(p->u.worker[i].http);
        http_call_drop(&p->u.worker[i].call);
        mem_free(p->u.worker[i].buffer);
    }
    mem_free(p->u.worker);
    par_close(p->u.par);
    for (int i = 0; i < p->sources; i++)
        scheme_close(&p->source[i]);
    scheme_close(&p->to);
    for (int64_t i = 0; p->item && i < p->list.n; i++)
        mem_free(p->item[i].key);
    mem_free(p->item);
    mem_free(p->chosen);
    mem_free(p->source);
    mem_free(p->prefix);
    mem_free(p->manifest);
    set_drop(&p->before);
    mem_free(p->found.at);
    object_drop(&p->remote);
    object_drop(&p->list);
    pthread_mutex_destroy(&p->lock);
}

int put_run(char **path, int n, const char *url, const struct put_rules *rules)
{
    struct put p = {.rules = rules, .fates = {.log = rules->log, .json = rules->json}};
    int rc;
    pthread_mutex_init(&p.lock, NULL);
    pace_start(&p.pace, rules->connections, rules->rate, log_now());
    TRY_GOTO(rc, open_target(&p, url), out);
    TRY_GOTO(rc, list_paths(&p, path, n), out);
    TRY_GOTO(rc, make_items(&p), out);
    TRY_GOTO(rc, open_workers(&p), out);
    rc = upload_all(&p);
out:
    close_all(&p);
    return rc;
}
