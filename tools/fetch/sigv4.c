/* SPDX-License-Identifier: MIT */
/* sigv4.c - the canonical request, the chain of keys, and the signature.
 *
 *     key       = HMAC(HMAC(HMAC(HMAC("AWS4" secret, day), region), service),
 * "aws4_request") signature = HMAC(key, "AWS4-HMAC-SHA256" time scope SHA256(canonical
 * request))
 *
 * Four of the five HMACs depend on the day, the region and the service alone and are
 * kept in struct sigv4_key. */
#include "sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "digest.h"
#include "err.h"
#include "url.h"

enum { DIGEST = 32, DAY = 86400 };

/* ---- text ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

char *sigv4_hash(char out[SIGV4_HEX], const void *p, size_t n)
{
    unsigned char digest[DIGEST];
    SHA256(p, n, digest);
    digest_to_hex(out, digest, sizeof digest);
    return out;
}

char *sigv4_date(char out[SIGV4_DATE], int64_t time)
{
    struct tm tm;
    time_t t = (time_t)time;
    if (!gmtime_r(&t, &tm) || strftime(out, SIGV4_DATE, "%Y%m%dT%H%M%SZ", &tm) != 16)
        bug("no such time: %lld", (long long)time);
    return out;
}

/* ---- path and query ---- */

/* RFC 3986 5.2.4, and runs of slashes are one. */
static void resolve(struct buf *out, const char *path)
{
    bool folder = true; // what the path names last
    size_t n;
    for (path += strspn(path, "/"); *path; path += n + strspn(path + n, "/")) {
        n = strcspn(path, "/");
        bool up = n == 2 && memcmp(path, "..", 2) == 0, here = n == 1 && *path == '.';
        folder = up || here || path[n] == '/';
        while (up && out->len > 0 && out->p[--out->len] != '/')
            ;
        if (!up && !here) {
            buf_addc(out, '/');
            buf_add(out, path, n);
        }
    }
    if (folder)
        buf_addc(out, '/');
}

static void add_path(struct buf *out, const struct sigv4_request *r)
{
    struct buf resolved = {0};
    if (r->resolve)
        resolve(&resolved, r->path);
    out->failed |= resolved.failed;
    url_escape(out, r->resolve ? buf_text(&resolved) : r->path, "/");
    buf_drop(&resolved);
}

/* An encoded parameter: where its name and its value begin in a text of strings. */
struct parameter {
    const char *name, *value;
};

static int compare_parameters(const void *a, const void *b)
{
    const struct parameter *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->value, y->value);
}

static void add_query(struct buf *out, const struct sigv4_request *r)
{
    struct buf text = {0};
    struct parameter p[SIGV4_PAIRS];
    if (r->queries > SIGV4_PAIRS)
        bug("%d query parameters", r->queries);
    for (int i = 0; i < r->queries; i++) {
        url_escape(&text, r->query[i].name, "");
        buf_addc(&text, 0);
        url_escape(&text, r->query[i].value, "");
        buf_addc(&text, 0);
    }
    out->failed |= text.failed;
    const char *at = text.p;
    for (int i = 0; i < r->queries && !text.failed; i++) {
        p[i].name = at;
        p[i].value = at + strlen(at) + 1;
        at = p[i].value + strlen(p[i].value) + 1;
    }
    if (!text.failed)
        qsort(p, (size_t)r->queries, sizeof *p, compare_parameters);
    for (int i = 0; i < r->queries && !text.failed; i++)
        buf_addf(out, "%s%s=%s", i ? "&" : "", p[i].name, p[i].value);
    buf_drop(&text);
}

void sigv4_target(struct buf *out, const struct sigv4_request *r)
{
    url_escape(out, r->path, "/");
    if (r->queries > 0)
        buf_addc(out, '?');
    add_query(out, r);
}

/* ---- headers ---- */

/* Names are compared in lower case; equal ones stay in the order in which they are
 * sent, which qsort alone would not promise: all point into one array. */
static int compare_headers(const void *a, const void *b)
{
    const struct sigv4_pair *x = *(const struct sigv4_pair *const *)a,
                            *y = *(const struct sigv4_pair *const *)b;
    const char *s = x->name, *t = y->name;
    while (*s && lower(*s) == lower(*t))
        s++, t++;
    int order = (unsigned char)lower(*s) - (unsigned char)lower(*t);
    return order ? order : (x > y) - (x < y);
}

static void add_lower(struct buf *out, const char *name)
{
    for (; *name; name++)
        buf_addc(out, lower(*name));
}

