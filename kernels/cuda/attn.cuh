/* SPDX-License-Identifier: MIT */
/* attn.cuh - what the fused attention kernels share.
 *
 * The query heads of a group read the same key/value head and see the same keys.  So
 * the queries of one key/value head are one flat list of rows: row i is token i / G,
 * head i % G of its group, and tiles are cut from that list whatever G and the block
 * size are.  A row sees one interval of keys in each of up to two arrays: the context,
 * and in the drafter the blocks' own rows.  There is no mask, only two numbers a row
 * and array.  A tile of keys that no row sees is never visited; one that all rows of a
 * warp see whole is not compared; the rest, at the edges, goes 16 keys at a time.
 *
 * The order of work (attnplan.cu) is found on the device: items longest first, for the
 * key side also which tiles of 64 rows see a tile of 128 keys. */
#ifndef ATTN_CUH
#define ATTN_CUH

#include "launch.cuh"
#include "tile.cuh"

#include <limits.h>
#include <stddef.h>

enum {
    ATTN_NONE = INT_MAX,    /* no key */
    ATTN_QUERY_ROWS = 128,  /* an item of forward and dq */
    ATTN_TILE_ROWS = 64,    /* what attn_dkv_kernel takes at a time */
    ATTN_TILE_KEYS = 128,   /* an item of attn_dkv_kernel */
    ATTN_SMEM_MAX = 101376, /* a block's shared memory on sm_120 */
    ATTN_SMEM_RESERVED = 1024
};

#define ATTN_LOG2E 1.4426950408889634f

struct attn_keys {
    const bf16 *k, *v;  // [rows][n_kv][D]
    bf16 *dk, *dv;      // the same, backward only
    const int *lo, *hi; // [tokens]: token t sees keys [lo[t], hi[t])
    int rows;
};

struct attn_args {
    struct attn_keys keys[2]; // context, own
    int kinds;                // 1 or 2 of them
    const bf16 *q, *dout;     // [tokens][n_h][D]
    const bf16 *o_in;         // forward's output, for backward
    bf16 *o, *dq;
    void *lse;              // [tokens][n_h], f32 or bf16; NULL: not wanted
    bool lse_short;         // bf16
    float *stat;            // [2][n_kv][padded] by row: lse / ln 2, delta
    int *own_lo, *own_hi;   // [tokens], found by attn_bounds_kernel
    int4 *bounds;           // [kinds][tiles of 64 rows]: see attn_reach
    int *order;             // items of 128 rows, longest first
    float *part, *part_lse; // [parts][tokens][n_h][D] and [parts][tokens][n_h]
    int parts, piece;       // a part has this many keys of the context; INT_MAX: all
    int4 *items, *sorted;   // key side: first key, tiles [first, last), kind
    int rows, padded;       // tokens * G, and rounded up to ATTN_QUERY_ROWS
    int tokens, group, kv_heads;
    uint32_t magic; // row / G = row * magic >> shift
    int shift;
    uint32_t q_bytes, kv_bytes; // of a token, all heads
    struct attn_block block;
    bool even;           // G divides 8: a step of rows is whole tokens
    uint32_t step_bytes; // then, from row i to row i + 8
    float scale, scale2; // scale2 = scale / ln 2, for exp2
};

/* Lines of cuda_kernels. */
enum {
    KERNEL_FWD_WIDE_64,
    KERNEL_FWD_WIDE_128,
    KERNEL_FWD_TALL_64,
    KERNEL_FWD_TALL_128,
    KERNEL_FWD_DEEP_256,
    KERNEL_PART_64,
    KERNEL_PART_128,
    KERNEL_PART_256,
    KERNEL_DQ_WIDE_64,
    KERNEL_DQ_WIDE_128,
    KERNEL_DQ_TALL_64,
    KERNEL_DQ_TALL_128,
    KERNEL_DKV_64,
    KERNEL_DKV_128,
    KERNEL_DELTA_PREP,
    KERNEL_DELTA_SCAN,
    KERNEL_COUNT
};

/* attn_is_fused: the fused kernels take bf16 of head width 64 and 128 both ways, of 256
 * forward: drafters have no such heads. */
