/* SPDX-License-Identifier: MIT */
/* scheme.c - the table, and calls that a listing makes one after another. */
#include "scheme.h"

#include <string.h>
#include <time.h>

#include "err.h"
#include "hf.h"
#include "local.h"
#include "s3.h"
#include "tool.h"
#include "url.h"
#include "web.h"

static const struct scheme schemes[] = {
    {.name = "file", .apart = local_apart, .list = local_list, .get = local_get},
    {.name = "s3",
     .open = s3_open,
     .close = s3_close,
     .list = s3_list,
     .ask = s3_ask,
     .judge = s3_judge,
     .head = true},
    {.name = "https", .list = web_list, .ask = web_ask, .judge = web_judge},
    {.name = "http", .list = web_list, .ask = web_ask, .judge = web_judge},
    {.name = "hf",
     .open = hf_open,
     .close = hf_close,
     .list = hf_list,
     .ask = hf_ask,
     .judge = hf_judge},
};
static const struct scheme list_of_urls = {.name = "a list of URLs",
                                           .list = web_list_file,
                                           .ask = web_ask,
                                           .judge = web_judge};

enum {
    MOVES = 10,
    LESSONS = 3, // attempts at once that may follow what was learnt, and cost none
    TOLD = 3 // attempts after which the user hears of them: the first pauses are short
};

/* The length of a leading "name://", 0 when there is none. */
static size_t scheme_length(const char *source)
{
    size_t n = strspn(source, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    return n > 0 && strncmp(source + n, "://", 3) == 0 ? n : 0;
}

static const struct scheme *find(const char *source)
{
    size_t n = scheme_length(source);
    for (size_t i = 0; n > 0 && i < sizeof schemes / sizeof *schemes; i++) {
        const struct scheme *s = &schemes[i];
        if (s->list && strlen(s->name) == n && memcmp(s->name, source, n) == 0)
            return s;
    }
    return n > 0 ? NULL : &schemes[0];
}

int scheme_open(struct source *out, const char *url, const struct scheme_rules *rules)
{
    const struct scheme *s = find(url);
    if (!s)
        return err_set(E_USAGE, "%s: this build does not know the scheme %.*s://", url,
                       (int)scheme_length(url), url);
    *out = (struct source){.scheme = s, .url = url, .rules = rules};
    return s->open ? s->open(out) : 0;
}

int scheme_open_list(struct source *out, const char *path,
                     const struct scheme_rules *rules)
{
    *out = (struct source){.scheme = &list_of_urls, .url = path, .rules = rules};
    return 0;
}

void scheme_again(const struct scheme_rules *r, int tries)
{
    if (tries >= TOLD && tries <= r->retries)
        log_note(r->log, "%s (attempt %d of %d; trying again)", err_text(), tries,
                 r->retries + 1);
}

int scheme_list(struct source *s, struct objects *out)
{
    int64_t before = out->n;
    s->alone = true;
    int rc = s->scheme->list(s, out);
    s->alone = false;
    TRY(rc);
    return out->n > before ? 0 : err_set(E_MISSING, "%s: there are no objects", s->url);
}

void scheme_close(struct source *s)
{
    if (s->scheme && s->scheme->close)
        s->scheme->close(s);
    *s = (struct source){0};
}

static int pause_for(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)(1e9 * (seconds - (double)(time_t)seconds))};
    if (!tool_stopped())
        nanosleep(&t, NULL); // a signal ends it
    return tool_stopped() ? err_set(E_AGAIN, "stopped by a signal") : 0;
}

int scheme_run(struct source *s, struct http *http, struct http_call *c,
               scheme_ask *ask, void *user)
{
    uint64_t random = (uint64_t)time(NULL);
    struct buf moved = {0};
    int rc, moves = 0, tries = 0, learnt = 0;
    for (;;) {
        enum verdict v;
        http_call_clear(c);
        TRY_GOTO(rc, ask(s, user, c), out);
        if (moved.len > 0)
            http_call_move(c, moved.p);
        TRY_GOTO(rc, http_run(http, c), out);
        rc = s->scheme->judge(s, NULL, c, &v);
        if (rc == 0 || v == VERDICT_NEVER)
            break;
        if (v == VERDICT_MOVED) {
            TRY_GOTO(rc, scheme_move(&moved, c, &moves), out);
            continue;
        }
        if (v == VERDICT_NOW && ++learnt <= LESSONS)
            continue;
        if (++tries > s->rules->retries)
            break;
        if (s->alone)
            scheme_again(s->rules, tries);
        TRY_GOTO(rc, pause_for(retry_delay(tries, c->head.retry_after, &random)), out);
    }
out:
    buf_drop(&moved);
    return rc;
}

int scheme_move(struct buf *url, const struct http_call *c, int *moves)
{
    if (++*moves > MOVES)
        return err_set(E_CONFIG, "%.*s: redirected %d times: is it a circle?",
                       url_shown(buf_text(&c->url)), buf_text(&c->url), *moves);
    struct buf to = {0};
    int rc = url_join(&to, buf_text(&c->url), c->head.location);
    if (rc < 0) {
        buf_drop(&to);
        return rc;
    }
    buf_drop(url);
    *url = to;
    return 0;
}
