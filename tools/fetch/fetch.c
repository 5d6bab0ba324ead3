/* SPDX-License-Identifier: MIT */
/* fetch.c - draft-fetch: brings objects to a folder, verified, each whole or not at
 * all.
 *
 *     list sources -> choose -> for each object, in parallel: skip what is whole, else
 *     copy to a temporary -> in order: group, make durable, rename, record
 *
 * An object that fails is reported by name and never touches a good local file; the
 * others go on, and the exit status tells what kind of failure there was. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "manifest.h"
#include "mem.h"
#include "num.h"
#include "object.h"
#include "par.h"
#include "place.h"
#include "scheme.h"
#include "tool.h"
#include "transfer.h"

static struct {
    const char *output, *include, *exclude, *part;
    bool verify, dry_run;
    const char *endpoint, *region, *profile, *credentials, *ca;
    bool no_sign, requester_pays, no_checksum;
    int64_t connections, piece, memory, retries;
    double stall;
} cfg = {.connections = 64,
         .piece = 8 << 20,
         .memory = 256 << 20,
         .retries = 10,
         .stall = 20};

static const struct opt options[] = {
    OPT_HEAD("output"),
    OPT_TEXT('o', "output", &cfg.output, "DEST", "the folder to bring objects to", 0),
    OPT_FLAG(0, "dry-run", &cfg.dry_run,
             "only print size and name of what would be fetched", 0),
    OPT_FLAG(0, "verify", &cfg.verify,
             "reread every file in DEST and fetch it again if its checksum is wrong",
             0),
    OPT_HEAD("which objects"),
    OPT_TEXT(0, "include", &cfg.include, "GLOBS",
             "only names that match one of these, separated by commas", 0),
    OPT_TEXT(0, "exclude", &cfg.exclude, "GLOBS",
             "not names that match one of these; wins over --include", 0),
    OPT_TEXT(0, "part", &cfg.part, "I/N",
             "only part I (from 0) of N, by a hash of the name", 0),
    OPT_HEAD("S3"),
    OPT_TEXT(0, "endpoint", &cfg.endpoint, "URL",
             "the server of s3:// sources; default: AWS, by region", 0),
    OPT_TEXT(0, "region", &cfg.region, "NAME",
             "its region; default: us-east-1, or what the server says", 0),
    OPT_TEXT(0, "profile", &cfg.profile, "NAME",
             "whose keys to use, of AWS's files of profiles", 0),
    OPT_TEXT(0, "credentials-file", &cfg.credentials, "FILE",
             "the file of profiles with keys; default: ~/.aws/credentials", 0),
    OPT_FLAG(0, "no-sign", &cfg.no_sign, "do not sign requests: public buckets", 0),
    OPT_FLAG(0, "requester-pays", &cfg.requester_pays,
             "agree to pay for requests and transfer", 0),
    OPT_FLAG(0, "no-checksum", &cfg.no_checksum,
             "do not ask for checksums, for servers that refuse the question", 0),
    OPT_HEAD("network"),
    OPT_INT(0, "connections", &cfg.connections, "N", "requests in flight at most", 0),
    OPT_INT(0, "part-size", &cfg.piece, "BYTES",
            "larger objects are fetched in parts of this size", 0),
    OPT_INT(0, "memory", &cfg.memory, "BYTES", "memory to use at most", 0),
    OPT_INT(0, "retries", &cfg.retries, "N", "attempts after the first, each request",
            0),
    OPT_REAL(0, "stall", &cfg.stall, "SECONDS", "silence that ends a request", 0),
    OPT_TEXT(0, "ca", &cfg.ca, "FILE",
             "certificates to trust (PEM); default: the system's", 0),
    TOOL_OPTIONS,
    OPT_END,
};

enum { BUFFER = 1 << 20 };
enum outcome { WHOLE, WANTED, COPIED, FAILED };

/* One object on its way through the stream. */
struct item {
    const struct object *object;
    int64_t number;
    enum outcome outcome;
    bool damaged, known_twice;
    uint64_t xxh3;
    int code; // of a failure, with the reason
    char why[ERR_TEXT_MAX];
    char *buffer; // BUFFER bytes
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
    int64_t copied, whole, failed, bytes, done_bytes, all_bytes;
    int code; // of the first failure that trying again does not mend, else of the first
    char why[ERR_TEXT_MAX];
};

/* ---- is it there? ---- */

/* A file system may keep times to a coarser grain than the source's. */
static bool same_time(int64_t local, int64_t source)
{
    for (int64_t grain = 1; grain <= 1000000000; grain *= 10)
        if (source - source % grain == local)
            return true;
    return false;
}

static int hash_file(uint64_t *out, int fd, void *buffer, const char *name)
{
    struct hash *h = hash_open();
    if (!h)
        return E_MEMORY;
    int64_t got;
    while ((got = file_get(fd, buffer, BUFFER, name)) > 0)
        hash_add(h, buffer, (size_t)got);
    *out = hash_value(h);
    hash_close(h);
    return got < 0 ? (int)got : 0;
}

