/* SPDX-License-Identifier: MIT */
/* attnquery.cuh - the query side: what forward and dq share.
 *
 * A block holds 128 query rows and walks the keys that any of them sees, tiles of KEYS
 * through a ring of two stages.  Three shapes:
 *   wide  4 warps of 32 rows, left operands in shared memory, two blocks a
 *         multiprocessor: each 16 x 16 piece that ldmatrix brings feeds four mma.  For
 *         cards where mma outruns shared memory (sm_90) and two blocks fit.
 *   tall  8 warps of 16 rows, left operands in registers, one block: where 100 KB is
 *         all there is (sm_120), eight warps keep the schedulers busy.
 *   deep  tall, with half the keys a tile: heads of 256, whose sums and q fill the
 *         registers (128 + 64 of 255) and whose tiles are twice as wide. */
#ifndef ATTNQUERY_CUH
#define ATTNQUERY_CUH

#include "attn.cuh"

/* LEFT left operands: q; for dq also dout.  CHUNK keys are scored at once. */
template <int D_, bool WIDE_, int KEYS_, int CHUNK_, int LEFT_> struct query_shape {
    static constexpr int D = D_, KEYS = KEYS_, CHUNK = CHUNK_, LEFT = LEFT_;
    static constexpr bool WIDE = WIDE_;
    static constexpr int MT = WIDE ? 2 : 1, WARPS = WIDE ? 4 : 8, CTAS = WIDE ? 2 : 1;
    static constexpr int THREADS = 32 * WARPS, ROWS = ATTN_QUERY_ROWS;
    static_assert(16 * MT * WARPS == ROWS, "all rows have a warp");
};

template <class C> struct query_smem {
    unsigned char ring[RING][2][C::KEYS * 2 * C::D]; // k, v; at last the result's rows
    unsigned char left[C::WIDE ? C::LEFT : 1][C::WIDE ? C::ROWS * 2 * C::D : 16];
    uint64_t bars[RING][2];
    int4 reach[2][C::WARPS]; // of each warp's rows, by kind of keys
    int2 span[2][C::ROWS];
};

template <int D> using fwd_wide = query_shape<D, true, 64, 64, 1>;
template <int D> using fwd_tall = query_shape<D, false, 64, 64, 1>;
template <int D> using fwd_deep = query_shape<D, false, 32, 32, 1>;
template <int D> using part_deep = query_shape<D, false, 32, 16, 1>;
template <int D> using dq_wide = query_shape<D, true, 32, 32, 2>;
template <int D> using dq_tall = query_shape<D, false, 64, 32, 2>;

static_assert(sizeof(query_smem<fwd_wide<128>>) <= ATTN_SMEM_MAX, "sm_120's limit");
static_assert(sizeof(query_smem<fwd_tall<128>>) <= ATTN_SMEM_MAX, "sm_120's limit");
static_assert(sizeof(query_smem<fwd_deep<256>>) <= ATTN_SMEM_MAX, "sm_120's limit");
static_assert(sizeof(query_smem<dq_wide<128>>) <= ATTN_SMEM_MAX, "sm_120's limit");
static_assert(sizeof(query_smem<dq_tall<128>>) <= ATTN_SMEM_MAX, "sm_120's limit");

template <class C>
static __device__ __forceinline__ struct query_smem<C> *query_space() {
    return reinterpret_cast<struct query_smem<C> *>(dynamic_smem);
}

/* Where a warp is among the keys: kind of keys, first key of the tile. */
struct walk {
    int kind, key;
};

/* first_seen: the first key at or after `from` that a warp of the block sees. */
template <class C>
static __device__ __forceinline__ int first_seen(int kind, int from,
                                                 const struct lane &l)
{
    int4 r = query_space<C>()->reach[kind][l.id % C::WARPS];
    return warp_least(from < r.y ? max(from, r.x) : ATTN_NONE);
}

/* walk_on: the tile after w; reach is what this warp sees of w's kind.  While that goes
 * on, so does the walk; else the block's warps are asked.  The own rows come first,
 * then the context. */
template <class C>
static __device__ __forceinline__ struct walk walk_on(struct walk w, int4 reach,
                                                      const struct lane &l)
{
    w.key += C::KEYS;
    if (w.key >= reach.x && w.key < reach.y)
        return w;
    w.key = first_seen<C>(w.kind, w.key, l);
    if (w.key == ATTN_NONE && w.kind > 0) {
        w.kind = 0;
        w.key = first_seen<C>(0, 0, l);
    }
    return w;
}

