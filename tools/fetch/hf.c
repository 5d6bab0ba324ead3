/* SPDX-License-Identifier: MIT */
/* hf.c - the hub's API: a commit, pages of its tree, and where its files are.
 *
 *     GET /api/models/OWNER/NAME/revision/REVISION          -> the commit
 *     GET /api/models/OWNER/NAME/tree/COMMIT?recursive=true -> files, a Link to more
 *     GET /OWNER/NAME/resolve/COMMIT/FILE                   -> the file, or a redirect
 */
#include "hf.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "budget.h"
#include "creds_link.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "hf_route.h"
#include "json.h"
#include "mem.h"
#include "s3_list.h"
#include "url.h"

enum { PAGE_BYTES = 16 << 20, PAGES_MAX = 100000, PAGE_TRIES = 3, TOKEN_MAX = 4096 };

struct hub {
    char *host;     // http(s)://host, without a slash at its end
    char *repo;     // "models/owner/name" or "datasets/owner/name", as the API has it
    char *revision; // escaped
    char *glob;     // NULL: all files
    char *token;    // NULL: none
    char *commit;
    int64_t time_ns; // of the commit
    struct routes routes;
};

/* ---- the source's URL and the token ---- */

static bool is_name(const char *text, size_t n)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-._";
    bool dots = (n == 1 && *text == '.') || (n == 2 && memcmp(text, "..", 2) == 0);
    return n > 0 && n <= 96 && strspn(text, fine) >= n && !dots;
}

