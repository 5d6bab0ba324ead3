/* SPDX-License-Identifier: MIT */
/* fetch.c - draft-fetch: brings objects to a folder, verified, each whole or not at
 * all.
 *
 *     list sources -> choose -> for each object, in parallel: skip what is whole, else
 *     copy to a temporary -> in order: group, make durable, rename, record
 *
 * An object that fails is reported by name and never touches a good local file; the
 * others go on, and the exit status tells what kind of failure there was. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "err.h"
#include "fetch_options.h"
#include "manifest.h"
#include "mem.h"
#include "num.h"
#include "object.h"
#include "par.h"
#include "partial.h"
#include "place.h"
#include "put.h"
#include "scheme.h"
#include "fate.h"
#include "tool.h"
#include "transfer.h"
#include "whole.h"

enum { KEY_SHOWN = 60 };

/* One object on its way through the stream. */
struct item {
    int64_t number;
    enum fate fate;
    bool damaged;
    const struct entry *again; // known to several manifests: ours shall know, too
    uint64_t sum;
    int code; // of a failure, with the reason
    char why[ERR_TEXT_MAX];
    char *buffer; // WHOLE_BUFFER bytes
};

struct run {
    struct log *log;
    struct objects list;
    struct scheme_rules rules;
    struct source *source;
    int sources;
    bool *wanted; // remote objects of the list
    struct manifest manifest;
    struct place place;
    int part, parts;
    int64_t next; // of list, to be read
    struct fates fates;
    int64_t unchecked, done_bytes, all_bytes;
    int64_t kept; // bytes from an earlier run, as the last report had them
    struct transfer_state net;
};

/* ---- one object, of this machine or to be sent for ---- */

static int verify_copy(int fd, const struct object *o, const struct item *it)
{
    uint64_t got;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return err_set(E_IO, "%s: cannot reread", o->key);
    TRY(whole_sum(&got, fd, it->buffer, o->key));
    if (got != it->sum)
        return err_set(E_IO, "%s: reads back differently from what was written",
                       o->key);
    return 0;
}

static int copy(const struct run *r, const struct object *o, struct item *it)
{
    char temp[PLACE_NAME];
    int fd = place_create(&r->place, place_temp(temp, it->number));
    TRY(fd);
    int rc = o->source->scheme->get(o, fd, &it->sum, it->buffer, WHOLE_BUFFER);
    if (rc == 0 && cfg.verify)
        rc = verify_copy(fd, o, it);
    if (rc < 0) {
        place_discard(&r->place, temp, fd);
        return rc;
    }
    return place_written(&r->place, temp, fd, o->size, o->mtime_ns);
}

static int fetch_one(const struct run *r, struct item *it)
{
    const struct object *o = &r->list.at[it->number];
    const struct entry *found;
    enum whole whole;
    int64_t entries;
    if (o->code < 0)
        return err_copy(o->code, o->why);
    TRY(whole_way(cfg.output, o->key));
    TRY(whole_check(&whole, &r->manifest, cfg.output, o, cfg.verify, it->buffer, &found,
                    &entries));
    it->damaged = whole == WHOLE_DAMAGED;
    it->again = entries > 1 ? found : NULL;
    it->fate = whole == WHOLE_YES ? FATE_THERE : FATE_WANTED;
    if (whole == WHOLE_YES || cfg.dry_run || !o->source->scheme->get)
        return 0;
    TRY(copy(r, o, it));
    it->fate = FATE_FETCHED;
    return 0;
}

/* ---- the stream ---- */

static int read_item(void *ctx, void *item)
{
    struct run *r = ctx;
    struct item *it = item;
    if (r->next == r->list.n || tool_stop)
        return 0;
    it->number = r->next++;
    it->damaged = false;
    it->code = 0;
    return 1;
}

static int work_item(void *ctx, void *item, int worker)
{
    struct item *it = item;
    (void)worker;
    it->code = fetch_one(ctx, it);
    if (it->code < 0) {
        it->fate = FATE_FAILED;
        snprintf(it->why, sizeof it->why, "%s", err_text());
    }
    return 0;
}

