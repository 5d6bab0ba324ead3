/* SPDX-License-Identifier: MIT */
/* piece.c - a reply is believed only when it says that it is what was asked for. */
#include "piece.h"

#include <stdio.h>
#include <string.h>

#include "err.h"

int64_t piece_count(const struct object *o, int64_t size)
{
    return o->size > size && !o->unranged ? (o->size + size - 1) / size : 1;
}

struct piece piece_of(const struct object *o, int64_t size, int64_t i)
{
    struct piece p = {o, PIECE_WHOLE, 0, o->size};
    if (piece_count(o, size) > 1) {
        p.kind = PIECE_RANGE;
        p.begin = i * size;
        p.end = o->size - p.begin < size ? o->size : p.begin + size;
    }
    return p;
}

int64_t piece_bytes(const struct piece *p)
{
    return p->end > p->begin ? p->end - p->begin : 0;
}

void piece_range(char out[64], const struct piece *p)
{
    snprintf(out, 64, "bytes=%lld-%lld", (long long)p->begin, (long long)p->end - 1);
}

/* A length that is not the listed one: under the listed ETag, or where a hash says
 * which bytes are meant, it is the answer that is wrong; else the object has changed.
 */
static int wrong_length(const struct object *o, const struct head *h, int64_t length)
{
    if ((o->etag && h->etag[0]) || o->sha256 || o->blob)
        return err_set(E_REMOTE, "%s: %lld bytes announced, %lld listed", o->key,
                       (long long)length, (long long)o->size);
    return err_set(E_AGAIN, "%s changed while it was fetched", o->key);
}

static int check_range(const struct piece *p, const struct head *h)
{
    const struct object *o = p->object;
    if (h->status != 206)
        return err_set(E_REMOTE, "%s: status %d in reply to a range", o->key,
                       h->status);
    if (h->begin != p->begin || h->end != p->end)
        return err_set(E_REMOTE, "%s: bytes %lld to %lld came in reply to %lld to %lld",
                       o->key, (long long)h->begin, (long long)h->end,
                       (long long)p->begin, (long long)p->end);
    if (h->total >= 0 && h->total != o->size)
        return wrong_length(o, h, h->total);
    return 0;
}

static int check_length(const struct piece *p, const struct head *h)
{
    int64_t want = p->end < 0 ? -1 : p->end - p->begin;
    if (p->kind == PIECE_WHOLE && h->status != 200)
        return err_set(E_REMOTE, "%s: status %d", p->object->key, h->status);
    if (h->length < 0 || want < 0 || h->length == want)
        return 0;
    return p->kind == PIECE_RANGE
               ? err_set(E_REMOTE, "%s: %lld bytes announced, %lld asked for",
                         p->object->key, (long long)h->length, (long long)want)
               : wrong_length(p->object, h, h->length);
}

int piece_check(const struct piece *p, const struct head *h)
{
    const struct object *o = p->object;
    if (h->broken)
        return err_set(E_REMOTE, "%s: a reply with headers that make no sense", o->key);
    if (o->etag && !h->etag[0])
        return err_set(E_REMOTE, "%s: a reply without the object's ETag", o->key);
    if (o->etag && strcmp(o->etag, h->etag) != 0)
        return err_set(E_AGAIN, "%s changed while it was fetched", o->key);
    if (p->kind == PIECE_PART)
        return 0;
    if (p->kind == PIECE_RANGE)
        TRY(check_range(p, h));
    return check_length(p, h);
}