template <class C>
static __device__ __forceinline__ struct walk walk_start(const struct attn_args &x,
                                                         const struct lane &l)
{
    struct walk w = {x.kinds - 1, -C::KEYS};
    return walk_on<C>(w, make_int4(ATTN_NONE, 0, 0, 0), l);
}

/* query_begin fills the tables of the block's rows and readies the ring. */
template <class C>
static __device__ __forceinline__ void query_begin(const struct attn_args &x, int first,
                                                   int warp, const struct lane &l)
{
    struct query_smem<C> *smem = query_space<C>();
    if (threadIdx.x == 0)
        ring_init(smem_base() + offsetof(struct query_smem<C>, bars), C::THREADS,
                  C::WARPS);
    int row = 16 * C::MT * warp + l.id % (16 * C::MT);
    int t = row_token(x, min(first + row, x.rows - 1));
    for (int kind = 0; kind < x.kinds; kind++) {
        int2 span = span_in_piece(x, kind, span_of(x, kind, t, first + row < x.rows));
        int4 reach = attn_reach(span);
        smem->span[kind][row] = span;
        if (l.id == 0)
            smem->reach[kind][warp] = reach;
    }
    __syncthreads();
}

/* query_copy_left begins the copy of the rows' left operands, where those stay in
 * shared memory. */
template <class C>
static __device__ __forceinline__ void query_copy_left(const struct attn_args &x, int g,
                                                       int first, const bf16 *from,
                                                       int which)
{
    constexpr int D = C::D, STEP = C::THREADS / (D / 8);
    int t = threadIdx.x;
    uint32_t to = smem_base() + offsetof(struct query_smem<C>, left) +
                  which * C::ROWS * 2 * D + copy_to<D>(t);
#pragma unroll 4
    for (int i = 0; i < C::ROWS; i += STEP) {
        size_t at_row = row_offset<D>(x, g, first + i + copy_row<D>(t));
        cp16(to + i * 2 * D, (const char *)from + at_row + t % (D / 8) * 16);
    }
}

/* query_copy begins the copy of the tile that w is at, as use n of the ring. */
template <class C>
static __device__ __forceinline__ void query_copy(const struct attn_args &x, int g,
                                                  struct walk w, int n)
{
    constexpr int D = C::D, TILE = C::KEYS * 2 * D;
    if (w.key == ATTN_NONE)
        return;
    const int t = threadIdx.x;
    const uint32_t bars = smem_base() + offsetof(struct query_smem<C>, bars);
    const uint32_t to = smem_base() + n % RING * (2 * TILE) + copy_to<D>(t);
    ring_wait_free(bars, n);
    copy_keys<D, C::KEYS, C::THREADS>(to, x.keys[w.kind], copy_from<D>(t, g),
                                      x.kv_bytes, t, w.key);
    ring_copied(bars, n);
}

/* hide sets the scores of 16 keys from `key` on to -inf where a row does not see one;
 * span is the table of this warp's rows. */
template <int MT>
static __device__ __forceinline__ void hide(float (&s)[MT][2][4], const int2 *span,
                                            int key, const struct lane &l)
{
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int2 v = span[16 * m + l.row + 8 * h];
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int k = key + 8 * n + l.col + i;
                    if (k < v.x || k >= v.y)
                        s[m][n][2 * h + i] = -INFINITY;
                }
        }
}

/* query_store writes the block's sums, times a factor a row, to rows of `to`. */
template <class C>
static __device__ __forceinline__ void query_store(
    const struct attn_args &x, int g, int first, int warp, const struct lane &l,
    bf16 *to, const float (&acc)[C::MT][C::D / 8][4], const float (&factor)[C::MT][2])
{
    constexpr int D = C::D;
    static_assert(C::ROWS * 2 * D <= RING * 2 * C::KEYS * 2 * D, "fits in the ring");
    const uint32_t rows = smem_base() + 16 * C::MT * warp * 2 * D;
    first += 16 * C::MT * warp;
    __syncthreads();
    stage_sums<D, C::MT>(rows, l, acc, factor);
#pragma unroll
    for (int i = 0; i < C::MT * D / 16; i++) {
        int row = first + staged_row<D>(l, i);
        if (row < x.rows)
            *(uint4 *)((char *)to + row_offset<D>(x, g, row) +
                       staged_chunk<D>(l) * 16) = staged<D>(rows, l, i);
    }
}

#endif