static int flush(struct run *r)
{
    int rc = place_flush(&r->place, &r->manifest);
    for (int i = 0; i < r->place.n && rc == 0; i++) {
        const struct placed *p = &r->place.at[i];
        const struct object *o = &r->list.at[p->number];
        if (strstr(p->temp, PLACE_KEPT))
            partial_forget(&r->place, p->entry.key);
        if (p->code < 0) {
            fate_fail(&r->fates, o, p->code, p->why);
        } else {
            fate_add(&r->fates, o, FATE_FETCHED);
        }
    }
    place_clear(&r->place);
    return rc;
}

static int take_fetched(struct run *r, int64_t number, const char *temp, int64_t size,
                        uint64_t sum)
{
    struct object *o = &r->list.at[number];
    o->size = size; // of the list it may not have been known
    struct placed what = {.number = number,
                          .entry = {.key = o->key,
                                    .etag = o->etag,
                                    .size = size,
                                    .mtime_ns = o->mtime_ns,
                                    .sum = sum}};
    snprintf(what.temp, sizeof what.temp, "%s", temp);
    return place_add(&r->place, &what) ? flush(r) : 0;
}

static int write_item(void *ctx, void *item)
{
    struct run *r = ctx;
    struct item *it = item;
    const struct object *o = &r->list.at[it->number];
    char temp[PLACE_NAME];
    int rc = 0;
    if (it->damaged)
        log_warn(r->log, "%s/%s is damaged", cfg.output, o->key);
    switch (it->fate) {
    case FATE_FAILED:
        if (!(tool_stop && it->code == E_AGAIN)) // report says that we were stopped
            fate_fail(&r->fates, o, it->code, it->why);
        break;
    case FATE_WANTED:
        if (!cfg.dry_run) {
            r->wanted[it->number] = true;
            return 0;
        }
        fate_add(&r->fates, o, FATE_WANTED);
        break;
    case FATE_FETCHED:
        rc =
            take_fetched(r, it->number, place_temp(temp, it->number), o->size, it->sum);
        break;
    default:
        fate_add(&r->fates, o, FATE_THERE);
        if (it->again && !cfg.dry_run)
            rc = manifest_add(&r->manifest, it->again);
    }
    if (it->fate == FATE_THERE)
        log_skip(r->log, o->size > 0 ? o->size : 0);
    r->done_bytes += o->size > 0 ? o->size : 0;
    log_progress(r->log, r->done_bytes, r->all_bytes, "bytes", NULL);
    return rc;
}

static const struct par_stages stages = {read_item, work_item, write_item};

static int stream(struct run *r)
{
    struct par *p = NULL;
    struct item *item = NULL;
    void **at = NULL;
    char *buffers = NULL;
    int rc = par_open(&p, (int)tool_common.threads), n = 2 * par_threads(p) + 2;
    TRY(rc);
    item = mem_zero((size_t)n, sizeof *item);
    at = mem_zero((size_t)n, sizeof *at);
    buffers = mem_alloc((size_t)n * WHOLE_BUFFER);
    rc = item && at && buffers ? 0 : E_MEMORY;
    TRY_GOTO(rc, rc, out);
    for (int i = 0; i < n; i++) {
        item[i].buffer = buffers + (size_t)i * WHOLE_BUFFER;
        at[i] = &item[i];
    }
    rc = par_stream(p, &stages, r, at, n);
out:
    par_close(p);
    mem_free(buffers);
    mem_free(at);
    mem_free(item);
    return rc;
}

/* ---- remote objects ---- */

static int on_ended(void *ctx, const struct transfer_end *end)
{
    struct run *r = ctx;
    if (end->code == 0 && end->unchecked) {
        r->unchecked++;
        log_warn(r->log, "%s: not checked: %s", r->list.at[end->number].key,
                 end->unchecked);
    }
    if (end->code == 0)
        return take_fetched(r, end->number, end->temp, end->size, end->sum);
    fate_fail(&r->fates, &r->list.at[end->number], end->code, end->why);
    return 0;
}

/* Of a long key, the end. */
static const char *end_of_key(const char *key)
{
    size_t n = strlen(key);
    return n > KEY_SHOWN ? key + n - KEY_SHOWN : key;
}

