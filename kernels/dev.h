/* SPDX-License-Identifier: MIT */
/* dev.h - a device: its memory, its arenas, its sticky error.
 *
 * A device is the CPU or one GPU.  Work is issued in order and may complete later; a
 * failure is remembered and every later op does nothing, so model code reads like the
 * formula: dev_sync waits and returns the first failure.  On the CPU an allocation is
 * 64-byte aligned host memory and the sticky error is, for instance, an id out of
 * range.
 *
 * Memory comes from arenas, one per lifetime (weights, gradients, activations, step).
 * An arena is one allocation; it hands out pieces in order and takes them back all at
 * once. The sum of the arenas is what a plan promises: dev.held and arena.high let it
 * be checked to the byte. */
#ifndef DEV_H
#define DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "par.h"
#include "tensor.h"

struct backend; /* backend.h: the table of operations */

struct dev {
    const struct backend *ops;
    struct par *par;      /* CPU workers; borrowed from the caller of dev_open */
    enum dtype act;       /* type of activations: DT_F32 on the CPU, DT_BF16 on a GPU */
    size_t held;          /* bytes handed out and not yet freed */
    int error;            /* sticky code, 0 while well */
    char error_text[512]; /* its message */
    void *scratch;        /* the backend's own working memory (packed panels ...) */
    size_t scratch_bytes;
    void *state; /* the backend's own: streams, handles */
};

/* dev_open opens "cpu", "cuda" or "cuda:N".  E_CONFIG when this build or machine has no
 * such device, saying which build would.  The processor must have AVX2 and FMA
 * (x86-64-v3).
 */
int dev_open(struct dev **out, const char *name, struct par *par);
void dev_close(struct dev *d);

/* dev_alloc gives uninitialised device memory, 256-byte aligned; E_MEMORY names the
 * bytes asked for and free. */
int dev_alloc(struct dev *d, void **out, size_t bytes);
void dev_free(struct dev *d, void *p, size_t bytes);
int dev_put(struct dev *d, void *to, const void *host,
            size_t bytes); /* host -> device */
int dev_get(struct dev *d, void *host, const void *from,
            size_t bytes); /* synchronises */

/* dev_sync waits for all issued work and returns the sticky error, once set for good.
 */
int dev_sync(struct dev *d);

/* dev_fail sets the sticky error unless one is set: for the backends. */
void dev_fail(struct dev *d, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- arenas ---- */

struct arena {
    struct dev *dev;
    const char *name; /* for messages and the plan */
    char *base;
    size_t size, used, high;
};

int arena_open(struct arena *a, struct dev *d, const char *name, size_t size);
void arena_close(struct arena *a);
void arena_reset(struct arena *a, size_t used); /* take back all above `used` */

/* arena_tensor carves a tensor, 256-byte aligned.  Running over the size is bug():
 * sizes are planned with arena_bytes before. */
struct tensor arena_tensor(struct arena *a, enum dtype type, int rank,
                           const int64_t *dim);

/* arena_plan is an arena without memory that only counts: its tensors have data NULL,
 * and `used` is what the same calls will take from a real one.  The code that carves is
 * thus the code that plans. */
struct arena arena_plan(void);

/* arena_bytes is what such a tensor takes, alignment included. */
size_t arena_bytes(enum dtype type, int rank, const int64_t *dim);

#endif