/* Blanks at both ends go, runs of them become one space. */
static void add_trimmed(struct buf *out, const char *value)
{
    size_t start = out->len;
    for (; *value; value++) {
        if (!is_blank(*value))
            buf_addc(out, *value);
        else if (value[1] && !is_blank(value[1]) && out->len > start)
            buf_addc(out, ' ');
    }
}

static void add_headers(struct buf *out, struct buf *names,
                        const struct sigv4_request *r)
{
    const struct sigv4_pair *h[SIGV4_PAIRS];
    if (r->headers > SIGV4_PAIRS)
        bug("%d headers", r->headers);
    for (int i = 0; i < r->headers; i++)
        h[i] = &r->header[i];
    qsort(h, (size_t)r->headers, sizeof *h, compare_headers);
    for (int i = 0; i < r->headers; i++) {
        bool again = i > 0 && strcasecmp(h[i]->name, h[i - 1]->name) == 0;
        if (!again) {
            if (i > 0) {
                buf_addc(out, '\n');
                buf_addc(names, ';');
            }
            add_lower(out, h[i]->name);
            add_lower(names, h[i]->name);
        }
        buf_addc(out, again ? ',' : ':');
        add_trimmed(out, h[i]->value);
    }
    buf_addc(out, '\n');
}

/* ---- the signature ---- */

void sigv4_canonical(struct buf *out, struct buf *names, const struct sigv4_request *r)
{
    buf_adds(out, r->method);
    buf_addc(out, '\n');
    add_path(out, r);
    buf_addc(out, '\n');
    add_query(out, r);
    buf_addc(out, '\n');
    add_headers(out, names, r);
    buf_addf(out, "\n%s\n%s", buf_text(names), r->payload);
    out->failed |= names->failed;
}

static void hmac(unsigned char out[DIGEST], const void *key, size_t keylen,
                 const char *text, size_t n)
{
    if (!HMAC(EVP_sha256(), key, (int)keylen, (const unsigned char *)text, n, out,
              NULL))
        bug("HMAC-SHA256 failed");
}

int sigv4_key_init(struct sigv4_key *k, const char *access, const char *secret,
                   int64_t time, const char *region, const char *service)
{
    struct buf first = {0};
    char date[SIGV4_DATE];
    sigv4_date(date, time)[8] = 0;
    *k = (struct sigv4_key){.day = time / DAY};
    int scope = snprintf(k->scope, sizeof k->scope, "%s/%s/%s/aws4_request", date,
                         region, service);
    if (scope >= (int)sizeof k->scope || strlen(access) >= sizeof k->access)
        return err_set(E_CONFIG, "cannot sign: access key or region is too long");
    memcpy(k->access, access, strlen(access) + 1);
    buf_addf(&first, "AWS4%s", secret);
    int rc = buf_check(&first);
    if (rc == 0) {
        hmac(k->key, first.p, first.len, date, 8);
        hmac(k->key, k->key, DIGEST, region, strlen(region));
        hmac(k->key, k->key, DIGEST, service, strlen(service));
        hmac(k->key, k->key, DIGEST, "aws4_request", 12);
        explicit_bzero(first.p, first.cap);
    }
    buf_drop(&first);
    return rc;
}

void sigv4_key_drop(struct sigv4_key *k)
{
    explicit_bzero(k, sizeof *k);
}

bool sigv4_key_fits(const struct sigv4_key *k, int64_t time)
{
    return k->day == time / DAY && k->scope[0];
}

int sigv4_sign(struct buf *authorization, const struct sigv4_request *r,
               const struct sigv4_key *k)
{
    struct buf text = {0}, names = {0};
    char date[SIGV4_DATE], digest[SIGV4_HEX];
    unsigned char mac[DIGEST];
    if (!sigv4_key_fits(k, r->time))
        bug("the key is not one of this day");
    sigv4_canonical(&text, &names, r);
    sigv4_hash(digest, buf_text(&text), text.len);
    buf_clear(&text);
    buf_addf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", sigv4_date(date, r->time), k->scope,
             digest);
    if (!text.failed) {
        hmac(mac, k->key, DIGEST, text.p, text.len);
        digest_to_hex(digest, mac, DIGEST);
        buf_addf(authorization,
                 "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                 k->access, k->scope, buf_text(&names), digest);
    }
    authorization->failed |= text.failed;
    buf_drop(&names);
    buf_drop(&text);
    return buf_check(authorization);
}