static int on_tick(void *ctx, const struct transfer_state *state)
{
    struct run *r = ctx;
    const struct object *o = state->oldest;
    const int64_t *n = r->fates.count;
    char extra[256];
    int used = snprintf(
        extra, sizeof extra, "%lld of %lld objects, %lld requests, %lld retries",
        (long long)(n[FATE_THERE] + n[FATE_FETCHED] + r->place.n), (long long)r->list.n,
        (long long)state->flying, (long long)state->retries);
    if (o)
        snprintf(extra + used, sizeof extra - (size_t)used, ", %s at %.0f %%",
                 end_of_key(o->key), 100 * state->oldest_done);
    log_skip(r->log, state->kept - r->kept);
    r->kept = state->kept;
    log_progress(r->log, r->done_bytes + state->bytes, r->all_bytes, "bytes", extra);
    return place_due(&r->place) ? flush(r) : 0;
}

/* With a rate the parts are small enough to keep it evenly. */
static int64_t piece_size(void)
{
    int64_t even = cfg.rate > 0 ? cfg.rate / 4 : cfg.piece;
    even = even > 64 << 10 ? even : 64 << 10;
    return even < cfg.piece ? even : cfg.piece;
}

static int transfer(struct run *r)
{
    int64_t wanted = 0;
    for (int64_t i = 0; i < r->list.n; i++)
        wanted += r->wanted[i];
    TRY(partial_sweep(&r->place, &r->list, r->wanted, piece_size()));
    if (wanted == 0 || tool_stop)
        return 0;
    int threads = (int)tool_common.threads;
    struct transfer_rules rules = {.threads = threads > 0 ? threads : par_processors(),
                                   .connections = (int)cfg.connections,
                                   .retries = (int)cfg.retries,
                                   .piece = piece_size(),
                                   .rate = (double)cfg.rate,
                                   .http = r->rules.http};
    struct transfer_user user = {r, on_ended, on_tick};
    TRY(budget_left(&rules.memory, cfg.memory, r->list.n, cfg.connections,
                    2 * TRANSFER_WINDOW));
    return transfer_run(&r->list, r->wanted, &r->place, &rules, &user, &r->net);
}

/* ---- the run ---- */

static void take_listed(struct object *o, struct source *s, int64_t now)
{
    o->source = s;
    o->undated = o->mtime_ns == 0 && !s->scheme->get;
    if (o->undated)
        o->mtime_ns = now;
}

static int list_source(struct run *r, struct source *s, int64_t now)
{
    int64_t first = r->list.n;
    if (s->scheme->apart && cfg.output)
        TRY(s->scheme->apart(s->url, cfg.output));
    TRY(scheme_list(s, &r->list));
    for (int64_t i = first; i < r->list.n; i++)
        take_listed(&r->list.at[i], s, now);
    return 0;
}

static int list_sources(struct run *r, char **url, int n)
{
    int64_t now = (int64_t)time(NULL) * 1000000000;
    r->source = mem_zero((size_t)n + 1, sizeof *r->source);
    if (!r->source)
        return E_MEMORY;
    for (; *url; url++) {
        struct source *s = &r->source[r->sources++];
        TRY(scheme_open(s, *url, &r->rules));
        TRY(list_source(r, s, now));
    }
    if (cfg.urls) {
        struct source *s = &r->source[r->sources++];
        TRY(scheme_open_list(s, cfg.urls, &r->rules));
        TRY(list_source(r, s, now));
    }
    TRY(object_choose(&r->list, cfg.include, cfg.exclude));
    TRY(object_arrange(&r->list));
    object_share(&r->list, r->part, r->parts);
    for (int64_t i = 0; i < r->list.n; i++)
        r->all_bytes += r->list.at[i].size > 0 ? r->list.at[i].size : 0;
    r->wanted = mem_zero((size_t)r->list.n, sizeof *r->wanted);
    return r->wanted ? 0 : E_MEMORY;
}

static int load_manifest(struct run *r)
{
    int64_t damaged;
    TRY(manifest_load(&r->manifest, cfg.output, r->part, r->parts, &damaged));
    if (damaged > 0)
        log_warn(r->log,
                 "%s/.draft-fetch: %lld damaged manifests: what they knew is "
                 "fetched again",
                 cfg.output, (long long)damaged);
    return 0;
}

/* What the network cost: "" when all went well. */
static const char *network(const struct run *r, char *out, size_t size)
{
    char kept[32], wasted[32];
    const struct transfer_state *n = &r->net;
    if (n->retries == 0 && n->kept == 0)
        return "";
    snprintf(out, size, "; %s from an earlier run, %lld retries, %s received in vain",
             num_bytes(kept, sizeof kept, (double)n->kept), (long long)n->retries,
             num_bytes(wasted, sizeof wasted, (double)n->wasted));
    return out;
}

