/* SPDX-License-Identifier: MIT */
/* attnbwd.c - attention over intervals of keys, backward, for the drafter.
 *
 * With p = exp(scale q.k - lse), for each query row and each key it sees:
 *   delta = dout.o     ds = p (dout.v - delta) scale
 *   dq += ds k         dk += ds q         dv += p dout
 * (FlashAttention-2, algorithm 2; derivation in docs/math.md).  The rows of one block
 * on one key/value head, all heads that share it, walk their keys together, a tile at a
 * time.  Rows and tiles are copied side by side first (see attn.c).
 *
 * The gradient of a key sums over all blocks that see it.  Blocks are cut into groups
 * whose context intervals do not touch (documents, mostly); a thread takes one group on
 * one key/value head and goes through its blocks in order.  No two threads share a key,
 * and every sum has one order whatever the number of threads. */
#include "attn.h"
#include "loop.h"
#include "vec.h"

#include <string.h>

enum { TILE = 64, ROWS = 16 };

struct bwd {
    struct attn_grads g;
    struct tensor dout, o, lse, q, kc, vc, kb, vb, lo, hi;
    struct attn_block p;
    int64_t heads, kv_heads, width;
    const int64_t *group; // first block of each group, and the number of blocks
    char *room;           // for each worker, room_size bytes
    int64_t room_size;
};

/* The rows of a block on one key/value head: row i is slot i % B of head i / B of those
 * that share it; it sees keys [lo[i], hi[i]) of the kind at hand. */
struct rows {
    real *q, *dout, *dq; // [n][D]
    real *lse, *delta;   // [n]
    int64_t *lo, *hi;    // [n]
    int64_t n;
    real *k, *v, *dk, *dv; // [TILE][D], the tile at hand
};

struct keys {
    const real *k, *v;
    real *dk, *dv;
    int64_t stride;
};

static int64_t room_for(int64_t n, int64_t width)
{
    return n * (2 * (int64_t)sizeof(int64_t) +
                (3 * width + 2) * (int64_t)sizeof(real)) +
           4 * TILE * width * (int64_t)sizeof(real);
}

/* lay_out places the arrays of n rows in a worker's room. */
static struct rows lay_out(char *room, int64_t n, int64_t width)
{
    struct rows r = {.n = n};
    r.lo = (int64_t *)(void *)room;
    r.hi = r.lo + n;
    r.q = (real *)(void *)(r.hi + n);
    r.dout = r.q + n * width;
    r.dq = r.dout + n * width;
    r.k = r.dq + n * width;
    r.v = r.k + TILE * width;
    r.dk = r.v + TILE * width;
    r.dv = r.dk + TILE * width;
    r.lse = r.dv + TILE * width;
    r.delta = r.lse + n;
    return r;
}

/* row_scores fills p and ds of one row for the tile's keys [from, to), zeros elsewhere,
 * and adds to dq. */
static void row_scores(const struct bwd *a, const struct rows *r, int64_t i,
                       int64_t from, int64_t to, real *p, real *ds)
{
    int64_t width = a->width, n = to - from;
    for (int64_t j = 0; j < TILE; j++)
        p[j] = ds[j] = 0;
    if (n <= 0)
        return;
    p += from;
    ds += from;
    vec_dots(p, r->q + i * width, r->k + from * width, n, width, width);
    vec_dots(ds, r->dout + i * width, r->v + from * width, n, width, width);
    for (int64_t j = 0; j < n; j++) {
        p[j] = mathf_exp(p[j] * a->p.scale - r->lse[i]);
        ds[j] = p[j] * (ds[j] - r->delta[i]) * a->p.scale;
    }
    vec_rows(r->dq + i * width, ds, 1, r->k + from * width, n, width, width);
}

/* tile_rows adds what rows [begin, end), at most ROWS, and the tile's keys, from
 * `first` on, give each other. */
static void tile_rows(const struct bwd *a, const struct rows *r, int64_t begin,
                      int64_t end, int64_t first, int64_t keys)
{
    real p[ROWS][TILE], ds[ROWS][TILE];
    int64_t width = a->width;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = r->lo[i] - first, to = r->hi[i] - first;
        row_scores(a, r, i, from > 0 ? from : 0, to < keys ? to : keys, p[i - begin],
                   ds[i - begin]);
    }
    for (int64_t j = 0; j < keys; j++) {
        vec_rows(r->dk + j * width, &ds[0][j], TILE, r->q + begin * width, end - begin,
                 width, width);
        vec_rows(r->dv + j * width, &p[0][j], TILE, r->dout + begin * width,
                 end - begin, width, width);
    }
}