/* Rereads the local file; false when it cannot be read or is not what was recorded. */
static bool reads_well(const char *path, uint64_t want, void *buffer)
{
    uint64_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool well = fd >= 0 && hash_file(&got, fd, buffer, path) == 0 && got == want;
    if (fd >= 0)
        close(fd);
    return well;
}

/* Whole: the file is there with size and time of the source, and a manifest says that
 * this is what was copied. */
static int is_whole(const struct run *r, struct item *it)
{
    const struct object *o = it->object;
    const struct entry *e;
    struct stat st;
    int64_t entries = manifest_find(&r->manifest, o->key, &e);
    char *path = file_path(cfg.output, o->key);
    if (!path)
        return E_MEMORY;
    bool there = entries > 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                 st.st_size == o->size &&
                 same_time((int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
                           o->mtime_ns);
    bool whole = false;
    for (int64_t i = 0; there && i < entries && !whole; i++) {
        whole = e[i].size == o->size && e[i].mtime_ns == o->mtime_ns;
        it->xxh3 = e[i].xxh3;
    }
    if (whole && cfg.verify && !reads_well(path, it->xxh3, it->buffer)) {
        whole = false;
        it->damaged = true;
    }
    it->known_twice = entries > 1;
    mem_free(path);
    return whole;
}

/* ---- one object ---- */

static int verify_copy(int fd, const struct item *it)
{
    uint64_t got;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return err_set(E_IO, "%s: cannot reread", it->object->key);
    TRY(hash_file(&got, fd, it->buffer, it->object->key));
    if (got != it->xxh3)
        return err_set(E_IO, "%s: reads back differently from what was written",
                       it->object->key);
    return 0;
}

static int copy(const struct run *r, struct item *it)
{
    const struct object *o = it->object;
    int fd = place_create(&r->place, it->number);
    TRY(fd);
    int rc = o->source->scheme->get(o, fd, &it->xxh3, it->buffer, BUFFER);
    if (rc == 0 && cfg.verify)
        rc = verify_copy(fd, it);
    if (rc < 0) {
        place_discard(&r->place, it->number, fd);
        return rc;
    }
    return place_written(&r->place, it->number, fd, o->size, o->mtime_ns);
}

static int fetch_one(const struct run *r, struct item *it)
{
    const struct object *o = it->object;
    if (o->code < 0)
        return err_copy(o->code, o->why);
    int whole = is_whole(r, it);
    TRY(whole);
    it->outcome = whole ? WHOLE : WANTED;
    if (whole || cfg.dry_run || !o->source->scheme->get)
        return 0;
    TRY(copy(r, it));
    it->outcome = COPIED;
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
    it->object = &r->list.at[it->number];
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
        it->outcome = FAILED;
        snprintf(it->why, sizeof it->why, "%s", err_text());
    }
    return 0;
}

static bool may_mend(int code)
{
    return code == E_AGAIN || code == E_REMOTE;
}

static void note_failure(struct run *r, int code, const char *why)
{
    log_warn(r->log, "%s", why);
    r->failed++;
    if (r->code == 0 || (may_mend(r->code) && !may_mend(code))) {
        r->code = code;
        snprintf(r->why, sizeof r->why, "%s", why);
    }
}

static int flush(struct run *r)
{
    int rc = place_flush(&r->place, &r->manifest);
    for (int i = 0; i < r->place.n && rc == 0; i++) {
        const struct placed *o = &r->place.at[i];
        if (o->code < 0) {
            note_failure(r, o->code, o->why);
        } else {
            r->copied++;
            r->bytes += o->size;
        }
    }
    place_clear(&r->place);
    return rc;
}

static int take_copied(struct run *r, int64_t number, uint64_t sum)
{
    const struct object *o = &r->list.at[number];
    struct placed what = {.key = o->key,
                          .size = o->size,
                          .mtime_ns = o->mtime_ns,
                          .xxh3 = sum,
                          .number = number};
    return place_add(&r->place, &what) ? flush(r) : 0;
}

