/* SPDX-License-Identifier: MIT */
/* creds.c - the search, and keys that are replaced before they expire.
 *
 * One thread at a time refreshes: in the background while the old keys are good, or the
 * first who finds none, with all others waiting for what it finds. */
#include "creds.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "creds_link.h"
#include "err.h"
#include "file.h"
#include "log.h"
#include "mem.h"

struct creds {
    struct creds_rules rules;
    struct profiles *profiles;
    struct chain chain;
    creds_link *link; // the one that had keys

    pthread_mutex_t lock; // over all that follows
    pthread_cond_t changed;
    struct keys keys;
    bool have, refreshing, thread_begun;
    double born, due, dies; // of the keys, in log_now's seconds; due: for refreshing
    int64_t rounds;         // refreshes that have ended
    int code;               // of the last one, with the reason
    char why[ERR_TEXT_MAX];
    pthread_t thread;
    struct sigv4_key key; // the last one derived from the keys
};

static const double SECONDS_BEFORE = 300, LONG_LIFE = 900, SPOIL_AGE = 5;

/* ---- the search ---- */

static const struct {
    const char *name;
    creds_link *link;
} links[] = {{"environment", creds_environment},
             {"web identity", creds_web_identity},
             {"profile", creds_profile},
             {"container", creds_container},
             {"instance metadata", creds_metadata}};

static int search(struct creds *c, struct keys *out)
{
    struct buf tried = {0};
    int rc = 0;
    for (size_t i = 0; i < sizeof links / sizeof *links && rc == 0; i++) {
        if (c->rules.profile && links[i].link != creds_profile)
            continue;
        rc = links[i].link(&c->chain, out);
        if (rc > 0)
            c->link = links[i].link;
        else
            buf_addf(&tried, "%s%s: %s", tried.len > 0 ? "; " : "", links[i].name,
                     err_text());
    }
    if (rc == 0)
        rc = err_set(E_ACCESS, "no credentials, and --no-sign is not given (%s)",
                     buf_text(&tried));
    else if (rc < 0)
        err_wrap(rc, "credentials");
    buf_drop(&tried);
    return rc;
}

static int find_keys(struct creds *c, struct keys *out)
{
    if (!c->link)
        return search(c, out);
    int rc = c->link(&c->chain, out);
    if (rc <= 0)
        return err_wrap(rc < 0 ? rc : E_ACCESS, "cannot refresh credentials");
    return rc;
}

/* ---- refreshing; the lock is held ---- */

static void install(struct creds *c, struct keys *k, double begun)
{
    creds_keys_drop(&c->keys);
    sigv4_key_drop(&c->key);
    c->keys = *k;
    c->have = true;
    c->born = begun;
    c->due =
        begun + (k->lives > LONG_LIFE ? k->lives - SECONDS_BEFORE : k->lives * 2 / 3);
    c->dies = begun + k->lives - fmin(10, k->lives / 20);
}

/* Keys that cannot be replaced now are used on; the next try comes when a quarter of
 * what is left of them has passed. */
static void put_off(struct creds *c)
{
    double left = c->dies - log_now();
    c->due = log_now() + fmax(1, fmin(60, left / 4));
}

static void refresh(struct creds *c)
{
    struct keys k = {0};
    double begun = log_now();
    pthread_mutex_unlock(&c->lock);
    int rc = find_keys(c, &k);
    pthread_mutex_lock(&c->lock);
    c->code = rc < 0 ? rc : 0;
    if (rc < 0)
        memcpy(c->why, err_text(), strlen(err_text()) + 1);
    if (rc > 0)
        install(c, &k, begun);
    else
        put_off(c);
    c->rounds++;
    c->refreshing = false;
    pthread_cond_broadcast(&c->changed);
}