static void tile(const struct bwd *a, const struct rows *r, const struct keys *all,
                 int64_t first, int64_t keys)
{
    int64_t width = a->width, stride = all->stride, at = first * stride;
    vec_copy(r->k, width, all->k + at, stride, keys, width);
    vec_copy(r->v, width, all->v + at, stride, keys, width);
    vec_copy(r->dk, width, all->dk + at, stride, keys, width);
    vec_copy(r->dv, width, all->dv + at, stride, keys, width);
    for (int64_t i = 0; i < r->n; i += ROWS)
        tile_rows(a, r, i, i + ROWS < r->n ? i + ROWS : r->n, first, keys);
    vec_copy(all->dk + at, stride, r->dk, width, keys, width);
    vec_copy(all->dv + at, stride, r->dv, width, keys, width);
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

/* load copies the rows of a block and clears their dq. */
static void load(const struct bwd *a, struct rows *r, int64_t block, int64_t kv)
{
    int64_t width = a->width, size = a->p.block;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t t = block * size + i % size, head = kv * (r->n / size) + i / size;
        int64_t at = t * a->heads + head;
        const real *o = (const real *)a->o.data + at * width;
        memcpy(r->q + i * width, (const real *)a->q.data + at * width,
               (size_t)width * sizeof(real));
        memcpy(r->dout + i * width, (const real *)a->dout.data + at * width,
               (size_t)width * sizeof(real));
        memset(r->dq + i * width, 0, (size_t)width * sizeof(real));
        r->delta[i] = (real)vec_dot64(r->dout + i * width, o, width);
        r->lse[i] = *loop_reals(&a->lse, at, 1, &r->lse[i]);
    }
}

static void store(const struct bwd *a, const struct rows *r, int64_t block, int64_t kv)
{
    int64_t width = a->width, size = a->p.block;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t t = block * size + i % size, head = kv * (r->n / size) + i / size;
        memcpy((real *)a->g.dq.data + (t * a->heads + head) * width, r->dq + i * width,
               (size_t)width * sizeof(real));
    }
}

static void context_spans(const struct bwd *a, struct rows *r, int64_t block)
{
    for (int64_t i = 0; i < r->n; i++) {
        int64_t t = block * a->p.block + i % a->p.block;
        r->lo[i] = ((const int32_t *)a->lo.data)[t];
        r->hi[i] = ((const int32_t *)a->hi.data)[t];
    }
}

static void block_spans(const struct bwd *a, struct rows *r, int64_t block)
{
    for (int64_t i = 0; i < r->n; i++)
        attn_slots(&r->lo[i], &r->hi[i], block * a->p.block + i % a->p.block, &a->p);
}

static struct keys keys_of(const struct bwd *a, struct tensor k, struct tensor v,
                           struct tensor dk, struct tensor dv, int64_t kv)
{
    int64_t at = kv * a->width;
    return (struct keys){(const real *)k.data + at, (const real *)v.data + at,
                         (real *)dk.data + at, (real *)dv.data + at,
                         a->kv_heads * a->width};
}

static void back_block(const struct bwd *a, int64_t block, int64_t kv, char *room)
{
    struct keys context = keys_of(a, a->kc, a->vc, a->g.dkc, a->g.dvc, kv);
    struct keys own = keys_of(a, a->kb, a->vb, a->g.dkb, a->g.dvb, kv);
    struct rows r = lay_out(room, a->heads / a->kv_heads * a->p.block, a->width);
    load(a, &r, block, kv);
    context_spans(a, &r, block);
    walk(a, &r, &context);
    block_spans(a, &r, block);
    walk(a, &r, &own);
    store(a, &r, block, kv);
}

static int back_items(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct bwd *a = ctx;
    for (int64_t item = begin; item < end; item++) {
        const int64_t *group = a->group + item / a->kv_heads;
        for (int64_t b = group[0]; b < group[1]; b++)
            back_block(a, b, item % a->kv_heads, a->room + worker * a->room_size);
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
    a.room_size = room_for(a.heads / a.kv_heads * p.block, a.width);
    a.room_size = (a.room_size + 63) / 64 * 64;
    int64_t rooms = par_threads(d->par) * a.room_size;
    a.room = cpu_scratch(d, (size_t)rooms +
                                (size_t)(q.dim[0] / p.block + 1) * sizeof *a.group);
    if (!a.room)
        return;
    int64_t *group = (int64_t *)(void *)(a.room + rooms);
    for (int i = 0; i < 4; i++)
        if (tensor_count(sum[i]) > 0)
            memset(sum[i]->data, 0, tensor_bytes(sum[i]));
    a.group = group;
    loop_rows(d, split(&a, group) * a.kv_heads, 32768, back_items, &a);
}
