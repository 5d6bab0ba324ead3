/* SPDX-License-Identifier: MIT */
/* attn.c - attention over intervals of keys, forward.
 *
 * A row is one query of one head.  It walks its keys from lo upwards in tiles counted
 * from lo, with the running maximum and sum of Milakov & Gimelshein 2018 (online
 * softmax): when a tile raises the maximum, what was summed so far is scaled down.
 * Where a tile ends depends on the row's own lo, never on its neighbours, so a row
 * gives the same bits packed or alone, in one pass or in many.
 *
 * Rows that start at the same key and share a key/value head go through a tile
 * together.  The tile is copied first: its rows lie a power of two apart, in the same
 * few sets of the cache, and would push each other out.  In the drafter a second,
 * shorter interval follows: the keys of the row's own block. */
#include "attn.h"
#include "loop.h"
#include "vec.h"

#include <math.h>

enum { TILE = 64, BATCH = 32, CHUNK = 16, COPY_FROM = 4 };

struct attn {
    struct tensor o, lse, q, k, v, kb, vb, lo, hi; // lse, kb: no data in attn_span
    struct attn_block p;
    int64_t heads, kv_heads, width;
    real *room; // two tiles for each worker
};

struct row {
    const real *q;
    real *o;
    int64_t t, head, lo, hi;
    real top;   // largest score so far
    double sum; // of exp(score - top)
};

/* fold adds `keys` <= TILE keys to a row. */
static void fold(struct row *r, const real *k, const real *v, int64_t keys,
                 int64_t stride, int64_t width, real scale)
{
    real s[TILE];
    vec_dots(s, r->q, k, keys, stride, width);
    for (int64_t j = 0; j < keys; j++)
        s[j] *= scale;
    real top = vec_max(s, keys, r->top);
    if (top > r->top) {
        real shrink = mathf_exp(r->top - top);
        r->sum *= shrink;
        for (int64_t i = 0; i < width; i++)
            r->o[i] *= shrink;
        r->top = top;
    }
    for (int64_t j = 0; j < keys; j++)
        s[j] = mathf_exp(s[j] - top);
    r->sum += vec_sum(s, keys);
    vec_rows(r->o, s, 1, v, keys, stride, width);
}

/* fold_span takes rows with one common lo through their keys. */
static void fold_span(const struct attn *a, struct row *row, int n, int64_t kv,
                      real *room)
{
    int64_t stride = a->kv_heads * a->width, last = row[0].lo;
    for (int i = 0; i < n; i++)
        last = row[i].hi > last ? row[i].hi : last;
    for (int64_t at = row[0].lo; at < last; at += TILE) {
        int64_t tile = last - at < TILE ? last - at : TILE, step = stride;
        const real *k = (const real *)a->k.data + at * stride + kv * a->width;
        const real *v = (const real *)a->v.data + at * stride + kv * a->width;
        if (n >= COPY_FROM) {
            step = a->width;
            k = vec_copy(room, step, k, stride, tile, a->width);
            v = vec_copy(room + TILE * step, step, v, stride, tile, a->width);
        }
        for (int i = 0; i < n; i++) {
            int64_t keys = row[i].hi - at < TILE ? row[i].hi - at : TILE;
            if (keys > 0)
                fold(&row[i], k, v, keys, step, a->width, a->p.scale);
        }
    }
}

/* fold_block adds the keys of the row's own block. */
static void fold_block(const struct attn *a, struct row *r, int64_t kv)
{
    int64_t stride = a->kv_heads * a->width, lo, hi;
    attn_slots(&lo, &hi, r->t, &a->p);
    for (int64_t at = lo; at < hi; at += TILE)
        fold(r, (const real *)a->kb.data + at * stride + kv * a->width,
             (const real *)a->vb.data + at * stride + kv * a->width,
             hi - at < TILE ? hi - at : TILE, stride, a->width, a->p.scale);
}

static void finish(const struct attn *a, struct row *r)
{
    real part = r->sum > 0 ? (real)(1 / r->sum) : 0;
    for (int64_t i = 0; i < a->width; i++)
        r->o[i] *= part;
    if (a->lse.data) {
        real lse = r->top + (real)mathf_log(r->sum);
        loop_store(&a->lse, r->t * a->heads + r->head, 1, &lse);
    }
}

static void run(const struct attn *a, struct row *row, int n, int64_t kv, real *room)
{
    if (n > 0)
        fold_span(a, row, n, kv, room);
    for (int i = 0; i < n; i++) {
        if (a->kb.data)
            fold_block(a, &row[i], kv);
        finish(a, &row[i]);
    }
}

static struct row start(const struct attn *a, int64_t t, int64_t head)
{
    int64_t at = (t * a->heads + head) * a->width;
    struct row r = {.q = (const real *)a->q.data + at,
                    .o = (real *)a->o.data + at,
                    .t = t,
                    .head = head,
                    .lo = ((const int32_t *)a->lo.data)[t],
                    .hi = ((const int32_t *)a->hi.data)[t],
                    .top = -INFINITY};
    for (int64_t i = 0; i < a->width; i++)
        r.o[i] = 0;
    return r;
}

/* attend_items: an item is CHUNK queries of all heads on one key/value head. */
static int attend_items(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct attn *a = ctx;
    int64_t group = a->heads / a->kv_heads, queries = a->q.dim[0];
    real *room = a->room + worker * 2 * TILE * a->width;
    struct row row[BATCH];
    for (int64_t item = begin; item < end; item++) {
        int64_t t0 = item / a->kv_heads * CHUNK, kv = item % a->kv_heads;
        int64_t t1 = t0 + CHUNK < queries ? t0 + CHUNK : queries;
        int n = 0;
        for (int64_t i = 0; i < (t1 - t0) * group; i++) {
            struct row r = start(a, t0 + i / group, kv * group + i % group);
            if (n == BATCH || (n > 0 && r.lo != row[0].lo)) {
                run(a, row, n, kv, room);
                n = 0;
            }
            row[n++] = r;
        }
        run(a, row, n, kv, room);
    }
    return 0;
}

static void attend(struct dev *d, struct attn *a)
{
    a->heads = a->q.dim[1];
    a->kv_heads = a->k.dim[1];
    a->width = a->q.dim[2];
    int64_t chunks = (a->q.dim[0] + CHUNK - 1) / CHUNK;
    a->room = cpu_scratch(d, (size_t)(par_threads(d->par) * 2 * TILE * a->width) *
                                 sizeof(real));
    if (!a->room)
        return;
    loop_rows(d, chunks * a->kv_heads, 32768, attend_items, a);
}

void cpu_attn_span(struct dev *d, struct tensor o, struct tensor q, struct tensor k,
                   struct tensor v, struct tensor lo, struct tensor hi, float scale)
{
    struct attn a = {.o = o, .q = q, .k = k, .v = v, .lo = lo, .hi = hi};
    a.p.scale = scale;
    attend(d, &a);
}

void cpu_attn_block(struct dev *d, struct tensor o, struct tensor lse, struct tensor q,
                    struct tensor kc, struct tensor vc, struct tensor kb,
                    struct tensor vb, struct tensor lo, struct tensor hi,
                    struct attn_block p)
{
    struct attn a = {.o = o,
                     .lse = lse,
                     .q = q,
                     .k = kc,
                     .v = vc,
                     .kb = kb,
                     .vb = vb,
                     .lo = lo,
                     .hi = hi,
                     .p = p};
    attend(d, &a);
}
