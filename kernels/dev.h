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

/* What a device takes for itself when it is opened; a table ends with name NULL. */
struct dev_part {
    const char *name, *what;
    size_t bytes;
};

/* The memory of a card.  `shapes` counts the kinds of products met so far: a new one
 * may load code, once.  `shared`: other processes are on the card too. */
struct dev_memory {
    size_t available, total;
    int64_t shapes;
    bool shared;
};

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

/* dev_outline fills a device that can be asked for its type, its parts and what packed
 * weights take, and nothing else: what is planned for a card needs no card, and no
 * build with CUDA. */
int dev_outline(struct dev *d, const char *name);
const struct dev_part *dev_parts(const struct dev *d);

/* dev_memory waits for the device and looks: 1, or 0 where there is nothing to tell, as
 * on the CPU, whose memory is everyone's. */
int dev_memory(struct dev *d, struct dev_memory *m);

/* dev_identity writes what the bits of a result depend on: "cpu", whatever the machine;
 * for a GPU its name, the library of products and a digest of the algorithms it has
 * taken so far, in order. */
enum { DEV_IDENTITY = 160 };
void dev_identity(const struct dev *d, char out[DEV_IDENTITY]);

/* dev_alloc gives uninitialised device memory, 256-byte aligned.  When there is not
 * enough the message names the bytes asked for and free, and the code is E_MEMORY for
 * the host's memory, E_CONFIG for a card's: that one does not grow. */
int dev_alloc(struct dev *d, void **out, size_t bytes);
void dev_free(struct dev *d, void *p, size_t bytes);
int dev_put(struct dev *d, void *to, const void *host,
            size_t bytes); /* host -> device */
int dev_get(struct dev *d, void *host, const void *from,
            size_t bytes); /* synchronises */

/* Copies beside the work.  dev_put_ahead is dev_put, but may run beside the work issued
 * since the last dev_order.  That makes what was put ahead visible to the work issued
 * after it, and what is put ahead after it wait for the work issued before. */
int dev_put_ahead(struct dev *d, void *to, const void *host, size_t bytes);
void dev_order(struct dev *d);

/* dev_get_beside brings what work that has been waited for left, beside the work issued
 * since; any thread may call it. */
int dev_get_beside(struct dev *d, void *host, const void *from, size_t bytes);

/* dev_host_alloc gives memory of the host that the device reads and writes by itself:
 * page-locked where that is a GPU.  dev_host_free accepts NULL. */
int dev_host_alloc(struct dev *d, void **out, size_t bytes);
void dev_host_free(struct dev *d, void *p);

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
