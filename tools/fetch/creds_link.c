/* SPDX-License-Identifier: MIT */
/* creds_link.c - what the links share, and the shortest of them. */
#include "creds_link.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "file.h"
#include "json.h"
#include "mem.h"
#include "retry.h"

enum { REPLY_MAX = 64 << 10 };

const char *creds_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

int creds_token(char **out, size_t *n, const char *path)
{
    TRY(file_read(path, out, n));
    char *text = *out;
    size_t mark = file_mark(text, *n);
    while (*n > mark && (text[*n - 1] == '\n' || text[*n - 1] == '\r'))
        --*n;
    memmove(text, text + mark, *n - mark);
    *n -= mark;
    explicit_bzero(text + *n, mark);
    text[*n] = 0;
    return 0;
}

int creds_nothing(const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    err_set(E_MISSING, "%s", why);
    return 0;
}

/* ---- keys ---- */

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    mem_free(*text);
    *text = NULL;
}

void creds_keys_drop(struct keys *k)
{
    wipe(&k->access);
    wipe(&k->secret);
    wipe(&k->token);
}

/* What goes into a header must not end it. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

int creds_keys(struct keys *out, const char *access, const char *secret,
               const char *token)
{
    bool has_token = token && *token;
    *out = (struct keys){.lives = HUGE_VAL};
    if (!*access || !*secret || !is_plain(access) || !is_plain(secret) ||
        (has_token && !is_plain(token)))
        return err_set(E_ACCESS, "keys that are empty or have blanks in them");
    out->access = mem_text(access);
    out->secret = mem_text(secret);
    out->token = has_token ? mem_text(token) : NULL;
    if (out->access && out->secret && (out->token || !has_token))
        return 0;
    creds_keys_drop(out);
    return E_MEMORY;
}

/* 2026-11-30T16:21:06Z, with or without a fraction; "+00:00" is as good as Z. */
static int64_t parse_time(const char *text)
{
    struct tm t = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
    if (!rest)
        return -1;
    if (*rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    return strcmp(rest, "Z") == 0 || strcmp(rest, "+00:00") == 0 ? timegm(&t) : -1;
}

int creds_expire(struct keys *k, const char *until, int64_t now)
{
    k->lives = HUGE_VAL;
    if (!until)
        return 0;
    int64_t end = parse_time(until);
    if (end < 0)
        return err_set(E_FORMAT, "\"%s\" is no time of expiry", until);
    k->lives = (double)(end - now);
    return end > now ? 0 : err_set(E_ACCESS, "the keys had expired at %s", until);
}

static int read_json(struct keys *out, const struct json *v, const char *token,
                     int64_t now, const char *text[3])
{
    const char *code = "Success", *message = "", *until = NULL;
    TRY(json_have_text(v, "Code", &code));
    TRY(json_have_text(v, "Message", &message));
    if (strcmp(code, "Success") != 0)
        return err_set(E_ACCESS, "%s%s%s", code, *message ? ": " : "", message);
    TRY(json_need_text(v, "AccessKeyId", &text[0]));
    TRY(json_need_text(v, "SecretAccessKey", &text[1]));
    TRY(json_have_text(v, token, &text[2]));
    TRY(json_have_text(v, "Expiration", &until));
    TRY(creds_keys(out, text[0], text[1], text[2]));
    return creds_expire(out, until, now);
}

int creds_json(struct keys *out, const char *text, size_t n, const char *token,
               int64_t now)
{
    struct json *v;
    const char *secret[3] = {NULL, NULL, NULL};
    *out = (struct keys){0};
    TRY(json_parse(&v, text, n));
    int rc = json_is_object(v) ? read_json(out, v, token, now, secret)
                               : err_set(E_FORMAT, "not an object");
    for (int i = 0; i < 3; i++)
        if (secret[i]) // jansson's own copy, which nobody reads again
            explicit_bzero((char *)secret[i], strlen(secret[i]));
    json_free(v);
    if (rc < 0)
        creds_keys_drop(out);
    return rc;
}

/* ---- calls ---- */

void creds_call_drop(struct http_call *call)
{
    struct buf *secret[] = {&call->text, &call->lines.text};
    for (int i = 0; i < 2; i++)
        if (secret[i]->p)
            explicit_bzero(secret[i]->p, secret[i]->cap);
    http_call_drop(call);
}

int64_t creds_call_time(const struct http_call *call)
{
    return call->head.date > 0 ? call->head.date : (int64_t)time(NULL);
}

static void pause_for(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL); // a signal ends it, and http_run sees that
}

int creds_ask(const struct chain *c, struct http_call *call, const char *name,
              double seconds, int tries, bool local)
{
    struct http *http;
    const struct http_rules rules = {.connections = 1,
                                     .connect = seconds,
                                     .stall = seconds,
                                     .ca = c->rules->ca,
                                     .direct = local};
    uint64_t random = (uint64_t)time(NULL);
    enum verdict verdict;
    int rc;
    call->limit = REPLY_MAX;
    buf_room(&call->text, REPLY_MAX); // never moved: nothing is left to be wiped
    TRY(http_open(&http, &rules));
    for (int i = 1;; i++) {
        TRY_GOTO(rc, http_run(http, call), out);
        rc = retry_judge(&verdict, call, name, "", "");
        if (rc == 0 || verdict == VERDICT_NEVER || i >= tries)
            break;
        pause_for(retry_delay(i, call->head.retry_after, &random));
    }
out:
    http_close(http);
    return rc;
}

/* ---- the environment ---- */

int creds_environment(const struct chain *c, struct keys *out)
{
    const char *access = creds_env("AWS_ACCESS_KEY_ID");
    const char *secret = creds_env("AWS_SECRET_ACCESS_KEY");
    (void)c;
    if (!access && !secret)
        return creds_nothing("AWS_ACCESS_KEY_ID is not set");
    if (!access || !secret)
        return err_set(E_CONFIG,
                       "only one of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY is set");
    TRY(creds_keys(out, access, secret, creds_env("AWS_SESSION_TOKEN")));
    return 1;
}

int creds_web_identity(const struct chain *c, struct keys *out)
{
    const struct creds_role role = {.web = creds_env("AWS_WEB_IDENTITY_TOKEN_FILE"),
                                    .arn = creds_env("AWS_ROLE_ARN"),
                                    .session = creds_env("AWS_ROLE_SESSION_NAME")};
    if (!role.web)
        return creds_nothing("AWS_WEB_IDENTITY_TOKEN_FILE is not set");
    if (!role.arn)
        return err_set(E_CONFIG,
                       "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
    TRY(creds_assume(c, out, &role, NULL));
    return 1;
}