static inline bool attn_is_fused(struct tensor q, bool backward)
{
    const int64_t width = q.dim[2];
    return q.type == DT_BF16 &&
           (width == 64 || width == 128 || (width == 256 && !backward));
}

/* attn_args_of describes one array of keys; attn_args_own adds the blocks' own. */
struct attn_args attn_args_of(struct tensor q, struct tensor k, struct tensor v,
                              struct tensor lo, struct tensor hi, float scale);
void attn_args_own(struct attn_args *a, struct tensor kb, struct tensor vb,
                   struct attn_block p);

/* attn_two_fit: two blocks of the largest shape fit on a multiprocessor. */
bool attn_two_fit(void);

/* attn_plan takes scratch for a and fills the order of work; with `keys` the key side
 * of backward too. */
void attn_plan(struct dev *d, struct attn_args *a, bool keys);

/* attn_in_parts runs the planned pass with its keys in pieces, if there are too few
 * query rows to fill the card; else false, and nothing is done. */
bool attn_in_parts(struct dev *d, struct attn_args *a, int width);

/* attn_dkv: the key side of backward, after dq has filled stat. */
void attn_dkv(struct dev *d, const struct attn_args *a, int width);

/* The plain kernels (attnplain.cu), for any width and f32. */
void attn_plain(struct dev *d, struct attn_args *a, struct tensor q);
void attn_plain_bwd(struct dev *d, struct attn_args *a, struct tensor q);

/* ---- rows ---- */

static __device__ __forceinline__ int row_token(const struct attn_args &x, int row)
{
    return (int)((uint64_t)(uint32_t)row * x.magic >> x.shift);
}

/* Byte offset of a row in q, o and their gradients; past the end, the last row's. */
template <int D>
static __device__ __forceinline__ size_t row_offset(const struct attn_args &x, int g,
                                                    int row)
{
    row = min(row, x.rows - 1);
    int t = row_token(x, row), head = g * x.group + row - t * x.group;
    return (uint64_t)(uint32_t)t * x.q_bytes + (uint32_t)(head * 2 * D);
}

/* Index of a row in lse. */
static __device__ __forceinline__ size_t row_index(const struct attn_args &x, int g,
                                                   int row)
{
    int t = row_token(x, row);
    return (size_t)t * (size_t)(x.kv_heads * x.group) +
           (size_t)(g * x.group + row - t * x.group);
}

/* Rows of o, and the first of those of this block's piece in part. */
static __host__ __device__ __forceinline__ size_t part_rows(const struct attn_args &x)
{
    return (size_t)x.rows * (size_t)x.kv_heads;
}

static __device__ __forceinline__ size_t part_row(const struct attn_args &x)
{
    return blockIdx.z * part_rows(x);
}

/* ---- what rows see ---- */

/* What token t sees of one kind of keys; nothing is [ATTN_NONE, 0).  Not `real`: a row
 * past the end.  Of the blocks' own rows: those of its block within the window and,
 * when causal, not after it (op.h). */
static __device__ __forceinline__ int2 span_of(const struct attn_args &x, int kind,
                                               int t, bool real)
{
    const struct attn_block &p = x.block;
    int lo = 0, hi = 0;
    if (real && kind == 0) {
        lo = x.keys[0].lo[t];
        hi = x.keys[0].hi[t];
    } else if (real) {
        int first = t - t % p.block, end = first + p.block;
        lo = p.window ? max(first, t - p.window + 1) : first;
        hi = p.window && p.window < end - t ? t + p.window : end;
        hi = p.causal ? t + 1 : hi;
    }
    return lo < hi ? make_int2(lo, hi) : make_int2(ATTN_NONE, 0);
}

/* What of a span belongs to this block's piece: of the context the piece's keys, and
 * the own block to the first. */
static __device__ __forceinline__ int2 span_in_piece(const struct attn_args &x,
                                                     int kind, int2 span)
{
    const int from = blockIdx.z * x.piece;
    if (kind == 0 && x.parts > 1)
        span = make_int2(max(span.x, from), min(span.y, from + x.piece));
    else if (blockIdx.z > 0)
        span.y = 0;
    return span.x < span.y ? span : make_int2(ATTN_NONE, 0);
}