static char *text_of(const char *text, size_t n)
{
    char *copy = mem_alloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

/* What stands behind '@', with escapes for '/' ("refs%2Fpr%2F1"), made plain and then
 * escaped in our own way. */
static int take_revision(struct hub *h, const char *text, size_t n)
{
    struct buf plain = {0}, escaped = {0};
    char *copy = text_of(text, n);
    int rc = copy ? url_unescape(&plain, copy, false) : E_MEMORY;
    if (rc == 0 && plain.len == 0)
        rc = err_set(E_USAGE, "an empty revision");
    if (rc == 0) {
        url_escape(&escaped, buf_text(&plain), "");
        h->revision = mem_text(buf_text(&escaped));
        rc = h->revision ? buf_check(&escaped) : E_MEMORY;
    }
    buf_drop(&plain);
    buf_drop(&escaped);
    mem_free(copy);
    return rc;
}

static int take_url(struct hub *h, const char *url)
{
    static const char data[] = "datasets/", models[] = "models/";
    const char *at = url + strlen("hf://"), *kind = models;
    if (strncmp(at, data, strlen(data)) == 0) {
        at += strlen(data);
        kind = data;
    } else if (strncmp(at, models, strlen(models)) == 0) {
        at += strlen(models);
    }
    size_t owner = strcspn(at, "/@");
    const char *name = at + owner + (at[owner] == '/');
    size_t n = strcspn(name, "/@");
    if (at[owner] != '/' || !is_name(at, owner) || !is_name(name, n))
        return err_set(E_USAGE, "%s: not hf://[datasets/]owner/name[@revision][/glob]",
                       url);
    struct buf repo = {0};
    buf_adds(&repo, kind);
    buf_add(&repo, at, owner + 1 + n);
    h->repo = mem_text(buf_text(&repo));
    buf_drop(&repo);
    const char *rest = name + n;
    size_t revision = *rest == '@' ? strcspn(rest + 1, "/") : 4;
    TRY(take_revision(h, *rest == '@' ? rest + 1 : "main", revision));
    rest += *rest == '@' ? 1 + revision : 0;
    h->glob = *rest == '/' && rest[1] ? mem_text(rest + 1) : NULL;
    return h->repo && (h->glob || *rest == 0 || rest[1] == 0) ? 0 : E_MEMORY;
}

/* Where hub tools keep it; a new string, NULL when there is no home. */
static int usual_token(char **out)
{
    const char *home = creds_env("HF_HOME");
    *out = NULL;
    if (home)
        *out = file_path(home, "token");
    else if ((home = creds_env("HOME")))
        *out = file_path(home, ".cache/huggingface/token");
    else
        return 0;
    return *out ? 0 : E_MEMORY;
}

/* A file that is named must be there, the usual one may be missing. */
static int read_token(struct hub *h)
{
    const char *named = creds_env("HF_TOKEN_PATH");
    char *usual = NULL;
    size_t n;
    TRY(named ? 0 : usual_token(&usual));
    const char *path = named ? named : usual;
    int rc =
        named || (usual && file_exists(usual)) ? creds_token(&h->token, &n, path) : 0;
    mem_free(usual);
    return rc;
}

static int take_token(struct hub *h)
{
    const char *token = creds_env("HF_TOKEN");
    if (token) {
        h->token = mem_text(token);
        TRY(h->token ? 0 : E_MEMORY);
    } else {
        TRY(read_token(h));
    }
    for (const char *t = h->token; t && *t; t++)
        if (*t <= ' ' || *t == 0x7f)
            return err_set(E_CONFIG, "the hub's token has a blank in it");
    if (h->token && strlen(h->token) > TOKEN_MAX)
        return err_set(E_CONFIG, "the hub's token is too long");
    return 0;
}

static int take_host(struct hub *h)
{
    const char *host = creds_env("HF_ENDPOINT");
    struct url u;
    if (!host)
        host = "https://huggingface.co";
    TRY(url_split(&u, host));
    if (!url_is_web(&u))
        return err_set(E_USAGE, "HF_ENDPOINT is not http(s)://host, but %s", host);
    size_t n = strlen(host);
    h->host = text_of(host, host[n - 1] == '/' ? n - 1 : n);
    return h->host ? 0 : E_MEMORY;
}

int hf_open(struct source *s)
{
    struct hub *h = mem_zero(1, sizeof *h);
    if (!h)
        return E_MEMORY;
    s->state = h;
    hf_route_open(&h->routes);
    TRY(take_url(h, s->url));
    TRY(take_host(h));
    return take_token(h);
}

void hf_close(struct source *s)
{
    struct hub *h = s->state;
    if (!h)
        return;
    if (h->token)
        explicit_bzero(h->token, strlen(h->token));
    char *text[] = {h->host, h->repo, h->revision, h->glob, h->token, h->commit};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        mem_free(text[i]);
    hf_route_close(&h->routes);
    mem_free(h);
}

/* ---- requests ---- */

/* The token goes to the hub, and to nobody whom the hub names. */
static int finish(const struct hub *h, struct http_call *c)
{
    struct buf value = {0};
    TRY(buf_check(&c->url));
    if (!h->token || !url_same_host(h->host, buf_text(&c->url)))
        return 0;
    buf_room(&value, strlen(h->token) + 16);
    buf_addf(&value, "Bearer %s", h->token);
    http_add(&c->lines, "Authorization", buf_text(&value));
    int rc = buf_check(&value);
    if (value.p)
        explicit_bzero(value.p, value.cap);
    buf_drop(&value);
    return rc;
}

/* The repository's part of a page's URL: models stand at the root. */
static const char *page_path(const struct hub *h)
{
    static const char models[] = "models/";
    return strncmp(h->repo, models, strlen(models)) == 0 ? h->repo + strlen(models)
                                                         : h->repo;
}

int hf_ask(struct source *s, const struct piece *p, struct http_call *c)
{
    struct hub *h = s->state;
    char range[64];
    c->method = "GET";
    if (!hf_route_get(&h->routes, p->object->from, &c->url)) {
        buf_addf(&c->url, "%s/%s/resolve/%s/", h->host, page_path(h), h->commit);
        url_escape(&c->url, p->object->from, "/");
    }
    if (p->kind == PIECE_RANGE) {
        piece_range(range, p);
        http_add(&c->lines, "Range", range);
    }
    return finish(h, c);
}

/* What the hub says about a failure: {"error": "..."}. */
static void read_error(char *to, size_t size, const struct http_call *c)
{
    struct json *v;
    const char *text = "";
    *to = 0;
    if (json_parse(&v, buf_text(&c->text), c->text.len) < 0)
        return;
    if (json_is_object(v) && json_have_text(v, "error", &text) >= 0)
        snprintf(to, size, "%s", text);
    json_free(v);
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 ||
           status == 308;
}

/* A store that refuses a URL that it has accepted before: the URL has grown old. */
static bool is_old(int status)
{
    return status == 400 || status == 401 || status == 403 || status == 404 ||
           status == 410;
}

int hf_judge(struct source *s, const struct piece *p, const struct http_call *c,
             enum verdict *verdict)
{
    struct hub *h = s->state;
    const void *key = p ? (const void *)p->object->from : s;
    const char *name = p ? p->object->key : s->url, *url = buf_text(&c->url);
    char why[256] = "";
    int status = c->head.status;
    if (c->end == HTTP_WHOLE && is_redirect(status) && c->head.location[0]) {
        *verdict = VERDICT_NEVER;
        int rc = hf_route_set(&h->routes, key, url, c->head.location);
        TRY(rc < 0 ? err_wrap(rc, "%s", name) : 0);
        *verdict = VERDICT_NOW;
        return err_set(E_REMOTE, "%s: redirected", name);
    }
    if (c->end == HTTP_WHOLE && status / 100 != 2 && c->text.len > 0)
        read_error(why, sizeof why, c);
    int rc = retry_judge(verdict, c, name, "", why); // 0 for a whole 2xx reply
    if (c->end == HTTP_WHOLE && is_old(status) && hf_route_drop(&h->routes, key, url) &&
        !url_same_host(h->host, url))
        *verdict = VERDICT_NOW;
    if (rc == E_ACCESS && !h->token && *verdict == VERDICT_NEVER)
        err_wrap(rc, "no token (HF_TOKEN)");
    return rc;
}

/* ---- the listing ---- */

struct listing {
    struct source *source;
    struct objects *out;
    struct buf url; // of what is asked next
    uint64_t *seen; // hashes of the URLs so far
    int64_t pages, cap;
};

/* The listing's own key for redirects is its source: a renamed repository. */
static int ask_page(struct source *s, void *user, struct http_call *c)
{
    struct listing *l = user;
    struct hub *h = s->state;
    c->method = "GET";
    c->limit = PAGE_BYTES;
    if (!hf_route_get(&h->routes, s, &c->url))
        buf_add(&c->url, l->url.p, l->url.len);
    http_add(&c->lines, "Accept", "application/json");
    return finish(h, c);
}

int hf_next(struct buf *url, const char *link)
{
    buf_clear(url);
    while (*link) {
        link += strspn(link, " ,");
        if (*link == 0)
            break;
        const char *end = *link == '<' ? strchr(link, '>') : NULL;
        if (!end)
            return err_set(E_FORMAT, "a Link header that is none");
        size_t rest = strcspn(end, ",");
        const char *rel = memmem(end, rest, "rel=\"next\"", 10);
        if (rel) {
            buf_add(url, link + 1, (size_t)(end - link - 1));
            TRY(buf_check(url));
            return 1;
        }
        link = end + rest;
    }
    return 0;
}

static bool is_wanted(const struct hub *h, const char *path)
{
    const char *glob = h->glob;
    if (!glob)
        return true;
    if (strpbrk(glob, "*?["))
        return fnmatch(glob, path, 0) == 0;
    size_t n = strlen(glob);
    if (n > 0 && glob[n - 1] == '/')
        n--;
    return strncmp(path, glob, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* As in folders: names that begin with a dot are never input. */
static bool is_hidden(const char *path)
{
    return *path == '.' || strstr(path, "/.");
}

static bool is_hex(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* Large files have a SHA-256, all others what git knows them by. */
static int take_hash(struct listing *l, const struct json *v, struct object *o)
{
    const struct json *lfs = json_get(v, "lfs");
    bool large = lfs && !json_is_null(lfs);
    const char *oid;
    TRY(json_need_text(large ? lfs : v, "oid", &oid));
    if (!is_hex(oid, large ? 64 : 40))
        return err_set(E_FORMAT, "%s: %soid is no %s", o->key, large ? "lfs." : "",
                       large ? "SHA-256" : "SHA-1");
    const char *copy = object_text(l->out, oid);
    o->sha256 = large ? copy : NULL;
    o->blob = large ? NULL : copy;
    return copy ? 0 : E_MEMORY;
}

/* The listing has no times of files, so each is as old as the commit: another commit
 * brings all files anew, rather than miss one whose size has stayed. */
static int take_file(struct listing *l, const struct json *v, const char *path)
{
    const struct hub *h = l->source->state;
    int64_t size;
    struct object *o = object_add(l->out, path, path);
    if (!o)
        return E_MEMORY;
    TRY(json_need_int(v, "size", &size));
    o->size = size;
    o->mtime_ns = h->time_ns;
    TRY(size >= 0 ? 0 : err_set(E_FORMAT, "%s: a negative size", path));
    return take_hash(l, v, o);
}

static int take_entry(struct listing *l, const struct json *v)
{
    const struct hub *h = l->source->state;
    const char *type, *path;
    if (!json_is_object(v))
        return err_set(E_FORMAT, "an entry that is no object");
    TRY(json_need_text(v, "type", &type));
    TRY(json_need_text(v, "path", &path));
    if (strcmp(type, "file") != 0 || is_hidden(path) || !is_wanted(h, path))
        return 0;
    return take_file(l, v, path);
}

static int take_tree(struct listing *l, const struct http_call *c)
{
    struct json *v;
    TRY(json_parse(&v, buf_text(&c->text), c->text.len));
    int rc = json_is_array(v) ? 0 : err_set(E_FORMAT, "not an array");
    for (int64_t i = 0; rc == 0 && i < json_size(v); i++)
        rc = take_entry(l, json_at(v, i));
    json_free(v);
    return rc;
}

/* Where the listing goes on: 1.  At another host, or where it was before, it does not.
 */
static int take_next(struct listing *l, const struct http_call *c)
{
    const struct hub *h = l->source->state;
    if (c->head.link_long)
        return err_set(E_FORMAT, "a Link header of over %d bytes", HEAD_URL - 1);
    int more = hf_next(&l->url, c->head.link);
    TRY(more);
    if (more == 0)
        return 0;
    if (!url_same_host(h->host, buf_text(&l->url)))
        return err_set(E_FORMAT, "the listing goes on at another host");
    uint64_t hash = hash_bytes(l->url.p, l->url.len);
    for (int64_t i = 0; i < l->pages; i++)
        if (l->seen[i] == hash)
            return err_set(E_FORMAT, "the listing goes in a circle");
    uint64_t *seen = l->pages < PAGES_MAX
                         ? mem_room(l->seen, l->pages, &l->cap, sizeof *seen)
                         : NULL;
    if (!seen)
        return l->pages < PAGES_MAX ? E_MEMORY
                                    : err_set(E_FORMAT, "the listing does not end");
    l->seen = seen;
    l->seen[l->pages++] = hash;
    return 1;
}

static int take_commit(struct listing *l, const struct http_call *c)
{
    struct hub *h = l->source->state;
    struct json *v;
    const char *sha, *date = "";
    TRY(json_parse(&v, buf_text(&c->text), c->text.len));
    int rc = json_is_object(v) ? json_need_text(v, "sha", &sha)
                               : err_set(E_FORMAT, "not an object");
    if (rc == 0 && (strlen(sha) != 40 || strspn(sha, "0123456789abcdef") != 40))
        rc = err_set(E_FORMAT, "\"sha\" is no commit");
    if (rc == 0)
        rc = json_have_text(v, "lastModified", &date);
    if (rc >= 0)
        rc = (h->commit = mem_text(sha)) ? 0 : E_MEMORY;
    h->time_ns = s3_list_time(date);
    json_free(v);
    return rc;
}

/* One reply of the API.  What cannot be read came from something else, which may be
 * gone at the next attempt. */
static int read_page(struct listing *l, struct http *http, struct http_call *c,
                     int (*take)(struct listing *l, const struct http_call *c))
{
    int64_t objects = l->out->n;
    int rc = 0;
    for (int tries = 0; tries < PAGE_TRIES; tries++) {
        l->out->n = objects;
        TRY(scheme_run(l->source, http, c, ask_page, l));
        rc = take(l, c);
        if (rc != E_FORMAT)
            break;
    }
    return rc;
}

static int list_pages(struct listing *l, struct http *http, struct http_call *c)
{
    struct hub *h = l->source->state;
    buf_addf(&l->url, "%s/api/%s/revision/%s?expand=sha&expand=lastModified", h->host,
             h->repo, h->revision);
    int rc = read_page(l, http, c, take_commit);
    buf_clear(&l->url);
    buf_addf(&l->url, "%s/api/%s/tree/%s?recursive=true", h->host, h->repo,
             h->commit ? h->commit : "");
    for (int more = 1; rc == 0 && more > 0;) {
        hf_route_drop(&h->routes, l->source, buf_text(&c->url)); // of the page before
        rc = read_page(l, http, c, take_tree);
        if (rc == 0)
            rc = more = take_next(l, c);
        if (rc > 0)
            rc = budget_listing(l->source->rules->memory, l->out->n, l->source->url);
        rc = rc > 0 ? 0 : rc;
    }
    return rc;
}

int hf_list(struct source *s, struct objects *out)
{
    struct listing l = {.source = s, .out = out};
    struct http_call c = {0};
    struct http *http;
    TRY(http_open(&http, &s->rules->http));
    int rc = list_pages(&l, http, &c);
    if (rc == E_FORMAT)
        err_wrap(rc, "%s: cannot read the listing", s->url);
    http_close(http);
    http_call_drop(&c);
    buf_drop(&l.url);
    mem_free(l.seen);
    return rc;
}
