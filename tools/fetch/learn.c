/* SPDX-License-Identifier: MIT */
/* learn.c - three lessons, each under the lock, each counted as a version. */
#include "learn.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "buf.h"
#include "err.h"
#include "mem.h"
#include "url.h"

enum { MOVES = 10, SKEW = 60 };

int learn_open(struct learn *l, const char *region, const char *endpoint)
{
    pthread_mutex_init(&l->lock, NULL);
    snprintf(l->now.region, sizeof l->now.region, "%s", region);
    l->home = mem_text(endpoint ? endpoint : "");
    return l->home ? 0 : E_MEMORY;
}

void learn_close(struct learn *l)
{
    if (l->home)
        pthread_mutex_destroy(&l->lock);
    texts_drop(&l->bases);
    mem_free(l->home);
    *l = (struct learn){0};
}

struct known learn_get(struct learn *l)
{
    pthread_mutex_lock(&l->lock);
    struct known k = l->now;
    pthread_mutex_unlock(&l->lock);
    return k;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 ||
           status == 308;
}

/* Host names compare without case. */
static bool ends_with(const char *text, size_t n, const char *end, size_t m)
{
    return n >= m && strncasecmp(text + n - m, end, m) == 0;
}

/* The host itself, or one below it; a port belongs to the name. */
static bool is_below(const struct url *u, const char *host, size_t n)
{
    return ends_with(u->host, u->host_n, host, n) &&
           (u->host_n == n || u->host[u->host_n - n - 1] == '.');
}

static bool is_ours(const char *home, const char *base)
{
    static const char *const aws[] = {"amazonaws.com", "amazonaws.com.cn"};
    struct url to, from;
    if (url_split(&to, base) < 0)
        return false;
    if (*home)
        return url_split(&from, home) == 0 && to.scheme_n == from.scheme_n &&
               strncasecmp(to.scheme, from.scheme, to.scheme_n) == 0 &&
               is_below(&to, from.host, from.host_n);
    bool secure = to.scheme_n == 5; // https, not http
    return secure && (is_below(&to, aws[0], strlen(aws[0])) ||
                      is_below(&to, aws[1], strlen(aws[1])));
}

/* ---- under the lock ---- */

static bool take_region(struct known *now, const struct http_call *c,
                        const struct s3_error *e, bool *told)
{
    const char *region = c->head.region[0] ? c->head.region : e->region;
    int status = c->head.status;
    if (!region[0] || (status != 301 && status != 307 && status != 400))
        return false;
    *told = true;
    if (strcmp(now->region, region) == 0)
        return false;
    snprintf(now->region, sizeof now->region, "%s", region);
    return true;
}

static bool take_clock(struct known *now, const struct http_call *c,
                       const struct s3_error *e, bool *told)
{
    bool said = strcmp(e->code, "RequestTimeTooSkewed") == 0 || !e->code[0];
    if (c->head.status != 403 || !said || c->head.date == 0)
        return false;
    int64_t off = c->head.date - (int64_t)time(NULL), more = off - now->clock;
    *told = true;
    if (more <= SKEW && more >= -SKEW)
        return false;
    now->clock = off;
    return true;
}

/* scheme://host of where a reply leads, unless that is where it came from. */
static bool base_of(struct buf *to, const struct http_call *c)
{
    struct url u;
    if (!is_redirect(c->head.status) || !c->head.location[0] ||
        url_join(to, buf_text(&c->url), c->head.location) < 0 ||
        url_same_host(to->p, buf_text(&c->url)) || url_split(&u, to->p) < 0)
        return false;
    to->len = (size_t)(u.host + u.host_n - to->p);
    to->p[to->len] = 0;
    return true;
}

static bool take_base(struct learn *l, const struct http_call *c, bool *told)
{
    struct buf to = {0};
    bool news = base_of(&to, c);
    *told |= news;
    news = news && c->known == l->now.version && l->moves < MOVES;
    const char *base = news ? texts_add(&l->bases, to.p) : NULL;
    if (base) {
        l->now.base = base;
        l->now.foreign = !is_ours(l->home, base);
        l->moves++;
    }
    buf_drop(&to);
    return base != NULL;
}

bool learn_from(struct learn *l, const struct http_call *c, const struct s3_error *e)
{
    bool told = false;
    pthread_mutex_lock(&l->lock);
    bool early = c->known != l->now.version;
    bool news = take_region(&l->now, c, e, &told) || take_clock(&l->now, c, e, &told) ||
                take_base(l, c, &told);
    l->now.version += news;
    pthread_mutex_unlock(&l->lock);
    return news || (told && early);
}