/* The reach of a warp's rows: lowest start, highest end, highest start, lowest end of
 * their intervals.  A row that sees nothing leaves the first two and spoils the others:
 * the rows do not all see the same. */
static __device__ __forceinline__ int4 attn_reach(int2 span)
{
    return make_int4(warp_least(span.x), warp_most(span.y), warp_most(span.x),
                     warp_least(span.y));
}

static __device__ __forceinline__ bool sees_none(int4 reach, int key, int n)
{
    return key >= reach.y || key + n <= reach.x;
}

static __device__ __forceinline__ bool sees_all(int4 reach, int key, int n)
{
    return key >= reach.z && key + n <= reach.w;
}

/* ---- copies to shared memory ---- */

/* Where thread t of T puts and takes its 16 bytes of every step of rows. */
template <int D> static __device__ __forceinline__ int copy_row(int t)
{
    return t / (D / 8);
}

template <int D> static __device__ __forceinline__ uint32_t copy_to(int t)
{
    return at<D>(copy_row<D>(t), t % (D / 8));
}

template <int D> static __device__ __forceinline__ uint32_t copy_from(int t, int head)
{
    return (uint32_t)(head * 2 * D + t % (D / 8) * 16);
}

/* N keys and values from `first` on, by T threads; past the end the last one.  `to` is
 * copy_to in the tile of k, v's comes after it; `from` is copy_from.  Every instruction
 * here counts: with full addresses for each copy forward was a tenth slower. */
template <int D, int N, int T>
static __device__ __forceinline__ void copy_keys(uint32_t to,
                                                 const struct attn_keys &keys,
                                                 uint32_t from, uint32_t stride, int t,
                                                 int first)
{
    constexpr int STEP = T / (D / 8), TILE = N * 2 * D;
    static_assert(N % STEP == 0 && STEP % 8 == 0, "whole steps keep the swizzle");
    if (first + N <= keys.rows) {
        uint64_t at_row = (uint64_t)(uint32_t)(first + copy_row<D>(t)) * stride + from;
        const char *k = (const char *)keys.k + at_row;
        const char *v = (const char *)keys.v + at_row;
#pragma unroll
        for (int i = 0; i < N / STEP; i++) {
            cp16(to + i * STEP * 2 * D, k + (uint64_t)stride * (uint32_t)(i * STEP));
            cp16(to + TILE + i * STEP * 2 * D,
                 v + (uint64_t)stride * (uint32_t)(i * STEP));
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < N; i += STEP) {
            int row = min(first + i + copy_row<D>(t), keys.rows - 1);
            uint64_t at_row = (uint64_t)(uint32_t)row * stride + from;
            cp16(to + i * 2 * D, (const char *)keys.k + at_row);
            cp16(to + TILE + i * 2 * D, (const char *)keys.v + at_row);
        }
    }
}

/* ---- a ring of stages: copies fill it ahead of the products ---- */

/* Barriers of a stage: full, free.  Use n of the ring is stage n % 2.  Every lane of a
 * user arrives, not one for its warp: a warp's synchronisation followed by one arrival
 * orders the same accesses, but racecheck does not see it. */
enum { RING = 2 };

static __device__ __forceinline__ void ring_init(uint32_t bars, int copiers, int users)
{
    for (int s = 0; s < RING; s++) {
        bar_init(bars + 16 * s, copiers);
        bar_init(bars + 16 * s + 8, 32 * users);
    }
}

static __device__ __forceinline__ void ring_copied(uint32_t bars, int n)
{
    bar_arrive_copied(bars + n % RING * 16);
}

static __device__ __forceinline__ void ring_wait_full(uint32_t bars, int n)
{
    bar_wait(bars + n % RING * 16, n / RING & 1);
}

static __device__ __forceinline__ void ring_wait_free(uint32_t bars, int n)
{
    if (n >= RING)
        bar_wait(bars + n % RING * 16 + 8, (n / RING & 1) ^ 1);
}

static __device__ __forceinline__ void ring_release(uint32_t bars, int n)
{
    bar_arrive(bars + n % RING * 16 + 8);
}

#endif