static int write_item(void *ctx, void *item)
{
    struct run *r = ctx;
    struct item *it = item;
    const struct object *o = it->object;
    int rc = 0;
    if (it->damaged)
        log_warn(r->log, "%s/%s is damaged", cfg.output, o->key);
    switch (it->outcome) {
    case FAILED:
        if (!(tool_stop && it->code == E_AGAIN)) // report says that we were stopped
            note_failure(r, it->code, it->why);
        break;
    case WANTED:
        if (!cfg.dry_run) {
            r->wanted[it->number] = true;
            return 0;
        }
        printf("%lld\t%s\n", (long long)o->size, o->key);
        r->copied++;
        r->bytes += o->size;
        break;
    case COPIED:
        rc = take_copied(r, it->number, it->xxh3);
        break;
    case WHOLE:
        r->whole++;
        if (it->known_twice && !cfg.dry_run) // by two manifests: ours shall know
            rc = manifest_add(&r->manifest, o->key, o->size, o->mtime_ns, it->xxh3);
    }
    r->done_bytes += o->size;
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
    buffers = mem_alloc((size_t)n * BUFFER);
    rc = item && at && buffers ? 0 : E_MEMORY;
    TRY_GOTO(rc, rc, out);
    for (int i = 0; i < n; i++) {
        item[i].buffer = buffers + (size_t)i * BUFFER;
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

static int on_ended(void *ctx, int64_t number, uint64_t sum, int code, const char *why)
{
    struct run *r = ctx;
    if (code < 0) {
        note_failure(r, code, why);
        return 0;
    }
    return take_copied(r, number, sum);
}

static int on_tick(void *ctx, const struct transfer_state *state)
{
    struct run *r = ctx;
    log_progress(r->log, r->done_bytes + state->bytes, r->all_bytes, "bytes", NULL);
    return 0;
}

static int transfer(struct run *r)
{
    int64_t wanted = 0;
    for (int64_t i = 0; i < r->list.n; i++)
        wanted += r->wanted[i];
    if (wanted == 0 || tool_stop)
        return 0;
    int threads = (int)tool_common.threads;
    struct transfer_rules rules = {.threads = threads > 0 ? threads : 1,
                                   .connections = (int)cfg.connections,
                                   .retries = (int)cfg.retries,
                                   .piece = cfg.piece,
                                   .memory = cfg.memory,
                                   .http = r->rules.http};
    struct transfer_user user = {r, on_ended, on_tick};
    struct transfer_state state;
    return transfer_run(&r->list, r->wanted, &r->place, &rules, &user, &state);
}

/* ---- the run ---- */

static int list_sources(struct run *r, char **url, int n)
{
    r->source = mem_zero((size_t)n, sizeof *r->source);
    if (!r->source)
        return E_MEMORY;
    for (; *url; url++) {
        struct source *s = &r->source[r->sources++];
        int64_t first = r->list.n;
        TRY(scheme_open(s, *url, &r->rules));
        if (s->scheme->apart)
            TRY(s->scheme->apart(*url, cfg.output));
        TRY(s->scheme->list(s, &r->list));
        for (int64_t i = first; i < r->list.n; i++)
            r->list.at[i].source = s;
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

static int report(struct run *r)
{
    char size[32];
    num_bytes(size, sizeof size, (double)r->bytes);
    if (r->copied == 0 && r->failed == 0 && !tool_stop)
        log_note(r->log, "nothing to do: all %lld objects are there",
                 (long long)r->whole);
    else
        log_end(r->log, "%lld objects %s (%s), %lld there already, %lld failed",
                (long long)r->copied, cfg.dry_run ? "to fetch" : "fetched", size,
                (long long)r->whole, (long long)r->failed);
    if (r->code < 0)
        return err_set(r->code, "%lld of %lld objects failed; for example %s",
                       (long long)r->failed, (long long)r->list.n, r->why);
    return tool_stop ? err_set(E_AGAIN, "stopped by a signal") : 0;
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
        end = manifest_save(&r->manifest);
    return rc < 0 ? err_copy(rc, why) : end;
}

static int fetch_all(struct run *r)
{
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

/* Where there is something to sign; options go before what the files say. */
static int open_creds(struct scheme_rules *r, char **url)
{
    const struct creds_rules rules = {.no_sign = cfg.no_sign,
                                      .profile = cfg.profile,
                                      .credentials = cfg.credentials,
                                      .region = cfg.region,
                                      .ca = cfg.ca};
    while (*url && strncmp(*url, "s3://", 5) != 0)
        url++;
    if (!*url)
        return 0;
    TRY(creds_open(&r->creds, &rules));
    if (!r->endpoint)
        r->endpoint = creds_endpoint(r->creds);
    if (!r->region)
        r->region = creds_region(r->creds);
    return 0;
}

static int fetch(struct tool *t)
{
    struct run r = {.log = &t->log, .parts = 1, .manifest = {.journal = -1}};
    if (t->inputs == 0)
        return err_set(E_USAGE, "no source given");
    if (!cfg.output)
        return err_set(E_USAGE, "no destination given (-o)");
    if (cfg.part)
        TRY(num_parse_part(cfg.part, &r.part, &r.parts));
    r.rules =
        (struct scheme_rules){.http = {(int)cfg.connections, 10, cfg.stall, cfg.ca},
                              .retries = (int)cfg.retries,
                              .endpoint = cfg.endpoint,
                              .region = cfg.region,
                              .requester_pays = cfg.requester_pays,
                              .no_checksum = cfg.no_checksum,
                              .log = r.log};
    int rc = open_creds(&r.rules, t->input);
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
                                  "[options] source... -o DEST"},
                        .options = options};
    int rc = tool_begin(&tool, argc, argv);
    if (rc == 0)
        rc = fetch(&tool);
    return tool_end(&tool, rc);
}
