/* SPDX-License-Identifier: MIT */
/* s3.c - a bucket's address, its listing, requests for pieces of its objects.
 *
 * What is learnt on the way (learn.h) is kept in the source and used by the next
 * attempt, of whatever thread. */
#include "s3.h"

#include <string.h>
#include <time.h>

#include "budget.h"
#include "buf.h"
#include "err.h"
#include "hash.h"
#include "learn.h"
#include "mem.h"
#include "s3_list.h"
#include "set.h"
#include "sign.h"
#include "url.h"

enum {
    PAGE_BYTES = 16 << 20,
    EMPTY_PAGES = 1000,
    PAGE_TRIES = 3,
    SET_BYTES = 256 << 20
};

struct s3 {
    char *bucket, *prefix; // the prefix as given
    bool path_style;
    struct learn learn;
};

/* ---- addresses ---- */

/* Buckets whose name is a host name of one label work as part of the host. */
static bool is_label(const char *bucket)
{
    size_t n = strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n >= 3 && n <= 63 && bucket[n] == 0;
}

static int check_bucket(const char *url, const char *bucket)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-._";
    size_t n = strspn(bucket, fine);
    if (n == 0 || n > 255 || bucket[n])
        return err_set(E_USAGE, "%s: not s3://bucket/prefix", url);
    return 0;
}

static int check_rules(const struct scheme_rules *r)
{
    struct url u;
    if (!r->endpoint)
        return 0;
    TRY(url_split(&u, r->endpoint));
    if (!url_is_web(&u) || u.query_n > 0)
        return err_set(E_USAGE, "the endpoint is not http(s)://host[:port], but %s",
                       r->endpoint);
    return 0;
}

/* With a server of one's own the bucket is in the path, unless that is said otherwise.
 */
static bool in_path(const struct scheme_rules *r, const char *bucket)
{
    return r->addressing == S3_PATH ||
           (r->addressing == S3_AUTO && (r->endpoint || !is_label(bucket)));
}

int s3_open(struct source *s)
{
    struct s3 *b = mem_zero(1, sizeof *b);
    if (!b)
        return E_MEMORY;
    s->state = b;
    const char *name = s->url + strlen("s3://");
    const char *slash = strchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : strlen(name);
    b->bucket = mem_text(name);
    b->prefix = mem_text(slash ? slash + 1 : "");
    if (!b->bucket || !b->prefix)
        return E_MEMORY;
    b->bucket[n] = 0;
    TRY(check_bucket(s->url, b->bucket));
    TRY(check_rules(s->rules));
    b->path_style = in_path(s->rules, b->bucket);
    return learn_open(&b->learn, s->rules->region ? s->rules->region : "us-east-1",
                      s->rules->endpoint);
}

void s3_close(struct source *s)
{
    struct s3 *b = s->state;
    if (!b)
        return;
    learn_close(&b->learn);
    mem_free(b->bucket);
    mem_free(b->prefix);
    mem_free(b);
}

/* scheme://[bucket.]host[/base] of an endpoint. */
static void add_endpoint(struct buf *url, const char *endpoint, const char *bucket)
{
    size_t n = strlen(endpoint);
    const char *host = strstr(endpoint, "://") + 3; // s3_open has looked
    buf_add(url, endpoint, (size_t)(host - endpoint));
    if (*bucket)
        buf_addf(url, "%s.", bucket);
    buf_add(url, host,
            (size_t)(endpoint + n - host) - (n > 0 && endpoint[n - 1] == '/'));
}

/* What stands before the key in all URLs of a bucket.  A host that we were redirected
 * to has the bucket in its name already, or wants it in the path. */
static void add_address(struct buf *url, const struct source *s, const struct known *w)
{
    const struct s3 *b = s->state;
    const char *own = b->path_style ? "" : b->bucket;
    if (w->base)
        add_endpoint(url, w->base, "");
    else if (s->rules->endpoint)
        add_endpoint(url, s->rules->endpoint, own);
    else
        buf_addf(url, "https://%s%ss3.%s.amazonaws.com%s", own, *own ? "." : "",
                 w->region, strncmp(w->region, "cn-", 3) == 0 ? ".cn" : "");
    if (b->path_style) {
        buf_addc(url, '/');
        buf_adds(url, b->bucket);
    }
}

