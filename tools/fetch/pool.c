/* SPDX-License-Identifier: MIT */
/* pool.c - free buffers of another size make way when the budget is spent on them. */
#include "pool.h"

#include <string.h>

#include "mem.h"

static int class_of(size_t size)
{
    int c = 0;
    while (((size_t)1 << (POOL_SMALLEST + c)) < size)
        c++;
    return c;
}

static int64_t bytes_of(int class)
{
    return (int64_t)1 << (POOL_SMALLEST + class);
}

void pool_open(struct pool *p, int64_t budget)
{
    *p = (struct pool){.budget = budget};
    pthread_mutex_init(&p->lock, NULL);
}

static void *pop(struct pool *p, int class)
{
    void *b = p->free_[class];
    if (b)
        memcpy(&p->free_[class], b, sizeof b);
    return b;
}

/* Frees buffers of other sizes until `bytes` more fit; the largest first. */
static void make_way(struct pool *p, int64_t bytes)
{
    for (int c = POOL_SIZES - 1; c >= 0; c--)
        while (p->held + bytes > p->budget && p->free_[c]) {
            mem_free(pop(p, c));
            p->held -= bytes_of(c);
        }
}

void pool_close(struct pool *p)
{
    make_way(p, p->budget + 1);
    pthread_mutex_destroy(&p->lock);
}

void *pool_take(struct pool *p, size_t size)
{
    int class = class_of(size);
    pthread_mutex_lock(&p->lock);
    void *b = pop(p, class);
    if (!b) {
        make_way(p, bytes_of(class));
        if (p->held + bytes_of(class) <= p->budget &&
            (b = mem_alloc((size_t)bytes_of(class))))
            p->held += bytes_of(class);
    }
    pthread_mutex_unlock(&p->lock);
    return b;
}

void pool_give(struct pool *p, void *buffer, size_t size)
{
    int class = class_of(size);
    pthread_mutex_lock(&p->lock);
    memcpy(buffer, &p->free_[class], sizeof buffer);
    p->free_[class] = buffer;
    pthread_mutex_unlock(&p->lock);
}
