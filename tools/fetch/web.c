/* SPDX-License-Identifier: MIT */
/* web.c - the first byte is asked for with GET, not HEAD, because a URL may be signed
 * for GET alone.  Of a list many are asked at a time. */
#include "web.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "budget.h"
#include "digest.h"
#include "err.h"
#include "file.h"
#include "mem.h"
#include "tool.h"
#include "url.h"

enum { PROBES = 32 }; // at a time
enum { LOOK = 1000 }; // lines of a list between two looks at the memory

/* ---- names ---- */

static int add_name(struct buf *key, const char *text)
{
    struct url u;
    struct buf path = {0};
    TRY(url_split(&u, text));
    buf_add(&path, u.path, u.path_n);
    const char *p = buf_text(&path), *slash = strrchr(p, '/');
    int rc = url_unescape(key, slash ? slash + 1 : p, false);
    buf_drop(&path);
    return rc < 0 ? rc : buf_check(key);
}

static bool is_web(const char *url)
{
    return strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
}

static int add_url(struct objects *out, const char *url, const char *sha256)
{
    struct buf key = {0};
    int rc = is_web(url) ? add_name(&key, url)
                         : err_set(E_USAGE, "%s: not an https:// URL", url);
    struct object *o = rc < 0 ? NULL : object_add(out, buf_text(&key), url);
    bool nameless = key.len == 0;
    buf_drop(&key);
    TRY(rc);
    if (o && nameless) {
        rc = err_set(E_USAGE, "%.*s: the URL ends in no name for a file",
                     url_shown(url), url);
        return object_refuse(out, o, rc);
    }
    if (!o || (sha256 && !(o->sha256 = object_text(out, sha256))))
        return E_MEMORY;
    o->pinned = sha256 != NULL;
    return 0;
}

/* ---- probes ---- */

struct prober {
    struct source *source;
    struct objects *out;
    struct http *http;
    int64_t next; // of the objects, to be asked for
    uint64_t random;
    int told; // attempts that the log knows of
    int rc;
};

struct probe {
    struct prober *of;
    struct http_call call;
    int64_t number;
    int tries, moves;
    struct buf moved; // URL that it was redirected to, or empty
    bool busy;
    double due; // when the next attempt is, if not in flight
};

/* The reply's head says all; a body that is not the one byte is cut off. */
static int no_body(struct http_call *c, const void *bytes, size_t n)
{
    (void)bytes;
    return c->head.status == 206 ? 0 : -(int)(n > 0);
}

static int send(struct probe *p)
{
    struct http_call *c = &p->call;
    http_call_clear(c);
    c->method = "GET";
    buf_adds(&c->url, p->of->out->at[p->number].from);
    http_add(&c->lines, "Range", "bytes=0-0");
    if (p->moved.len > 0)
        http_call_move(c, p->moved.p);
    return http_start(p->of->http, c);
}

static int learn(struct objects *list, struct object *o, const struct head *h)
{
    bool empty = h->status == 416;
    o->mtime_ns = h->modified * 1000000000;
    o->size = empty ? 0 : h->status == 206 ? h->total : h->length;
    o->unranged = h->status != 206 || o->size < 0;
    if (h->etag[0] && !(o->etag = object_text(list, h->etag)))
        return E_MEMORY;
    return 0;
}

/* 0: the object is known, or refused; 1: it is asked for again. */
static int end_probe(struct probe *p)
{
    struct objects *list = p->of->out;
    struct object *o = &list->at[p->number];
    enum verdict v;
    int rc = web_judge(p->of->source, NULL, &p->call, &v);
    if (rc == 0)
        return learn(list, o, &p->call.head);
    if (v == VERDICT_MOVED) {
        rc = scheme_move(&p->moved, &p->call, &p->moves);
        p->due = 0;
        return rc < 0 ? object_refuse(list, o, rc) : 1;
    }
    if (v == VERDICT_NEVER || ++p->tries > p->of->source->rules->retries)
        return object_refuse(list, o, rc);
    if (p->tries > p->of->told) { // of many, one
        p->of->told = p->tries;
        scheme_again(p->of->source->rules, p->tries);
    }
    p->due =
        log_now() + retry_delay(p->tries, p->call.head.retry_after, &p->of->random);
    return 1;
}

static void on_probe(struct http_call *c)
{
    struct probe *p = c->user;
    int rc = end_probe(p);
    p->busy = rc > 0;
    if (rc < 0)
        p->of->rc = rc;
}