/* ---- requests ---- */

/* What every request of a bucket carries; the last step of making one. */
static int finish(struct source *s, struct http_call *c, const struct known *k,
                  const char *payload)
{
    const struct sign_rules rules = {
        .region = k->region, .payload = payload, .time = time(NULL) + k->clock};
    if (s->rules->requester_pays)
        http_add(&c->lines, "x-amz-request-payer", "requester");
    TRY(buf_check(&c->url));
    c->known = k->version;
    return k->foreign ? 0 : sign_call(c, s->rules->creds, &rules);
}

static struct known get_known(const struct source *s)
{
    struct s3 *b = s->state;
    return learn_get(&b->learn);
}

struct known s3_begin(struct source *s, struct http_call *c, const char *method,
                      const char *key, const char *query)
{
    const struct known known = get_known(s);
    c->method = method;
    add_address(&c->url, s, &known);
    buf_addc(&c->url, '/');
    url_escape(&c->url, key, "/");
    if (*query)
        buf_addf(&c->url, "?%s", query);
    return known;
}

int s3_end(struct source *s, struct http_call *c, const struct known *known,
           const char *payload)
{
    return finish(s, c, known, payload);
}

const char *s3_prefix(const struct source *s)
{
    const struct s3 *b = s->state;
    return b->prefix;
}

int s3_ask(struct source *s, const struct piece *p, struct http_call *c)
{
    char range[64];
    const struct object *o = p->object;
    const struct known known = get_known(s);
    bool bare = p->kind == PIECE_HEAD || p->kind == PIECE_PART;
    c->method = bare ? "HEAD" : "GET";
    add_address(&c->url, s, &known);
    buf_addc(&c->url, '/');
    url_escape(&c->url, o->from, "/");
    if (p->kind == PIECE_PART) {
        buf_adds(&c->url, "?partNumber=1");
    } else if (p->kind == PIECE_RANGE) {
        piece_range(range, p);
        http_add(&c->lines, "Range", range);
    } else if (!s->rules->no_checksum) {
        http_add(&c->lines, "x-amz-checksum-mode", "ENABLED");
    }
    if (o->etag)
        http_add(&c->lines, "If-Match", o->etag);
    return finish(s, c, &known, SIGN_EMPTY);
}

static bool is_about_keys(const struct s3_error *e)
{
    return strcmp(e->code, "ExpiredToken") == 0 ||
           strcmp(e->code, "TokenRefreshRequired") == 0;
}

/* Keys that are too old.  The reply to a HEAD has no code. */
static bool learn_expiry(struct source *s, const struct http_call *c,
                         const struct s3_error *e)
{
    return (is_about_keys(e) || !e->code[0]) &&
           (c->head.status == 400 || c->head.status == 403) &&
           sign_spoil(s->rules->creds, c);
}

/* What else there is to say about a failure that stays. */
static int explain(const struct source *s, const struct http_call *c,
                   const struct s3_error *e, int rc)
{
    if (is_about_keys(e))
        return err_wrap(E_ACCESS, "the keys have expired and nobody has newer ones");
    if (get_known(s).foreign && (rc == E_ACCESS || c->head.status == 400))
        return err_wrap(rc, "redirected to another host, which gets no keys "
                            "(--endpoint)");
    return rc;
}

int s3_judge(struct source *s, const struct piece *p, const struct http_call *c,
             enum verdict *verdict)
{
    struct s3_error e = {{0}, {0}, {0}};
    if (c->end == HTTP_WHOLE && c->head.status / 100 != 2)
        s3_list_error(&e, buf_text(&c->text), c->text.len);
    int rc = retry_judge(verdict, c, p ? p->object->key : s->url, e.code, e.message);
    if (rc == 0 || c->end != HTTP_WHOLE)
        return rc;
    struct s3 *b = s->state;
    if (learn_from(&b->learn, c, &e) || learn_expiry(s, c, &e)) {
        *verdict = VERDICT_NOW;
        return rc;
    }
    if (*verdict == VERDICT_MOVED)
        *verdict = VERDICT_NEVER;
    return *verdict == VERDICT_NEVER ? explain(s, c, &e, rc) : rc;
}

