/* SPDX-License-Identifier: MIT */
/* attnbwd.c - attention over intervals of keys, backward, for the drafter.
 *
 * With p = exp(scale q.k - lse), for each query row and each key it sees:
 *   delta = dout.o     ds = p (dout.v - delta) scale
 *   dq += ds k         dk += ds q         dv += p dout
 * (FlashAttention-2, algorithm 2; derivation in docs/math.md).  The slots of one head
 * of one block walk their keys together, a tile at a time.
 *
 * The gradient of a key sums over all blocks that see it.  Blocks are cut into groups
 * whose context intervals do not touch (documents, mostly); a thread takes one group on
 * one key/value head and goes through its blocks in order.  No two threads share a key,
 * and every sum has one order whatever the number of threads. */
#include "attn.h"
#include "loop.h"
#include "vec.h"

#include <string.h>

enum { TILE = 64, SLOTS = 16 };

struct bwd {
    struct attn_grads g;
    struct tensor dout, o, lse, q, kc, vc, kb, vb, lo, hi;
    struct attn_block p;
    int64_t heads, kv_heads, width;
    const int64_t *group; // first block of each group, and the number of blocks
};

/* Up to SLOTS rows of one head, D apart by `stride`, and the keys of one kind that they
 * see: row i sees [lo[i], hi[i]). */
struct rows {
    const real *q, *dout;
    real *dq;
    int64_t n, stride;
    real lse[SLOTS], delta[SLOTS];
    int64_t lo[SLOTS], hi[SLOTS];
};

struct keys {
    const real *k, *v;
    real *dk, *dv;
    int64_t stride;
};

/* tile_row fills p and ds of one row for the tile's keys [from, to), zeros elsewhere,
 * and adds to dq. */
static void tile_row(const struct rows *r, int64_t i, const struct keys *at,
                     int64_t from, int64_t to, real *p, real *ds, const struct bwd *a)
{
    for (int64_t j = 0; j < TILE; j++)
        p[j] = ds[j] = 0;
    if (from >= to)
        return;
    const real *k = at->k + from * at->stride, *v = at->v + from * at->stride;
    int64_t n = to - from;
    p += from;
    ds += from;
    vec_dots(p, r->q + i * r->stride, k, n, at->stride, a->width);
    vec_dots(ds, r->dout + i * r->stride, v, n, at->stride, a->width);
    for (int64_t j = 0; j < n; j++) {
        p[j] = mathf_exp(p[j] * a->p.scale - r->lse[i]);
        ds[j] = p[j] * (ds[j] - r->delta[i]) * a->p.scale;
    }
    vec_rows(r->dq + i * r->stride, ds, 1, k, n, at->stride, a->width);
}

/* tile adds what the rows and the keys from `first` on, at most TILE, give each other.
 */
static void tile(const struct bwd *a, const struct rows *r, const struct keys *all,
                 int64_t first, int64_t keys)
{
    real p[SLOTS][TILE], ds[SLOTS][TILE];
    struct keys at = *all;
    at.k += first * at.stride;
    at.v += first * at.stride;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t from = r->lo[i] - first, to = r->hi[i] - first;
        tile_row(r, i, &at, from > 0 ? from : 0, to < keys ? to : keys, p[i], ds[i], a);
    }
    for (int64_t j = 0; j < keys; j++) {
        int64_t to = (first + j) * at.stride;
        vec_rows(at.dk + to, &ds[0][j], TILE, r->q, r->n, r->stride, a->width);
        vec_rows(at.dv + to, &p[0][j], TILE, r->dout, r->n, r->stride, a->width);
    }
}

static void walk(const struct bwd *a, const struct rows *r, const struct keys *keys)
{
    int64_t first = INT64_MAX, last = 0;
    for (int64_t i = 0; i < r->n; i++)
        if (r->lo[i] < r->hi[i]) {
            first = r->lo[i] < first ? r->lo[i] : first;
            last = r->hi[i] > last ? r->hi[i] : last;
        }
    for (int64_t j = first; j < last; j += TILE)
        tile(a, r, keys, j, last - j < TILE ? last - j : TILE);
}

/* start gathers rows [t, t + n) of a head and clears their dq. */
static void start(const struct bwd *a, struct rows *r, int64_t t, int64_t n,
                  int64_t head)
{
    int64_t at = (t * a->heads + head) * a->width;
    r->q = (const real *)a->q.data + at;
    r->dout = (const real *)a->dout.data + at;
    r->dq = (real *)a->g.dq.data + at;
    r->n = n;
    r->stride = a->heads * a->width;
    for (int64_t i = 0; i < n; i++) {
        const real *o = (const real *)a->o.data + at + i * r->stride;
        r->delta[i] = (real)vec_dot64(r->dout + i * r->stride, o, a->width);
        r->lse[i] = *loop_reals(&a->lse, (t + i) * a->heads + head, 1, &r->lse[i]);
        memset(r->dq + i * r->stride, 0, (size_t)a->width * sizeof(real));
    }
}