static int report(struct run *r)
{
    char size[32], net[128];
    const struct fates *t = &r->fates;
    const int64_t *n = t->count, moved = n[FATE_FETCHED] + n[FATE_WANTED];
    num_bytes(size, sizeof size, (double)t->bytes);
    if (moved == 0 && n[FATE_FAILED] == 0 && !tool_stop)
        log_note(r->log, "nothing to do: all %lld objects are there",
                 (long long)n[FATE_THERE]);
    else
        log_end(r->log, "%lld objects %s (%s), %lld there already, %lld failed%s",
                (long long)moved, cfg.dry_run ? "to fetch" : "fetched", size,
                (long long)n[FATE_THERE], (long long)n[FATE_FAILED],
                network(r, net, sizeof net));
    if (r->unchecked > 0)
        log_warn(r->log, "%lld objects could not be checked", (long long)r->unchecked);
    return fate_end(t, r->list.n, tool_stop);
}

/* What was copied is put in place and recorded, also when something ended the stream.
 */
static int stream_and_save(struct run *r)
{
    char why[ERR_TEXT_MAX];
    int rc = stream(r);
    if (rc == 0)
        rc = transfer(r);
    snprintf(why, sizeof why, "%s", err_text());
    int end = flush(r);
    if (end == 0)
        end = manifest_flush(&r->manifest);
    if (end == 0)
        end = manifest_save(&r->manifest);
    return rc < 0 ? err_copy(rc, why) : end;
}

static int fetch_all(struct run *r)
{
    TRY(whole_way(cfg.output, ".draft-fetch/tmp/0"));
    TRY(place_open(&r->place, cfg.output, r->part, r->parts));
    int rc = load_manifest(r); // under the lock
    if (rc == 0)
        rc = stream_and_save(r);
    place_close(&r->place);
    return rc < 0 ? rc : report(r);
}

static int show_all(struct run *r)
{
    TRY(load_manifest(r));
    TRY(stream(r));
    return report(r);
}

static int put(struct tool *t)
{
    struct scheme_rules scheme = {0};
    const struct put_rules rules = {.scheme = &scheme,
                                    .include = cfg.include,
                                    .exclude = cfg.exclude,
                                    .part = cfg.piece,
                                    .memory = cfg.memory,
                                    .connections = (int)cfg.connections,
                                    .rate = (double)cfg.rate,
                                    .dry_run = cfg.dry_run,
                                    .json = cfg.json,
                                    .log = &t->log};
    char **to = t->input + t->inputs - 1;
    int rc = fetch_options_rules(&scheme, to, &t->log);
    if (rc == 0)
        rc = put_run(t->input, t->inputs - 1, *to, &rules);
    creds_close(scheme.creds);
    return rc;
}

static int fetch(struct tool *t)
{
    struct run r = {.log = &t->log,
                    .fates = {.log = &t->log, .json = cfg.json},
                    .parts = 1,
                    .manifest = {.journal = -1}};
    if (cfg.part)
        TRY(num_parse_part(cfg.part, &r.part, &r.parts));
    int rc = fetch_options_rules(&r.rules, t->input, r.log);
    if (rc == 0)
        rc = list_sources(&r, t->input, t->inputs);
    if (rc == 0)
        rc = cfg.dry_run ? show_all(&r) : fetch_all(&r);
    for (int i = 0; i < r.sources; i++)
        scheme_close(&r.source[i]);
    creds_close(r.rules.creds);
    mem_free(r.source);
    mem_free(r.wanted);
    manifest_drop(&r.manifest);
    object_drop(&r.list);
    return rc;
}

int main(int argc, char **argv)
{
    struct tool tool = {.about = {"draft-fetch",
                                  "bring objects to a folder, verified and whole",
                                  "[options] source... -o DEST, or --put path... "
                                  "s3://bucket/prefix"},
                        .options = fetch_options};
    int rc = tool_begin(&tool, argc, argv);
    if (rc == 0)
        rc = fetch_options_check(tool.input, tool.inputs);
    if (rc == 0)
        rc = cfg.put ? put(&tool) : fetch(&tool);
    return tool_end(&tool, rc);
}