/* ---- the listing ---- */

struct listing {
    struct source *source;
    struct objects *out;
    const char *prefix; // asked for
    size_t cut;         // bytes of a key before its name
    bool exact;         // only the object that is the prefix
    char *token;        // to go on from; NULL: the beginning
    uint64_t *seen;     // hashes of tokens and of first keys: none may come again
    int64_t n_seen, cap_seen;
    int empty; // pages in a row
    bool first;
    struct buf sets; // the folders with a manifest (set.h), each with its NUL
};

static int ask_page(struct source *s, void *user, struct http_call *c)
{
    const struct listing *l = user;
    const struct known known = get_known(s);
    c->method = "GET";
    c->limit = PAGE_BYTES;
    add_address(&c->url, s, &known);
    buf_adds(&c->url, "/?");
    if (l->token) {
        buf_adds(&c->url, "continuation-token=");
        url_escape(&c->url, l->token, "");
        buf_addc(&c->url, '&');
    }
    buf_adds(&c->url, "encoding-type=url&list-type=2");
    if (l->exact)
        buf_adds(&c->url, "&max-keys=1");
    buf_adds(&c->url, "&prefix=");
    url_escape(&c->url, l->prefix, "");
    return finish(s, c, &known, SIGN_EMPTY);
}

/* A listing that comes back to where it was would never end. */
static int see(struct listing *l, const char *what)
{
    uint64_t hash = hash_bytes(what, strlen(what));
    for (int64_t i = 0; i < l->n_seen; i++)
        if (l->seen[i] == hash)
            return err_set(E_FORMAT, "%s: the listing goes in a circle",
                           l->source->url);
    uint64_t *seen = mem_room(l->seen, l->n_seen, &l->cap_seen, sizeof *seen);
    if (!seen)
        return E_MEMORY;
    l->seen = seen;
    l->seen[l->n_seen++] = hash;
    return 0;
}

static int take_item(void *user, const struct s3_item *item)
{
    struct listing *l = user;
    size_t n = strlen(item->key);
    if (l->first)
        TRY(see(l, item->key));
    l->first = false;
    if (strncmp(item->key, l->prefix, strlen(l->prefix)) != 0)
        return err_set(E_FORMAT, "%s: the listing has %s, which was not asked for",
                       l->source->url, item->key);
    if (l->exact && strcmp(item->key, l->prefix) != 0)
        return 0;
    size_t folder = set_folder(item->key);
    if (!l->exact && folder < n) {
        buf_add(&l->sets, item->key, folder);
        buf_addc(&l->sets, 0);
        return 0;
    }
    bool marker = item->size == 0 && n > 0 && item->key[n - 1] == '/';
    if (marker)
        return 0;
    struct object *o = object_add(l->out, item->key + l->cut, item->key);
    if (!o)
        return E_MEMORY;
    o->size = item->size;
    o->mtime_ns = item->mtime_ns;
    o->md5 = l->source->rules->check_etag;
    if (*item->etag && !(o->etag = object_text(l->out, item->etag)))
        return E_MEMORY;
    return 0;
}

/* One page into the list.  What is no listing at all came from something else, which
 * may be gone at the next attempt. */
static int read_page(struct listing *l, struct http *http, struct http_call *c,
                     struct s3_page *page)
{
    int64_t objects = l->out->n, seen = l->n_seen;
    int rc = 0;
    for (int tries = 0; tries < PAGE_TRIES; tries++) {
        l->out->n = objects;
        l->n_seen = seen;
        l->first = true;
        TRY(scheme_run(l->source, http, c, ask_page, l));
        rc = s3_list_page(page, buf_text(&c->text), c->text.len, take_item, l);
        if (rc != E_FORMAT)
            return rc;
    }
    return err_wrap(rc, "%s: cannot read the listing", l->source->url);
}