static void context_spans(const struct bwd *a, struct rows *r, int64_t t)
{
    for (int64_t i = 0; i < r->n; i++) {
        r->lo[i] = ((const int32_t *)a->lo.data)[t + i];
        r->hi[i] = ((const int32_t *)a->hi.data)[t + i];
    }
}

static void block_spans(const struct bwd *a, struct rows *r, int64_t t)
{
    for (int64_t i = 0; i < r->n; i++)
        attn_slots(&r->lo[i], &r->hi[i], t + i, &a->p);
}

static struct keys keys_of(const struct bwd *a, struct tensor k, struct tensor v,
                           struct tensor dk, struct tensor dv, int64_t kv)
{
    int64_t at = kv * a->width;
    return (struct keys){(const real *)k.data + at, (const real *)v.data + at,
                         (real *)dk.data + at, (real *)dv.data + at,
                         a->kv_heads * a->width};
}

static void back_block(const struct bwd *a, int64_t block, int64_t kv)
{
    int64_t share = a->heads / a->kv_heads, size = a->p.block;
    struct keys context = keys_of(a, a->kc, a->vc, a->g.dkc, a->g.dvc, kv);
    struct keys own = keys_of(a, a->kb, a->vb, a->g.dkb, a->g.dvb, kv);
    for (int64_t head = kv * share; head < (kv + 1) * share; head++)
        for (int64_t slot = 0; slot < size; slot += SLOTS) {
            int64_t t = block * size + slot;
            struct rows r;
            start(a, &r, t, size - slot < SLOTS ? size - slot : SLOTS, head);
            context_spans(a, &r, t);
            walk(a, &r, &context);
            block_spans(a, &r, t);
            walk(a, &r, &own);
        }
}

static int back_items(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct bwd *a = ctx;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        const int64_t *group = a->group + item / a->kv_heads;
        for (int64_t b = group[0]; b < group[1]; b++)
            back_block(a, b, item % a->kv_heads);
    }
    return 0;
}

/* split finds the groups: a block opens one when all context intervals before it end
 * where all from it on have not begun.  group has room for blocks + 1; it holds the
 * lowest start from each block on, then is overwritten from the front. */
static int64_t split(const struct bwd *a, int64_t *group)
{
    const int32_t *lo = a->lo.data, *hi = a->hi.data;
    int64_t size = a->p.block, blocks = a->q.dim[0] / size, n = 0, top = INT64_MIN;
    int64_t low = INT64_MAX;
    for (int64_t b = blocks - 1; b >= 0; b--) {
        for (int64_t t = b * size; t < (b + 1) * size; t++)
            low = lo[t] < hi[t] && lo[t] < low ? lo[t] : low;
        group[b] = low;
    }
    for (int64_t b = 0; b < blocks; b++) {
        if (b == 0 || top <= group[b])
            group[n++] = b;
        for (int64_t t = b * size; t < (b + 1) * size; t++)
            top = lo[t] < hi[t] && hi[t] > top ? hi[t] : top;
    }
    group[n] = blocks;
    return n;
}

void cpu_attn_block_bwd(struct dev *d, struct attn_grads g, struct tensor dout,
                        struct tensor o, struct tensor lse, struct tensor q,
                        struct tensor kc, struct tensor vc, struct tensor kb,
                        struct tensor vb, struct tensor lo, struct tensor hi,
                        struct attn_block p)
{
    struct bwd a = {.g = g,
                    .dout = dout,
                    .o = o,
                    .lse = lse,
                    .q = q,
                    .kc = kc,
                    .vc = vc,
                    .kb = kb,
                    .vb = vb,
                    .lo = lo,
                    .hi = hi,
                    .p = p};
    struct tensor *sum[] = {&g.dkc, &g.dvc, &g.dkb, &g.dvb};
    a.heads = q.dim[1];
    a.kv_heads = kc.dim[1];
    a.width = q.dim[2];
    int64_t *group = cpu_scratch(d, (size_t)(q.dim[0] / p.block + 1) * sizeof *group);
    if (!group)
        return;
    for (int i = 0; i < 4; i++)
        if (tensor_count(sum[i]) > 0)
            memset(sum[i]->data, 0, tensor_bytes(sum[i]));
    a.group = group;
    loop_rows(d, split(&a, group) * a.kv_heads, 32768, back_items, &a);
}
