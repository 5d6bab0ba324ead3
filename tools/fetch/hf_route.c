/* SPDX-License-Identifier: MIT */
/* hf_route.c - a hash table with open addressing; nothing is ever taken out of it. */
#include "hf_route.h"

#include <string.h>

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "url.h"

void hf_route_open(struct routes *r)
{
    *r = (struct routes){0};
    pthread_mutex_init(&r->lock, NULL);
}

void hf_route_close(struct routes *r)
{
    for (int64_t i = 0; i < r->room; i++)
        mem_free(r->at[i].url);
    mem_free(r->at);
    pthread_mutex_destroy(&r->lock);
}

/* The place of a key, or the empty one where it would be. */
static struct route *place_of(struct route *at, int64_t room, const void *key)
{
    uint64_t i = hash_bytes(&key, sizeof key);
    while (at[i & (uint64_t)(room - 1)].key && at[i & (uint64_t)(room - 1)].key != key)
        i++;
    return &at[i & (uint64_t)(room - 1)];
}

/* Under the lock; NULL: E_MEMORY. */
static struct route *add(struct routes *r, const void *key)
{
    if (2 * r->n >= r->room) {
        int64_t room = r->room ? 2 * r->room : 64;
        struct route *at = mem_zero((size_t)room, sizeof *at);
        if (!at)
            return NULL;
        for (int64_t i = 0; i < r->room; i++)
            if (r->at[i].key)
                *place_of(at, room, r->at[i].key) = r->at[i];
        mem_free(r->at);
        r->at = at;
        r->room = room;
    }
    struct route *found = place_of(r->at, r->room, key);
    r->n += found->key == NULL;
    found->key = key;
    return found;
}

bool hf_route_get(struct routes *r, const void *key, struct buf *url)
{
    pthread_mutex_lock(&r->lock);
    const struct route *found = r->room ? place_of(r->at, r->room, key) : NULL;
    bool there = found && found->url;
    if (there)
        buf_adds(url, found->url);
    pthread_mutex_unlock(&r->lock);
    return there;
}

static int set(struct routes *r, const void *key, const char *url)
{
    struct route *to = add(r, key);
    if (!to)
        return E_MEMORY;
    mem_free(to->url);
    to->url = mem_text(url);
    return to->url ? 0 : E_MEMORY;
}

int hf_route_set(struct routes *r, const void *key, const char *from,
                 const char *location)
{
    struct buf url = {0};
    int rc = url_join(&url, from, location);
    if (rc == 0)
        rc = buf_check(&url);
    if (rc == 0) {
        pthread_mutex_lock(&r->lock);
        rc = set(r, key, url.p);
        pthread_mutex_unlock(&r->lock);
    }
    buf_drop(&url);
    return rc;
}

bool hf_route_drop(struct routes *r, const void *key, const char *url)
{
    pthread_mutex_lock(&r->lock);
    struct route *found = r->room ? place_of(r->at, r->room, key) : NULL;
    bool there = found && found->url;
    if (there && strcmp(found->url, url) == 0) {
        mem_free(found->url);
        found->url = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    return there;
}