/* 1: there is another page, and l->token leads to it. */
static int take_page(struct listing *l, const struct s3_page *page)
{
    l->empty = page->items > 0 ? 0 : l->empty + 1;
    if (l->empty > EMPTY_PAGES)
        return err_set(E_FORMAT, "%s: %d empty pages of a listing", l->source->url,
                       l->empty);
    if (l->exact || !page->more)
        return 0;
    TRY(see(l, page->token.p));
    TRY(budget_listing(l->source->rules->memory, l->out->n, l->source->url));
    mem_free(l->token);
    l->token = mem_text(page->token.p);
    return l->token ? 1 : E_MEMORY;
}

static int list_pages(struct listing *l, struct http *http)
{
    struct http_call c = {0};
    struct s3_page page = {0};
    int rc;
    do {
        rc = read_page(l, http, &c, &page);
        if (rc == 0)
            rc = take_page(l, &page);
    } while (rc > 0);
    http_call_drop(&c);
    buf_drop(&page.token);
    mem_free(l->token);
    mem_free(l->seen);
    return rc;
}

/* The object that is the prefix itself. */
static int list_exact(struct source *s, struct objects *out, struct http *http)
{
    const struct s3 *b = s->state;
    const char *slash = strrchr(b->prefix, '/');
    struct listing l = {.source = s, .out = out, .prefix = b->prefix, .exact = true};
    l.cut = slash ? (size_t)(slash + 1 - b->prefix) : 0;
    return list_pages(&l, http);
}

static int ask_set(struct source *s, void *user, struct http_call *c)
{
    const struct known known = s3_begin(s, c, "GET", user, "");
    c->limit = SET_BYTES;
    return s3_end(s, c, &known, SIGN_EMPTY);
}

/* The objects of a folder against its manifest: an upload has ended, and is all there.
 */
static int check_set(const struct listing *l, int64_t first, struct http *http,
                     const char *folder)
{
    struct http_call c = {0};
    struct set set = {0};
    struct buf key = {0};
    buf_addf(&key, "%s" SET_NAME, folder);
    int rc = buf_check(&key);
    if (rc == 0)
        rc = scheme_run(l->source, http, &c, ask_set, key.p);
    if (rc == 0)
        rc = set_parse(&set, buf_text(&c.text), c.text.len);
    if (rc == E_FORMAT)
        err_wrap(rc, "%s", buf_text(&key));
    if (rc == 0)
        rc = set_check(&set, l->out, first, folder);
    set_drop(&set);
    http_call_drop(&c);
    buf_drop(&key);
    return rc;
}

static int check_sets(const struct listing *l, int64_t first, struct http *http)
{
    const char *folder = buf_text(&l->sets), *end = folder + l->sets.len;
    for (; folder < end; folder += strlen(folder) + 1)
        TRY(check_set(l, first, http, folder));
    return 0;
}

static int list_folder(struct source *s, struct objects *out, struct http *http,
                       bool check)
{
    const struct s3 *b = s->state;
    struct buf prefix = {0};
    buf_adds(&prefix, b->prefix);
    if (prefix.len > 0 && prefix.p[prefix.len - 1] != '/')
        buf_addc(&prefix, '/');
    TRY(buf_check(&prefix));
    struct listing l = {
        .source = s, .out = out, .prefix = buf_text(&prefix), .cut = prefix.len};
    int64_t first = out->n;
    int rc = list_pages(&l, http);
    if (rc == 0 && (rc = buf_check(&l.sets)) == 0 && check)
        rc = check_sets(&l, first, http);
    buf_drop(&l.sets);
    buf_drop(&prefix);
    return rc;
}

int s3_list_raw(struct source *s, struct objects *out)
{
    struct http *http;
    TRY(http_open(&http, &s->rules->http));
    int rc = list_folder(s, out, http, false);
    http_close(http);
    return rc;
}

int s3_list(struct source *s, struct objects *out)
{
    const struct s3 *b = s->state;
    struct http *http;
    size_t n = strlen(b->prefix);
    TRY(http_open(&http, &s->rules->http));
    int rc = 0;
    if (n > 0 && b->prefix[n - 1] != '/')
        rc = list_exact(s, out, http);
    if (rc == 0)
        rc = list_folder(s, out, http, true);
    http_close(http);
    return rc;
}
