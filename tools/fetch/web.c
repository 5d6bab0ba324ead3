/* SPDX-License-Identifier: MIT */
/* web.c - the first byte is asked for with GET, not HEAD, because a URL may be signed
 * for GET alone. */
#include "web.h"

#include <string.h>

#include "err.h"
#include "url.h"

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

/* How long a probe's body may be: the reply's head says all, the rest is cut off. */
static int no_body(struct http_call *c, const void *bytes, size_t n)
{
    (void)bytes;
    return c->head.status == 206 ? 0 : -(int)(n > 0);
}

static int ask_probe(struct source *s, void *user, struct http_call *c)
{
    const struct object *o = user;
    (void)s;
    c->method = "GET";
    c->body = no_body;
    buf_adds(&c->url, o->from);
    http_add(&c->lines, "Range", "bytes=0-0");
    return 0;
}

static int learn(struct objects *list, struct object *o, const struct head *h)
{
    o->mtime_ns = h->modified * 1000000000;
    o->size = h->status == 206 ? h->total : h->length;
    o->unranged = h->status != 206 || o->size < 0;
    if (h->etag[0] && !(o->etag = object_text(list, h->etag)))
        return E_MEMORY;
    return 0;
}

int web_list(struct source *s, struct objects *out)
{
    struct buf key = {0};
    struct http_call c = {0};
    struct http *http = NULL;
    struct object *o = NULL;
    int rc = add_name(&key, s->url);
    TRY_GOTO(rc, rc, out);
    TRY_GOTO(rc, http_open(&http, &s->rules->http), out);
    if (!(o = object_add(out, buf_text(&key), s->url)))
        TRY_GOTO(rc, E_MEMORY, out);
    rc = scheme_run(s, http, &c, ask_probe, o);
    if (rc == 0)
        rc = learn(out, o, &c.head);
out:
    http_call_drop(&c);
    http_close(http);
    buf_drop(&key);
    return rc;
}

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
    bool probe = !p && c->end == HTTP_REFUSED && c->head.status / 100 == 2;
    bool empty = !p && c->end == HTTP_WHOLE && c->head.status == 416;
    *verdict = VERDICT_NEVER;
    if (probe || empty)
        return 0;
    return retry_judge(verdict, c, p ? p->object->key : s->url, "", "");
}
