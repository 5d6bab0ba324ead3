/* SPDX-License-Identifier: MIT */
/* panel.c - packing: a copy with conversion, and a transposition where the columns of
 * B are rows in memory.  Bf16 and f32 become real exactly. */
#include "panel.h"

#include "loop.h"
#include "num.h"

#include <immintrin.h>
#include <string.h>

/* `type` is a constant wherever these are inlined. */
#define INLINE static inline __attribute__((always_inline))

INLINE real element(const void *data, int64_t i, const enum dtype type)
{
    switch (type) {
    case DT_BF16:
        return num_bf16_f32(((const uint16_t *)data)[i]);
    case DT_F64:
        return (real)((const double *)data)[i];
    default:
        return ((const float *)data)[i];
    }
}

INLINE __m128 four_floats(const void *data, int64_t i, const enum dtype type)
{
    if (type != DT_BF16)
        return _mm_loadu_ps((const float *)data + i);
    __m128i half = _mm_loadl_epi64((const __m128i_u *)((const uint16_t *)data + i));
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(half), 16));
}

/* turn_floats packs steps [0, n - n % 4) of 16 columns that are rows in memory, in
 * squares of 4 x 4: twice as fast as one by one.  Returns how many steps. */
INLINE int64_t turn_floats(float *out, const void *data, int64_t at, int64_t stride,
                           int64_t n, const enum dtype type)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int v = 0; v < PANEL; v += 4) {
            int64_t from = at + v * stride + i;
            __m128 r0 = four_floats(data, from, type);
            __m128 r1 = four_floats(data, from + stride, type);
            __m128 r2 = four_floats(data, from + 2 * stride, type);
            __m128 r3 = four_floats(data, from + 3 * stride, type);
            _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
            float *to = out + i * PANEL + v;
            _mm_storeu_ps(to, r0);
            _mm_storeu_ps(to + PANEL, r1);
            _mm_storeu_ps(to + 2 * PANEL, r2);
            _mm_storeu_ps(to + 3 * PANEL, r3);
        }
    return i;
}

/* turn packs one panel of columns that are rows in memory, `at` the first element. */
INLINE void turn(real *out, const void *data, int64_t at, int64_t stride, int64_t n,
                 int cols, const enum dtype type)
{
    int64_t i = 0;
    if (sizeof(real) == sizeof(float) && cols == PANEL)
        i = turn_floats((float *)(void *)out, data, at, stride, n, type);
    for (; i < n; i++)
        for (int v = 0; v < cols; v++)
            out[i * PANEL + v] = element(data, at + v * stride + i, type);
}

/* copy packs one panel of steps that are `stride` apart. */
INLINE void copy(real *out, const void *data, int64_t at, int64_t stride, int64_t n,
                 int cols, const enum dtype type)
{
    if (cols == PANEL) { // a constant count: vectors
        for (int64_t i = 0; i < n; i++)
            for (int v = 0; v < PANEL; v++)
                out[i * PANEL + v] = element(data, at + i * stride + v, type);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int v = 0; v < cols; v++)
            out[i * PANEL + v] = element(data, at + i * stride + v, type);
}

INLINE void fill(real *out, const struct panel_from *b, int64_t p, int64_t n, int64_t j,
                 const enum dtype type)
{
    int cols = b->cols - j < PANEL ? (int)(b->cols - j) : PANEL;
    if (b->order == PANEL_READY) {
        copy(out, b->data, j * b->depth + p * PANEL, PANEL, n, PANEL, type);
        return;
    }
    if (cols < PANEL)
        memset(out, 0, (size_t)(n * PANEL) * sizeof *out);
    if (b->order == PANEL_COLS)
        turn(out, b->data, j * b->stride + p, b->stride, n, cols, type);
    else
        copy(out, b->data, p * b->stride + j, b->stride, n, cols, type);
}

static void fill_any(real *out, const struct panel_from *b, int64_t p, int64_t n,
                     int64_t j)
{
    switch (b->type) {
    case DT_BF16:
        fill(out, b, p, n, j, DT_BF16);
        break;
    case DT_F64:
        fill(out, b, p, n, j, DT_F64);
        break;
    default:
        fill(out, b, p, n, j, DT_F32);
    }
}

void panel_get(struct tile *t, const struct panel_from *b, int64_t p, int64_t j,
               real *room, bool once)
{
    t->b_bf16 = b->order == PANEL_READY && b->type == DT_BF16 && once;
    if (t->b_bf16 || (b->order == PANEL_READY && b->type == DT_REAL)) {
        size_t at = (size_t)(j * b->depth + p * PANEL);
        t->b = (const char *)b->data + at * dtype_size(b->type);
        t->b_apart = b->depth * PANEL;
        return;
    }
    t->b = room;
    t->b_apart = t->depth * PANEL;
    for (int k = 0; k < t->panels; k++)
        fill_any(room + k * t->b_apart, b, p, t->depth, j + k * PANEL);
}

/* ---- panels to keep ---- */

size_t cpu_pack_bytes(const struct dev *d, struct tensor w)
{
    (void)d;
    int64_t panels = (w.dim[0] + PANEL - 1) / PANEL;
    return (size_t)(panels * PANEL * w.dim[1]) * dtype_size(w.type);
}

/* Each case is the same loop over elements of another size; values are not touched. */
#define PACK(type)                                                                     \
    do {                                                                               \
        const type *from = (const type *)w->data + j * depth;                          \
        type *to = (type *)p->data + j * depth;                                        \
        for (int64_t i = 0; i < depth; i++)                                            \
            for (int64_t v = 0; v < PANEL; v++)                                        \
                to[i * PANEL + v] = v < cols ? from[v * depth + i] : 0;                \
    } while (0)

struct pack {
    struct tensor p, w;
};

static int pack_panels(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct pack *k = ctx;
    const struct tensor *p = &k->p, *w = &k->w;
    int64_t depth = w->dim[1];
    (void)worker;
    for (int64_t j = begin * PANEL; j < end * PANEL; j += PANEL) {
        int64_t cols = w->dim[0] - j;
        if (dtype_size(w->type) == 2)
            PACK(uint16_t);
        else if (dtype_size(w->type) == 4)
            PACK(uint32_t);
        else
            PACK(uint64_t);
    }
    return 0;
}

void cpu_pack(struct dev *d, struct tensor p, struct tensor w)
{
    struct pack k = {p, w};
    int64_t panels = (w.dim[0] + PANEL - 1) / PANEL;
    loop_rows(d, panels, PANEL * w.dim[1], pack_panels, &k);
}
