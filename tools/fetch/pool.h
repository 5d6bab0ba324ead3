/* SPDX-License-Identifier: MIT */
/* pool.h - buffers for pieces, never more of them than a budget of bytes.
 *
 * Buffers come in sizes that are powers of two and are kept for the next piece: fresh
 * memory would have to be zeroed by the kernel each time.  Any thread. */
#ifndef POOL_H
#define POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { POOL_SMALLEST = 14, POOL_SIZES = 32 }; /* from 16 KiB */

struct pool {
    pthread_mutex_t lock;
    int64_t budget, held;    /* bytes: allowed; of all buffers, free ones too */
    void *free_[POOL_SIZES]; /* by size, each begins with a link to the next */
};

void pool_open(struct pool *p, int64_t budget);
void pool_close(struct pool *p); /* all buffers have been given back */

/* pool_take gives a buffer of at least `size` bytes; NULL when the budget is spent.
 * pool_give takes it back, with the same size. */
void *pool_take(struct pool *p, size_t size);
void pool_give(struct pool *p, void *buffer, size_t size);

#endif
