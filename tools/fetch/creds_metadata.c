/* SPDX-License-Identifier: MIT */
/* creds_metadata.c - keys from services beside us: of the container, of the machine. */
#include "creds_link.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "err.h"
#include "file.h"
#include "mem.h"
#include "num.h"
#include "url.h"

enum { CONTAINER_TRIES = 3 };
static const double CONTAINER_SECONDS = 2;

static const char JSON_TOKEN[] = "Token";

/* ---- containers ---- */

/* A token for the service goes over http only to where no stranger listens. */
static int check_address(const char *url)
{
    static const char *const local[] = {"localhost",      "127.0.0.1",
                                        "[::1]",          "169.254.170.2",
                                        "169.254.170.23", "[fd00:ec2::23]"};
    struct url u;
    TRY(url_split(&u, url));
    size_t n = u.host_n;
    const char *colon = memrchr(u.host, ':', n);
    if (colon && !memchr(colon, ']', n - (size_t)(colon - u.host)))
        n = (size_t)(colon - u.host);
    if (u.scheme_n == 5 && strncasecmp(u.scheme, "https", 5) == 0)
        return 0;
    bool http = u.scheme_n == 4 && strncasecmp(u.scheme, "http", 4) == 0;
    for (size_t i = 0; http && i < sizeof local / sizeof *local; i++)
        if (strlen(local[i]) == n && strncasecmp(local[i], u.host, n) == 0)
            return 0;
    return err_set(E_CONFIG,
                   "AWS_CONTAINER_CREDENTIALS_FULL_URI: http to a host that is "
                   "not this one: %s",
                   url);
}

static int add_authorization(struct http_call *call)
{
    const char *path = creds_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *value = creds_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char *text = NULL;
    size_t n = 0;
    if (path) { // read anew each time, because it is replaced while we run
        TRY(creds_token(&text, &n, path));
        value = text;
    }
    int rc = 0;
    if (value && strpbrk(value, "\r\n"))
        rc = err_set(E_CONFIG, "the token for %s has a line end in it",
                     buf_text(&call->url));
    else if (value)
        http_add(&call->lines, "Authorization", value);
    if (text)
        explicit_bzero(text, n);
    mem_free(text);
    return rc;
}

static int ask_container(const struct chain *c, struct keys *out,
                         struct http_call *call)
{
    const char *url = buf_text(&call->url);
    TRY(buf_check(&call->url));
    TRY(add_authorization(call));
    TRY(creds_ask(c, call, url, CONTAINER_SECONDS, CONTAINER_TRIES, true));
    int rc = creds_json(out, buf_text(&call->text), call->text.len, JSON_TOKEN,
                        creds_call_time(call));
    return rc < 0 ? err_wrap(rc, "%s", url) : 1;
}

