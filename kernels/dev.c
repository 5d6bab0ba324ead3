/* SPDX-License-Identifier: MIT */
/* dev.c - opening a device, counting its memory, keeping its first error.
 *
 * What differs between devices is behind the table d->ops; here is what does not: the
 * name, the bytes held, the sticky error, and arenas, which are a base and an offset.
 */
#include "backend.h"

#include "err.h"
#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 256 };

/* parse_name finds the backend and the index in "cpu", "cuda" or "cuda:N". */
static int parse_name(const char *name, const struct backend **ops, int *index)
{
    *index = 0;
    *ops = &cpu_backend;
    if (strcmp(name, "cpu") == 0)
        return 0;
    *ops = &cuda_backend;
    if (strcmp(name, "cuda") == 0)
        return 0;
    if (strncmp(name, "cuda:", 5) == 0) {
        const char *digits = name + 5;
        size_t n = strspn(digits, "0123456789");
        for (size_t i = 0; i < n && n <= 3; i++)
            *index = *index * 10 + (digits[i] - '0');
        if (n >= 1 && n <= 3 && digits[n] == '\0')
            return 0;
    }
    return err_set(E_CONFIG, "device %s: unknown, known are cpu, cuda and cuda:N",
                   name);
}

int dev_outline(struct dev *d, const char *name)
{
    int index;
    *d = (struct dev){0};
    TRY(parse_name(name, &d->ops, &index));
    d->act = d->ops->act;
    return 0;
}

const struct dev_part *dev_parts(const struct dev *d)
{
    static const struct dev_part none = {0};
    return d->ops->parts ? d->ops->parts : &none;
}

int dev_memory(struct dev *d, struct dev_memory *m)
{
    *m = (struct dev_memory){0};
    if (!d->ops->memory)
        return 0;
    TRY(dev_sync(d));
    TRY(d->ops->memory(d, m));
    return 1;
}

void dev_identity(const struct dev *d, char out[DEV_IDENTITY])
{
    if (d->ops->identity)
        d->ops->identity(d, out);
    else
        snprintf(out, DEV_IDENTITY, "%s", d->ops->name);
}

int dev_open(struct dev **out, const char *name, struct par *par)
{
    const struct backend *ops;
    int index;
    TRY(parse_name(name, &ops, &index));
    struct dev *d = mem_zero(1, sizeof *d);
    if (!d)
        return E_MEMORY;
    d->ops = ops;
    d->act = ops->act;
    d->par = par;
    int rc = ops->open(d, index);
    if (rc < 0) {
        mem_free(d);
        return err_wrap(rc, "device %s", name);
    }
    *out = d;
    return 0;
}

void dev_close(struct dev *d)
{
    if (!d)
        return;
    d->ops->close(d);
    mem_free(d);
}

int dev_alloc(struct dev *d, void **out, size_t bytes)
{
    void *p = d->ops->alloc(d, bytes);
    if (!p)
        return d->ops->full;
    d->held += bytes;
    *out = p;
    return 0;
}

void dev_free(struct dev *d, void *p, size_t bytes)
{
    if (!p)
        return;
    d->ops->free(d, p);
    d->held -= bytes;
}

/* report puts the sticky error into the caller's slot. */
static int report(const struct dev *d)
{
    return d->error ? err_set(d->error, "%s", d->error_text) : 0;
}

int dev_put(struct dev *d, void *to, const void *host, size_t bytes)
{
    TRY(report(d));
    return bytes ? d->ops->put(d, to, host, bytes) : 0;
}

int dev_get(struct dev *d, void *host, const void *from, size_t bytes)
{
    TRY(dev_sync(d));
    return bytes ? d->ops->get(d, host, from, bytes) : 0;
}

int dev_put_ahead(struct dev *d, void *to, const void *host, size_t bytes)
{
    if (!d->ops->put_ahead)
        return dev_put(d, to, host, bytes);
    TRY(report(d));
    return bytes ? d->ops->put_ahead(d, to, host, bytes) : 0;
}

void dev_order(struct dev *d)
{
    if (d->ops->order && !d->error)
        d->ops->order(d);
}

int dev_get_beside(struct dev *d, void *host, const void *from, size_t bytes)
{
    if (!bytes)
        return 0;
    return (d->ops->get_beside ? d->ops->get_beside : d->ops->get)(d, host, from,
                                                                   bytes);
}

int dev_host_alloc(struct dev *d, void **out, size_t bytes)
{
    if (d->ops->host_alloc)
        return d->ops->host_alloc(d, out, bytes);
    *out = mem_alloc(bytes);
    return *out ? 0 : E_MEMORY;
}

void dev_host_free(struct dev *d, void *p)
{
    if (p && d->ops->host_free)
        d->ops->host_free(d, p);
    else
        mem_free(p);
}

int dev_sync(struct dev *d)
{
    if (!d->error) {
        int rc = d->ops->sync(d);
        if (rc < 0)
            dev_fail(d, rc, "%s", err_text());
    }
    return report(d);
}

void dev_fail(struct dev *d, int code, const char *fmt, ...)
{
    if (d->error)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->error_text, sizeof d->error_text, fmt, ap);
    va_end(ap);
    d->error = code;
}

/* ---- arenas ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

int arena_open(struct arena *a, struct dev *d, const char *name, size_t size)
{
    void *base = NULL;
    *a = (struct arena){.dev = d, .name = name};
    int rc = dev_alloc(d, &base, size);
    if (rc < 0)
        return err_wrap(rc, "memory for %s", name);
    a->base = base;
    a->size = size;
    return 0;
}

void arena_close(struct arena *a)
{
    if (a->base)
        dev_free(a->dev, a->base, a->size);
    *a = (struct arena){0};
}

struct arena arena_plan(void)
{
    return (struct arena){.name = "plan", .size = SIZE_MAX};
}

void arena_reset(struct arena *a, size_t used)
{
    if (used > a->used)
        bug("arena %s: reset to %zu above %zu in use", a->name, used, a->used);
    a->used = used;
}

struct tensor arena_tensor(struct arena *a, enum dtype type, int rank,
                           const int64_t *dim)
{
    size_t bytes = arena_bytes(type, rank, dim);
    if (bytes > a->size - a->used)
        bug("arena %s: %zu bytes wanted, %zu of %zu left", a->name, bytes,
            a->size - a->used, a->size);
    struct tensor t = tensor_of(a->base ? a->base + a->used : NULL, type, rank, dim);
    a->used += bytes;
    if (a->high < a->used)
        a->high = a->used;
    return t;
}

size_t arena_bytes(enum dtype type, int rank, const int64_t *dim)
{
    struct tensor t = tensor_of(NULL, type, rank, dim);
    return round_up(tensor_bytes(&t));
}
