/* SPDX-License-Identifier: MIT */
/* attnplan.cu - attention's order of work, found on the device.
 *
 * Intervals are in device memory and the host never waits, so small kernels, a warp an
 * entry, turn them into what the large ones follow:
 *   order   the query side's items, longest first, by the first and the last token's
 *           interval: only time depends on it
 *   bounds  each tile of 64 query rows: the reach of its rows, by kind of keys; and the
 *           intervals of each token in its own block
 *   items   each tile of 128 keys: the run of query tiles that see any of them.  A tile
 *           within the run that does not is skipped later; with anchors in order there
 *           are few
 *   rank    the key side's items, longest first
 * An entry's place is the number of longer ones, ties in order: whole numbers, the same
 * every time.  2 to 3 us a kernel; forward needs the first alone. */
#include "attn.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

/* bounds[kind][tile]; grid: tiles in warps, kinds. */
__global__ void __launch_bounds__(THREADS)
    attn_bounds_kernel(const __grid_constant__ struct attn_args x)
{
    int tiles = x.padded / ATTN_TILE_ROWS, kind = blockIdx.y;
    int tile = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (tile >= tiles)
        return;
    int row = tile * ATTN_TILE_ROWS, last = min(row + ATTN_TILE_ROWS, x.rows) - 1;
    int4 all = make_int4(ATTN_NONE, 0, 0, ATTN_NONE);
    if (row + ATTN_TILE_ROWS > x.rows) // rows past the end see nothing
        all = make_int4(ATTN_NONE, 0, ATTN_NONE, 0);
    int end = row < x.rows ? row_token(x, last) : -1;
    for (int t = row_token(x, row) + lane; t <= end; t += 32) {
        int2 span = span_of(x, kind, t, true);
        if (kind == 1 && t * x.group >= row) { // the tile of the token's first row
            x.own_lo[t] = span.x;
            x.own_hi[t] = span.y;
        }
        all = make_int4(min(all.x, span.x), max(all.y, span.y), max(all.z, span.x),
                        min(all.w, span.y));
    }
    all = make_int4(warp_least(all.x), warp_most(all.y), warp_most(all.z),
                    warp_least(all.w));
    if (lane == 0)
        x.bounds[kind * tiles + tile] = all;
}

static __host__ __device__ __forceinline__ int key_tiles(const struct attn_args &x,
                                                         int kind)
{
    return (x.keys[kind].rows + ATTN_TILE_KEYS - 1) / ATTN_TILE_KEYS;
}

/* items: context first, then the blocks' own. */
__global__ void __launch_bounds__(THREADS)
    attn_items_kernel(const __grid_constant__ struct attn_args x)
{
    int tiles = x.padded / ATTN_TILE_ROWS, context = key_tiles(x, 0);
    int item = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (item >= context + key_tiles(x, 1))
        return;
    int kind = item >= context, key = (item - kind * context) * ATTN_TILE_KEYS;
    int first = tiles, end = 0;
    for (int tile = lane; tile < tiles; tile += 32)
        if (!sees_none(x.bounds[kind * tiles + tile], key, ATTN_TILE_KEYS)) {
            first = min(first, tile);
            end = tile + 1;
        }
    first = warp_least(first);
    end = warp_most(end);
    if (lane == 0)
        x.items[item] = make_int4(key, min(first, end), end, kind);
}

static __device__ __forceinline__ int length_of(const struct attn_args &x, int item)
{
    int a = row_token(x, item * ATTN_QUERY_ROWS);
    int b = row_token(x, min((item + 1) * ATTN_QUERY_ROWS, x.rows) - 1);
    int lo = min(x.keys[0].lo[a], x.keys[0].lo[b]);
    return max(x.keys[0].hi[a], x.keys[0].hi[b]) - lo;
}

__global__ void __launch_bounds__(THREADS)
    attn_order_kernel(const __grid_constant__ struct attn_args x)
{
    int i = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31, place = 0;
    int count = x.padded / ATTN_QUERY_ROWS;
    if (i >= count)
        return;
    int mine = length_of(x, i);
    for (int j = lane; j < count; j += 32) {
        int other = length_of(x, j);
        place += other > mine || (other == mine && j < i);
    }
    place = warp_total(place);
    if (lane == 0)
        x.order[place] = i;
}

__global__ void __launch_bounds__(THREADS)
    attn_rank_kernel(const __grid_constant__ struct attn_args x)
{
    int i = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31, place = 0;
    int count = key_tiles(x, 0) + key_tiles(x, 1);
    if (i >= count)
        return;
    int4 item = x.items[i];
    for (int j = lane; j < count; j += 32) {
        int mine = item.z - item.y, other = x.items[j].z - x.items[j].y;
        place += other > mine || (other == mine && j < i);
    }
    place = warp_total(place);
    if (lane == 0)
        x.sorted[place] = item;
}