/* Starts what is due; returns how many objects are on their way. */
static int start_due(struct prober *w, struct probe *probe)
{
    int busy = 0;
    for (int i = 0; i < PROBES && w->rc == 0; i++) {
        struct probe *p = &probe[i];
        while (w->next < w->out->n && w->out->at[w->next].code < 0)
            w->next++;
        if (!p->busy && w->next < w->out->n) {
            p->number = w->next++;
            p->tries = p->moves = 0;
            p->due = 0;
            p->busy = true;
            buf_clear(&p->moved);
        }
        if (p->busy && !p->call.slot && p->due <= log_now())
            w->rc = send(p);
        busy += p->busy;
    }
    return busy;
}

static int ask_all(struct prober *w)
{
    struct probe *probe = mem_zero(PROBES, sizeof *probe);
    if (!probe)
        return E_MEMORY;
    for (int i = 0; i < PROBES; i++) {
        probe[i].of = w;
        probe[i].call.user = &probe[i];
        probe[i].call.done = on_probe;
        probe[i].call.body = no_body;
    }
    while (w->rc == 0 && start_due(w, probe) > 0) {
        w->rc = tool_stop ? err_set(E_AGAIN, "stopped by a signal")
                          : http_turn(w->http, 0.05);
    }
    for (int i = 0; i < PROBES; i++) {
        http_drop(w->http, &probe[i].call);
        http_call_drop(&probe[i].call);
        buf_drop(&probe[i].moved);
    }
    mem_free(probe);
    return w->rc;
}

static int probe_from(struct source *s, struct objects *out, int64_t first)
{
    struct prober w = {
        .source = s, .out = out, .next = first, .random = (uint64_t)time(NULL)};
    TRY(http_open(&w.http, &s->rules->http));
    int rc = ask_all(&w);
    http_close(w.http);
    return rc;
}

/* ---- lists ---- */

static bool is_sha256(const char *word)
{
    uint8_t value[DIGEST_MAX];
    return digest_from_hex(value, 32, word);
}

/* A URL, with a SHA-256 on either side, or without. */
static int read_line(struct objects *out, char *line)
{
    char *word[3], *rest = NULL;
    int n = 0;
    for (char *w = strtok_r(line, " \t\r\n", &rest); w && n < 3;
         w = strtok_r(NULL, " \t\r\n", &rest))
        word[n++] = w;
    if (n == 0 || word[0][0] == '#')
        return 0;
    bool before = n == 2 && is_sha256(word[0]);
    if (n > 2 || (n == 2 && !before && !is_sha256(word[1])))
        return err_set(E_FORMAT, "neither a URL nor a URL and its SHA-256");
    return add_url(out, word[before], n == 2 ? word[!before] : NULL);
}

int web_list_file(struct source *s, struct objects *out)
{
    int64_t first = out->n, number = 1;
    FILE *f = strcmp(s->url, "-") == 0 ? stdin : fopen(s->url, "re");
    char *line = NULL;
    size_t room = 0;
    int rc = 0;
    if (!f)
        return err_errno(errno, "cannot open %s", s->url);
    ssize_t n;
    for (; rc == 0 && (n = getline(&line, &room, f)) > 0; number++) {
        rc = read_line(out, line + (number == 1 ? file_mark(line, (size_t)n) : 0));
        if (rc < 0)
            err_wrap(rc, "%s: line %lld", s->url, (long long)number);
        else if (number % LOOK == 0)
            rc = budget_listing(s->rules->memory, out->n, s->url);
    }
    if (rc == 0 && ferror(f))
        rc = err_errno(errno, "cannot read %s", s->url);
    free(line);
    if (f != stdin)
        fclose(f);
    return rc < 0 ? rc : probe_from(s, out, first);
}

int web_list(struct source *s, struct objects *out)
{
    int64_t first = out->n;
    TRY(add_url(out, s->url, NULL));
    return probe_from(s, out, first);
}

/* ---- pieces ---- */

int web_ask(struct source *s, const struct piece *p, struct http_call *c)
{
    char range[64];
    const struct object *o = p->object;
    (void)s;
    c->method = "GET";
    buf_adds(&c->url, o->from);
    if (p->kind == PIECE_RANGE) {
        piece_range(range, p);
        http_add(&c->lines, "Range", range);
    }
    if (o->etag && o->etag[0] == '"') // a weak one cannot be held against
        http_add(&c->lines, "If-Match", o->etag);
    return buf_check(&c->url);
}

int web_judge(struct source *s, const struct piece *p, const struct http_call *c,
              enum verdict *verdict)
{
    int status = c->head.status;
    bool known = !p && ((c->end == HTTP_REFUSED && status / 100 == 2) ||
                        (c->end == HTTP_WHOLE && status == 416));
    const char *url = p ? p->object->from : buf_text(&c->url);
    char name[HEAD_TEXT];
    (void)s;
    snprintf(name, sizeof name, "%.*s", url_shown(url), url);
    *verdict = VERDICT_NEVER;
    return known ? 0 : retry_judge(verdict, c, name, "", "");
}