static void *refresh_behind(void *user)
{
    struct creds *c = user;
    pthread_mutex_lock(&c->lock);
    refresh(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The thread before it has done its work and is only to be collected. */
static void start_refresh(struct creds *c)
{
    if (c->thread_begun)
        pthread_join(c->thread, NULL);
    c->refreshing = true;
    c->thread_begun = pthread_create(&c->thread, NULL, refresh_behind, c) == 0;
    if (!c->thread_begun) {
        c->refreshing = false;
        put_off(c);
    }
}

static bool alive(const struct creds *c)
{
    return c->have && log_now() < c->dies;
}

/* Until there are keys that are good now. */
static int ensure(struct creds *c)
{
    while (!alive(c)) {
        int64_t before = c->rounds;
        if (c->refreshing) {
            while (c->refreshing && c->rounds == before)
                pthread_cond_wait(&c->changed, &c->lock);
        } else {
            c->refreshing = true;
            refresh(c);
        }
        if (c->code < 0 && !alive(c))
            return err_copy(c->code, c->why);
    }
    if (log_now() >= c->due && !c->refreshing)
        start_refresh(c);
    return 0;
}

/* ---- what others see ---- */

static int derive(struct creds *c, int64_t time, const char *region,
                  const char *service)
{
    const char *scope = c->key.scope;
    size_t r = strlen(region), s = strlen(service);
    bool same = sigv4_key_fits(&c->key, time) && strncmp(scope + 9, region, r) == 0 &&
                scope[9 + r] == '/' && strncmp(scope + 10 + r, service, s) == 0 &&
                scope[10 + r + s] == '/';
    return same ? 0
                : sigv4_key_init(&c->key, c->keys.access, c->keys.secret, time, region,
                                 service);
}

int creds_take(struct creds *c, int64_t time, const char *region, const char *service,
               struct sigv4_key *key, struct buf *token)
{
    buf_clear(token);
    if (c->rules.no_sign)
        return 0;
    pthread_mutex_lock(&c->lock);
    int rc = ensure(c);
    if (rc == 0)
        rc = derive(c, time, region, service);
    if (rc == 0) {
        *key = c->key;
        buf_adds(token, c->keys.token ? c->keys.token : "");
        rc = buf_check(token);
    }
    pthread_mutex_unlock(&c->lock);
    return rc < 0 ? rc : 1;
}

bool creds_spoil(struct creds *c, const char *access)
{
    pthread_mutex_lock(&c->lock);
    bool newer = c->have && strcmp(c->keys.access, access) != 0;
    bool can = c->have && !newer && c->keys.lives < HUGE_VAL &&
               log_now() - c->born > fmin(SPOIL_AGE, c->keys.lives / 4);
    if (can)
        c->dies = c->due = log_now();
    pthread_mutex_unlock(&c->lock);
    return can || newer;
}

const char *creds_setting(const struct creds *c, const char *key)
{
    return profile_find(c->profiles, c->chain.profile, key);
}

const char *creds_region(const struct creds *c)
{
    const char *region = creds_env("AWS_REGION");
    if (!region)
        region = creds_env("AWS_DEFAULT_REGION");
    return region ? region : creds_setting(c, "region");
}

const char *creds_endpoint(const struct creds *c)
{
    const char *at = creds_env("AWS_ENDPOINT_URL_S3");
    if (!at)
        at = creds_env("AWS_ENDPOINT_URL");
    return at ? at : creds_setting(c, "endpoint_url");
}

/* ---- begin and end ---- */

/* What a variable names, else the file below the home folder; NULL when there is none.
 * A new string. */
static int path_of(char **out, const char *variable, const char *name)
{
    const char *path = creds_env(variable), *home = creds_env("HOME");
    *out = NULL;
    if (!path && !home)
        return 0;
    *out = path ? mem_text(path) : file_path(home, name);
    return *out ? 0 : E_MEMORY;
}

static int load_profiles(struct creds *c)
{
    char *credentials = NULL, *config = NULL;
    int rc;
    TRY_GOTO(rc,
             path_of(&credentials, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
             out);
    TRY_GOTO(rc, path_of(&config, "AWS_CONFIG_FILE", ".aws/config"), out);
    if (c->rules.credentials && !file_exists(c->rules.credentials))
        rc = err_set(E_CONFIG, "there is no file %s", c->rules.credentials);
    else
        rc = profile_load(&c->profiles,
                          c->rules.credentials ? c->rules.credentials : credentials,
                          config);
out:
    mem_free(credentials);
    mem_free(config);
    return rc;
}

static int begin(struct creds *c)
{
    const char *named = c->rules.profile;
    if (!named)
        named = creds_env("AWS_PROFILE");
    TRY(load_profiles(c));
    c->chain = (struct chain){.rules = &c->rules,
                              .profiles = c->profiles,
                              .profile = named ? named : "default"};
    c->chain.region = c->rules.region ? c->rules.region : creds_region(c);
    if (named && !c->rules.no_sign && !profile_has(c->profiles, named))
        return err_set(E_CONFIG, "there is no profile %s", named);
    return 0;
}

int creds_open(struct creds **out, const struct creds_rules *rules)
{
    struct creds *c = mem_zero(1, sizeof *c);
    *out = NULL;
    if (!c)
        return E_MEMORY;
    c->rules = *rules;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    int rc = begin(c);
    if (rc < 0) {
        creds_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void creds_close(struct creds *c)
{
    if (!c)
        return;
    if (c->thread_begun)
        pthread_join(c->thread, NULL);
    creds_keys_drop(&c->keys);
    sigv4_key_drop(&c->key);
    profile_free(c->profiles);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}