/* ---- the host's side ---- */

struct attn_args attn_args_of(struct tensor q, struct tensor k, struct tensor v,
                              struct tensor lo, struct tensor hi, float scale)
{
    struct attn_args a = {};
    int64_t tokens = q.dim[0], kv = k.dim[1], group = q.dim[1] / kv;
    int64_t padded =
        (tokens * group + ATTN_QUERY_ROWS - 1) / ATTN_QUERY_ROWS * ATTN_QUERY_ROWS;
    if (padded > INT_MAX - ATTN_QUERY_ROWS || k.dim[0] > INT_MAX - ATTN_QUERY_ROWS)
        bug("attention over %lld tokens and %lld keys", (long long)tokens,
            (long long)k.dim[0]);
    size_t head = (size_t)q.dim[2] * sizeof(bf16);
    a.keys[0].k = (const bf16 *)k.data;
    a.keys[0].v = (const bf16 *)v.data;
    a.keys[0].lo = (const int *)lo.data;
    a.keys[0].hi = (const int *)hi.data;
    a.keys[0].rows = (int)k.dim[0];
    a.kinds = 1;
    a.q = (const bf16 *)q.data;
    a.tokens = (int)tokens;
    a.group = (int)group;
    a.kv_heads = (int)kv;
    a.rows = (int)(tokens * group);
    a.padded = (int)padded;
    while (1 << a.shift < a.group)
        a.shift++;
    a.shift += 31; // exact for rows below 2^31
    a.magic = (uint32_t)(((uint64_t)1 << a.shift) / (uint64_t)group + 1);
    a.q_bytes = (uint32_t)(head * (size_t)q.dim[1]);
    a.kv_bytes = (uint32_t)(head * (size_t)kv);
    a.even = 8 % group == 0;
    a.step_bytes = a.q_bytes * (uint32_t)(8 / group);
    a.scale = scale;
    a.scale2 = scale * ATTN_LOG2E;
    a.block.block = 1;
    a.parts = 1;
    a.piece = INT_MAX;
    return a;
}

void attn_args_own(struct attn_args *a, struct tensor kb, struct tensor vb,
                   struct attn_block p)
{
    a->keys[1].k = (const bf16 *)kb.data;
    a->keys[1].v = (const bf16 *)vb.data;
    a->keys[1].rows = (int)kb.dim[0];
    a->kinds = 2;
    a->block = p;
}

bool attn_two_fit(void)
{
    int device = 0, bytes = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    return bytes >= 2 * (ATTN_SMEM_MAX + ATTN_SMEM_RESERVED);
}

/* take cuts `count` elements of 256-byte aligned scratch. */
template <typename T> static T *take(char **at, size_t count)
{
    T *p = (T *)*at;
    *at += (count * sizeof(T) + 255) / 256 * 256;
    return p;
}

static void take_scratch(struct dev *d, struct attn_args *a, int items)
{
    char *base = cuda_state(d)->scratch, *at = base;
    size_t rows = (size_t)a->padded, tokens = (size_t)a->tokens;
    a->order = take<int>(&at, rows / ATTN_QUERY_ROWS);
    if (items > 0) {
        a->stat = take<float>(&at, 2 * (size_t)a->kv_heads * rows);
        a->bounds = take<int4>(&at, (size_t)a->kinds * rows / ATTN_TILE_ROWS);
        a->items = take<int4>(&at, (size_t)items);
        a->sorted = take<int4>(&at, (size_t)items);
        a->own_lo = take<int>(&at, tokens);
        a->own_hi = take<int>(&at, tokens);
        a->keys[1].lo = a->own_lo;
        a->keys[1].hi = a->own_hi;
    }
    if (at - base > CUDA_SCRATCH_BYTES)
        bug("attention over %d tokens needs %lld bytes of scratch", a->tokens,
            (long long)(at - base));
}

void attn_plan(struct dev *d, struct attn_args *a, bool keys)
{
    const int items = keys ? key_tiles(*a, 0) + key_tiles(*a, 1) : 0;
    const unsigned orders = blocks_for(a->padded / ATTN_QUERY_ROWS, WARPS);
    take_scratch(d, a, items);
    launch_plain(d, "attn_plan", attn_order_kernel, orders, THREADS, *a);
    if (keys) {
        const unsigned blocks = blocks_for(items, WARPS);
        const dim3 tiles(blocks_for(a->padded / ATTN_TILE_ROWS, WARPS), 2);
        launch_plain(d, "attn_plan", attn_bounds_kernel, tiles, THREADS, *a);
        launch_plain(d, "attn_plan", attn_items_kernel, blocks, THREADS, *a);
        launch_plain(d, "attn_plan", attn_rank_kernel, blocks, THREADS, *a);
    }
}
