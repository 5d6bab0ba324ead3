/* SPDX-License-Identifier: MIT */
/* retry.c - pauses are drawn from the whole interval ("full jitter"), so that many
 * clients that failed together do not come back together. */
#include "retry.h"

#include <string.h>

#include "err.h"
#include "rng.h"

static const double PAUSE_FIRST = 0.1, PAUSE_MAX = 20, ASKED_MAX = 60;

static bool is_any(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

/* No reply, or half of one. */
static int judge_broken(enum verdict *out, const struct http_call *c, const char *name)
{
    *out = VERDICT_LATER;
    switch (c->end) {
    case HTTP_UNTRUSTED:
        *out = VERDICT_NEVER;
        return err_set(E_CONFIG, "%s: the server is not trusted (--ca): %s", name,
                       c->why);
    case HTTP_NO_URL:
    case HTTP_NO_TLS:
        *out = VERDICT_NEVER;
        return err_set(E_CONFIG, "%s: %s: %s", name,
                       c->end == HTTP_NO_URL ? "cannot be asked for"
                                             : "the server speaks no https (http://?)",
                       c->why);
    case HTTP_STALLED:
        return err_set(E_REMOTE, "%s: the server has gone silent", name);
    case HTTP_REFUSED:
        return err_set(E_REMOTE, "%s: the reply is too long", name);
    default:
        if (c->reused && c->head.status == 0)
            *out = VERDICT_NOW; // the server had closed an idle connection
        return err_set(E_REMOTE, "%s: %s", name, c->why);
    }
}

static enum verdict verdict_of(int status, const char *code)
{
    static const char *const slow[] = {"SlowDown",
                                       "TooManyRequests",
                                       "RequestLimitExceeded",
                                       "ThrottlingException",
                                       "Throttling",
                                       NULL};
    static const char *const later[] = {"InternalError", "RequestTimeout",
                                        "ServiceUnavailable", "OperationAborted", NULL};
    if (is_any(code, slow) || status == 429 || status == 503)
        return VERDICT_SLOW;
    if (is_any(code, later) || status == 408 || status == 500 || status == 502 ||
        status == 504 || status == 425)
        return VERDICT_LATER;
    return VERDICT_NEVER;
}

static int code_of(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
        return E_ACCESS;
    case 404:
    case 410:
        return E_MISSING;
    case 409:
    case 412:
        return E_AGAIN;
    default:
        return status >= 500 || status == 408 || status == 429 ? E_REMOTE : E_CONFIG;
    }
}

/* "No content" and its like, in the place of what was asked for. */
static bool is_bodiless(const struct http_call *c)
{
    int status = c->head.status;
    return status != 200 && status != 206 &&
           (strcmp(c->method, "GET") == 0 || strcmp(c->method, "HEAD") == 0);
}

int retry_judge(enum verdict *out, const struct http_call *c, const char *name,
                const char *code, const char *message)
{
    int status = c->head.status;
    if (c->end != HTTP_WHOLE)
        return judge_broken(out, c, name);
    *out = VERDICT_NEVER;
    if (status / 100 == 2)
        return is_bodiless(c) ? err_set(E_CONFIG,
                                        "%s: status %d, which is no reply to %s: is "
                                        "this the right server?",
                                        name, status, c->method)
                              : 0;
    bool moved = status == 301 || status == 302 || status == 303 || status == 307 ||
                 status == 308;
    *out = moved && c->head.location[0] ? VERDICT_MOVED : verdict_of(status, code);
    if (status == 412)
        return err_set(E_AGAIN, "%s changed while it was fetched", name);
    const char *between = *code && *message ? ": " : "";
    return err_set(code_of(status), "%s: status %d%s%s%s%s", name, status,
                   *code || *message ? ": " : "", code, between, message);
}

double retry_delay(int tries, int64_t retry_after, uint64_t *random)
{
    struct rng r = rng_new(rng_key((uint64_t[]){(*random)++}, 1));
    double most = PAUSE_FIRST;
    for (int i = 0; i < tries && most < PAUSE_MAX; i++)
        most *= 2;
    double pause = rng_real(&r) * (most < PAUSE_MAX ? most : PAUSE_MAX);
    double asked = (double)retry_after < ASKED_MAX ? (double)retry_after : ASKED_MAX;
    return pause > asked ? pause : asked;
}
