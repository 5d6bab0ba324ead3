/* SPDX-License-Identifier: MIT */
/* creds_sts.c - keys for a role, from AWS's Security Token Service.
 *
 * AssumeRole is signed with the keys that may take the role on;
 * AssumeRoleWithWebIdentity carries a token instead and is not signed.  Both are a form
 * that is posted to "/". */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "creds_link.h"
#include "err.h"
#include "file.h"
#include "mem.h"
#include "sigv4.h"
#include "url.h"
#include "xml.h"

enum { STS_TRIES = 3, SKEW = 240 };
static const double STS_SECONDS = 10;

/* What a reply says; texts are owned. */
struct answer {
    char *access, *secret, *token, *until, *code, *message;
};

static void wipe_answer(struct answer *a)
{
    char *text[] = {a->access, a->secret, a->token, a->until, a->code, a->message};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        if (text[i])
            explicit_bzero(text[i], strlen(text[i]));
        mem_free(text[i]);
    }
}

static int take(void *user, const char *path, const char *text)
{
    struct answer *a = user;
    const struct {
        const char *name;
        char **to;
    } field[] = {{"/Credentials/AccessKeyId", &a->access},
                 {"/Credentials/SecretAccessKey", &a->secret},
                 {"/Credentials/SessionToken", &a->token},
                 {"/Credentials/Expiration", &a->until},
                 {"/Error/Code", &a->code},
                 {"/Error/Message", &a->message}};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        size_t m = strlen(field[i].name);
        if (n < m || strcmp(path + n - m, field[i].name) != 0 || *field[i].to)
            continue;
        if (!(*field[i].to = mem_text(text)))
            return E_MEMORY;
    }
    return 0;
}

/* ---- the request ---- */

static void add_field(struct buf *form, const char *name, const char *value)
{
    if (!value)
        return;
    if (form->len > 0)
        buf_addc(form, '&');
    buf_addf(form, "%s=", name);
    url_escape(form, value, "");
}

static int add_web_token(struct buf *form, const char *path)
{
    char *text;
    size_t n;
    TRY(creds_token(&text, &n, path)); // read anew each time: it is replaced
    int rc = n > 0 ? 0 : err_set(E_ACCESS, "%s: an empty token", path);
    buf_room(form, 3 * n + 64); // not moved while it is written
    add_field(form, "WebIdentityToken", text);
    explicit_bzero(text, n);
    mem_free(text);
    return rc;
}

static int write_form(struct buf *form, const struct creds_role *role)
{
    char session[64];
    snprintf(session, sizeof session, "draft-fetch-%lld", (long long)time(NULL));
    buf_room(form, 1024);
    add_field(form, "Action", role->web ? "AssumeRoleWithWebIdentity" : "AssumeRole");
    add_field(form, "Version", "2011-06-15");
    add_field(form, "RoleArn", role->arn);
    add_field(form, "RoleSessionName", role->session ? role->session : session);
    add_field(form, "ExternalId", role->external);
    add_field(form, "DurationSeconds", role->duration);
    TRY(role->web ? add_web_token(form, role->web) : 0);
    return buf_check(form);
}

/* Without a region there is still the service of old, which signs as us-east-1. */
static void add_address(struct buf *url, const char *region)
{
    const char *at = creds_env("AWS_ENDPOINT_URL_STS");
    if (!at)
        at = creds_env("AWS_ENDPOINT_URL");
    size_t n = at ? strlen(at) : 0;
    if (at)
        buf_add(url, at, at[n - 1] == '/' ? n - 1 : n);
    else if (region)
        buf_addf(url, "https://sts.%s.amazonaws.com%s", region,
                 strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
    else
        buf_adds(url, "https://sts.amazonaws.com");
    buf_addc(url, '/');
}

static int sign_form(const struct chain *c, struct http_call *call,
                     const struct keys *from, int64_t now)
{
    static const char form_type[] = "application/x-www-form-urlencoded; charset=utf-8";
    const char *region = c->region ? c->region : "us-east-1";
    char date[SIGV4_DATE], payload[SIGV4_HEX];
    struct buf authorization = {0}, host = {0};
    struct sigv4_key key;
    struct url u;
    http_add(&call->lines, "Content-Type", form_type);
    if (!from)
        return 0;
    TRY(url_split(&u, buf_text(&call->url)));
    buf_add(&host, u.host, u.host_n);
    const struct sigv4_pair header[] = {{"Content-Type", form_type},
                                        {"Host", buf_text(&host)},
                                        {"X-Amz-Date", sigv4_date(date, now)},
                                        {"X-Amz-Security-Token", from->token}};
    const struct sigv4_request r = {
        .method = "POST",
        .path = "/",
        .header = header,
        .headers = from->token ? 4 : 3,
        .payload = sigv4_hash(payload, call->send, call->send_size),
        .time = now};
    int rc = sigv4_key_init(&key, from->access, from->secret, now, region, "sts");
    if (rc == 0)
        rc = sigv4_sign(&authorization, &r, &key);
    sigv4_key_drop(&key);
    for (int i = 2; rc == 0 && i < r.headers; i++)
        http_add(&call->lines, header[i].name, header[i].value);
    if (rc == 0)
        http_add(&call->lines, "Authorization", buf_text(&authorization));
    buf_drop(&authorization);
    buf_drop(&host);
    return rc;
}

/* ---- the exchange ---- */

static int post(const struct chain *c, struct http_call *call, const struct buf *form,
                const struct keys *from, int64_t now)
{
    http_call_clear(call);
    call->method = "POST";
    call->send = form->p;
    call->send_size = form->len;
    add_address(&call->url, c->region);
    TRY(sign_form(c, call, from, now));
    return creds_ask(c, call, "STS", STS_SECONDS, STS_TRIES, false);
}

static int read_answer(struct keys *out, const struct http_call *call,
                       const struct answer *a)
{
    if (!a->access || !a->secret || !a->token || !a->until)
        return err_set(E_FORMAT, "the reply has no keys");
    TRY(creds_keys(out, a->access, a->secret, a->token));
    int rc = creds_expire(out, a->until, creds_call_time(call));
    if (rc < 0)
        creds_keys_drop(out);
    return rc;
}

/* A clock that is wrong makes signatures expire: the server's is used once. */
static int exchange(const struct chain *c, struct http_call *call,
                    const struct buf *form, const struct keys *from)
{
    int64_t now = time(NULL);
    int rc = post(c, call, form, from, now);
    int64_t off = creds_call_time(call) - now;
    if (rc < 0 && from && call->end == HTTP_WHOLE && (off > SKEW || off < -SKEW))
        rc = post(c, call, form, from, now + off);
    return rc;
}

int creds_assume(const struct chain *c, struct keys *out, const struct creds_role *role,
                 const struct keys *from)
{
    struct http_call call = {0};
    struct answer a = {0};
    struct buf form = {0};
    int rc;
    TRY_GOTO(rc, write_form(&form, role), out);
    rc = exchange(c, &call, &form, from);
    if (call.end == HTTP_WHOLE && call.head.status != 0) {
        int read = xml_read(buf_text(&call.text), call.text.len, take, &a);
        if (rc == 0)
            rc = read;
        else if (a.code)
            err_set(rc, "STS: status %d: %s: %s", call.head.status, a.code,
                    a.message ? a.message : "");
    }
    if (rc == 0)
        rc = read_answer(out, &call, &a);
out:
    wipe_answer(&a);
    creds_call_drop(&call);
    if (form.p)
        explicit_bzero(form.p, form.cap);
    buf_drop(&form);
    return rc < 0 ? err_wrap(rc, "cannot take on %s", role->arn) : 0;
}