int creds_container(const struct chain *c, struct keys *out)
{
    const char *relative = creds_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = creds_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    struct http_call call = {.method = "GET"};
    if (!relative && !full)
        return creds_nothing("AWS_CONTAINER_CREDENTIALS_FULL_URI is not set");
    if (relative && *relative != '/')
        return err_set(E_CONFIG, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: not a path");
    if (!relative)
        TRY(check_address(full));
    buf_adds(&call.url, relative ? "http://169.254.170.2" : full);
    buf_adds(&call.url, relative ? relative : "");
    http_add(&call.lines, "Accept", "application/json");
    int rc = ask_container(c, out, &call);
    creds_call_drop(&call);
    return rc;
}

/* ---- the machine ---- */

#define ROLES "/latest/meta-data/iam/security-credentials/"

/* How patient we are: most machines have no such service, and nobody should wait. */
struct patience {
    double seconds;
    int tries;
};

static int get_patience(struct patience *p)
{
    const char *seconds = creds_env("AWS_METADATA_SERVICE_TIMEOUT");
    const char *tries = creds_env("AWS_METADATA_SERVICE_NUM_ATTEMPTS");
    int64_t s = 1, n = 1;
    if (seconds)
        TRY(num_parse_int(seconds, &s));
    if (tries)
        TRY(num_parse_int(tries, &n));
    if (s < 1 || s > 600 || n < 1 || n > 100)
        return err_set(E_CONFIG,
                       "AWS_METADATA_SERVICE_TIMEOUT or _NUM_ATTEMPTS: out of "
                       "range");
    *p = (struct patience){(double)s, (int)n};
    return 0;
}

static const char *metadata_address(void)
{
    const char *at = creds_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = creds_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (at)
        return at;
    return mode && strcasecmp(mode, "ipv6") == 0 ? "http://[fd00:ec2::254]"
                                                 : "http://169.254.169.254";
}

/* One step: a path of the service; the reply is call->text. */
static int step(const struct chain *c, struct http_call *call, const char *method,
                const char *path, const char *token, const struct patience *p)
{
    const char *at = metadata_address();
    size_t n = strlen(at);
    http_call_clear(call);
    call->method = method;
    buf_add(&call->url, at, n > 0 && at[n - 1] == '/' ? n - 1 : n);
    buf_adds(&call->url, path);
    if (token)
        http_add(&call->lines, "X-aws-ec2-metadata-token", token);
    else
        http_add(&call->lines, "X-aws-ec2-metadata-token-ttl-seconds", "21600");
    return creds_ask(c, call, at, p->seconds, p->tries, true);
}

/* The first line of a reply, as a new string. */
static char *first_line(const struct http_call *call)
{
    char *text = mem_text(buf_text(&call->text));
    if (text)
        text[strcspn(text, "\r\n")] = 0;
    return text;
}

/* ROLES and the name of the machine's role; 0: it has none. */
static int find_role(const struct chain *c, struct buf *path, struct http_call *call,
                     const char *token, const struct patience *p)
{
    int rc = step(c, call, "GET", ROLES, token, p);
    if (rc == E_MISSING)
        return creds_nothing("the machine has no role");
    TRY(rc);
    char *role = first_line(call);
    if (!role)
        return E_MEMORY;
    buf_adds(path, ROLES);
    url_escape(path, role, "");
    bool none = *role == 0;
    mem_free(role);
    TRY(buf_check(path));
    return none ? creds_nothing("the machine has no role") : 1;
}

static int ask_role(const struct chain *c, struct keys *out, struct http_call *call,
                    const char *token, const struct patience *p)
{
    struct buf path = {0};
    int rc = find_role(c, &path, call, token, p);
    if (rc > 0)
        rc = step(c, call, "GET", path.p, token, p) < 0 ? E_REMOTE : 1;
    if (rc > 0) {
        rc = creds_json(out, buf_text(&call->text), call->text.len, JSON_TOKEN,
                        creds_call_time(call));
        rc = rc < 0 ? rc : 1;
    }
    buf_drop(&path);
    return rc < 0 ? err_wrap(rc, "instance metadata") : rc;
}

/* The token is what makes this version 2; version 1 is not spoken. */
static int ask_machine(const struct chain *c, struct keys *out, struct http_call *call,
                       const struct patience *p)
{
    int rc = step(c, call, "PUT", "/latest/api/token", NULL, p);
    if (rc == E_AGAIN || rc == E_MEMORY)
        return rc;
    if (rc < 0 && call->end == HTTP_STALLED)
        err_wrap(rc, "no answer within the hop limit");
    if (rc < 0)
        return 0; // no such service is the ordinary case
    char *token = first_line(call);
    rc = token ? ask_role(c, out, call, token, p) : E_MEMORY;
    if (token)
        explicit_bzero(token, strlen(token));
    mem_free(token);
    return rc;
}

int creds_metadata(const struct chain *c, struct keys *out)
{
    const char *disabled = creds_env("AWS_EC2_METADATA_DISABLED");
    struct http_call call = {0};
    struct patience p;
    if (disabled && strcasecmp(disabled, "true") == 0)
        return creds_nothing("disabled by AWS_EC2_METADATA_DISABLED");
    TRY(get_patience(&p));
    int rc = ask_machine(c, out, &call, &p);
    creds_call_drop(&call);
    return rc;
}
