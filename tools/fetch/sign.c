/* SPDX-License-Identifier: MIT */
/* sign.c - takes a call apart into what sigv4.h signs.
 *
 * The URL is decoded and encoded again.  That it comes out as it was is not taken for
 * granted: a URL that is written in another way would be signed as another one. */
#include "sign.h"

#include <string.h>

#include "err.h"
#include "sigv4.h"
#include "url.h"

/* The parts, as strings in one buffer that is not moved any more. */
struct parts {
    struct buf text;
    struct sigv4_pair query[SIGV4_PAIRS], header[SIGV4_PAIRS];
    const char *path;
    int queries, headers;
};

/* Decodes a run and ends it with a NUL; room for it has been made. */
static int cut(const char **out, struct parts *p, const char *from, size_t n)
{
    struct buf raw = {0};
    *out = p->text.p + p->text.len;
    buf_add(&raw, from, n);
    int rc = buf_check(&raw);
    if (rc == 0)
        rc = url_unescape(&p->text, buf_text(&raw), false);
    buf_addc(&p->text, 0);
    buf_drop(&raw);
    return rc;
}

static int cut_query(struct parts *p, const char *query, size_t n)
{
    while (n > 0) {
        const char *end = memchr(query, '&', n);
        size_t size = end ? (size_t)(end - query) : n;
        const char *equals = memchr(query, '=', size);
        size_t name = equals ? (size_t)(equals - query) : size;
        if (p->queries == SIGV4_PAIRS)
            bug("more than %d parameters", SIGV4_PAIRS);
        struct sigv4_pair *to = &p->query[p->queries++];
        TRY(cut(&to->name, p, query, name));
        TRY(cut(&to->value, p, query + name + (equals != NULL),
                size - name - (equals != NULL)));
        query += size + (end != NULL);
        n -= size + (end != NULL);
    }
    return 0;
}

static void add_header(struct parts *p, const char *name, const char *value)
{
    if (p->headers == SIGV4_PAIRS)
        bug("more than %d headers", SIGV4_PAIRS);
    p->header[p->headers++] = (struct sigv4_pair){name, value};
}

/* "Name: value" lines; the text of the call is copied, because it will grow. */
static void cut_lines(struct parts *p, const struct http_lines *lines)
{
    const char *line = buf_text(&lines->text);
    for (int i = 0; i < lines->n; i++, line += strlen(line) + 1) {
        size_t name = strcspn(line, ":");
        const char *at = p->text.p + p->text.len;
        buf_add(&p->text, line, name);
        buf_addc(&p->text, 0);
        buf_add(&p->text, line + name + 2, strlen(line + name + 2) + 1);
        add_header(p, at, at + name + 1);
    }
}

static int take_apart(struct parts *p, const struct http_call *call)
{
    struct url u;
    TRY(url_split(&u, buf_text(&call->url)));
    buf_room(&p->text, call->url.len + call->lines.text.len + 4 * SIGV4_PAIRS);
    TRY(buf_check(&p->text));
    const char *host = p->text.p + p->text.len;
    buf_add(&p->text, u.host, u.host_n);
    buf_addc(&p->text, 0);
    add_header(p, "host", host);
    TRY(cut(&p->path, p, u.path, u.path_n));
    TRY(cut_query(p, u.query, u.query_n));
    cut_lines(p, &call->lines);
    return buf_check(&p->text);
}

/* What is sent must be what is signed: the path byte for byte, the query up to its
 * order. */
static int check_target(const struct http_call *call, const struct sigv4_request *r)
{
    struct buf path = {0};
    struct url u;
    TRY(url_split(&u, buf_text(&call->url)));
    url_escape(&path, r->path, "/");
    int rc = buf_check(&path);
    if (rc == 0 && (path.len != u.path_n || memcmp(path.p, u.path, u.path_n) != 0))
        bug("a path that is not encoded as S3 signs it: %.*s", (int)u.path_n, u.path);
    buf_drop(&path);
    return rc;
}

static int add_signature(struct http_call *call, struct parts *p,
                         const struct sign_rules *rules, const struct sigv4_key *key,
                         const char *token)
{
    char date[SIGV4_DATE];
    struct buf authorization = {0};
    int first = p->headers;
    add_header(p, "x-amz-content-sha256", rules->payload);
    add_header(p, "x-amz-date", sigv4_date(date, rules->time));
    if (*token)
        add_header(p, "x-amz-security-token", token);
    const struct sigv4_request r = {.method = call->method,
                                    .path = p->path,
                                    .query = p->query,
                                    .queries = p->queries,
                                    .header = p->header,
                                    .headers = p->headers,
                                    .payload = rules->payload,
                                    .time = rules->time};
    int rc = check_target(call, &r);
    if (rc == 0)
        rc = sigv4_sign(&authorization, &r, key);
    for (int i = first; i < p->headers; i++)
        http_add(&call->lines, p->header[i].name, p->header[i].value);
    http_add(&call->lines, "Authorization", buf_text(&authorization));
    buf_drop(&authorization);
    return rc < 0 ? rc : buf_check(&call->lines.text);
}

int sign_call(struct http_call *call, struct creds *creds,
              const struct sign_rules *rules)
{
    struct sigv4_key key = {0};
    struct parts p = {0};
    struct buf token = {0};
    int rc = creds_take(creds, rules->time, rules->region, "s3", &key, &token);
    if (rc > 0) {
        rc = take_apart(&p, call);
        if (rc == 0)
            rc = add_signature(call, &p, rules, &key, buf_text(&token));
    }
    sigv4_key_drop(&key);
    if (token.p)
        explicit_bzero(token.p, token.cap);
    buf_drop(&token);
    buf_drop(&p.text);
    return rc;
}

bool sign_spoil(struct creds *creds, const struct http_call *call)
{
    static const char mark[] = "Authorization: AWS4-HMAC-SHA256 Credential=";
    const char *line = buf_text(&call->lines.text);
    for (int i = 0; i < call->lines.n; i++, line += strlen(line) + 1) {
        char access[sizeof((struct sigv4_key *)0)->access];
        size_t m = strlen(mark), n;
        if (strncmp(line, mark, m) != 0 ||
            (n = strcspn(line + m, "/")) >= sizeof access)
            continue;
        memcpy(access, line + m, n);
        access[n] = 0;
        return creds_spoil(creds, access);
    }
    return false;
}
