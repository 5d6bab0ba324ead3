/* SPDX-License-Identifier: MIT */
/* emumma.h - what mma.cuh has, one function per instruction, on a CPU. */
#ifndef MMA_CUH // mma.cuh is left out
#define MMA_CUH

#define dynamic_smem ((unsigned char *)emu_dynamic())

static inline uint32_t smem_base()
{
    return EMU_SMEM_BASE;
}

/* ---- copies ---- */

static inline void cp16(uint32_t to, const void *from)
{
    emu_copy(to, from, 16, false);
}

static inline void cp16(uint32_t to, const void *from, bool real)
{
    emu_copy(to, from, 16, !real);
}

static inline void cp8(uint32_t to, const void *from, bool real)
{
    emu_copy(to, from, 8, !real);
}

static inline void cp4(uint32_t to, const void *from, bool real)
{
    emu_copy(to, from, 4, !real);
}

/* ---- tensor cores ---- */

struct emu_pieces {
    uint32_t r[4], at;
};

template <bool TRANS> static void emu_load_pieces(struct emu_slot *slot)
{
    struct emu_pieces *p[EMU_LANES];
    uint16_t piece[4][8][8];
    for (int l = 0; l < EMU_LANES; l++)
        p[l] = (struct emu_pieces *)slot[l].bytes;
    for (int l = 0; l < EMU_LANES; l++)
        memcpy(piece[l / 8][l % 8], emu_smem(p[l]->at, 16), 16);
    for (int l = 0; l < EMU_LANES; l++)
        for (int i = 0; i < 4; i++) {
            int row = l / 4, col = l % 4 * 2;
            uint32_t low = TRANS ? piece[i][col][row] : piece[i][row][col];
            uint32_t high = TRANS ? piece[i][col + 1][row] : piece[i][row][col + 1];
            p[l]->r[i] = low | high << 16;
        }
}

template <bool TRANS> static inline void emu_ldmatrix(uint32_t (&r)[4], uint32_t at)
{
    struct emu_pieces p = {{}, at};
    const struct emu_slot *slot = emu_meet(TRANS ? "ldmatrix.trans" : "ldmatrix", ~0u,
                                           &p, sizeof p, emu_load_pieces<TRANS>);
    memcpy(r, slot[emu_here.lane].bytes, 16);
}

static inline void ldmatrix(uint32_t (&r)[4], uint32_t at)
{
    emu_ldmatrix<false>(r, at);
}

static inline void ldmatrix_trans(uint32_t (&r)[4], uint32_t at)
{
    emu_ldmatrix<true>(r, at);
}

static inline float emu_low(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}

static inline float emu_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

struct emu_product {
    float d[4];
    uint32_t a[4], b[2];
};

static inline float emu_low_half(uint32_t pair)
{
    return num_f16_f32((uint16_t)pair);
}

static inline float emu_high_half(uint32_t pair)
{
    return num_f16_f32((uint16_t)(pair >> 16));
}

template <float LOW(uint32_t), float HIGH(uint32_t)>
static void emu_multiply(struct emu_slot *slot)
{
    float a[16][16], b[16][8], d[16][8];
    for (int l = 0; l < EMU_LANES; l++) {
        const struct emu_product *p = (const struct emu_product *)slot[l].bytes;
        int row = l / 4, col = l % 4 * 2;
        for (int i = 0; i < 4; i++) {
            a[row + 8 * (i & 1)][col + 8 * (i >> 1)] = LOW(p->a[i]);
            a[row + 8 * (i & 1)][col + 8 * (i >> 1) + 1] = HIGH(p->a[i]);
            d[row + 8 * (i >> 1)][col + (i & 1)] = p->d[i];
        }
        for (int i = 0; i < 2; i++) {
            b[col + 8 * i][row] = LOW(p->b[i]);
            b[col + 8 * i + 1][row] = HIGH(p->b[i]);
        }
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 8; j++)
                d[i][j] += a[i][k] * b[k][j];
    for (int l = 0; l < EMU_LANES; l++) {
        struct emu_product *p = (struct emu_product *)slot[l].bytes;
        for (int i = 0; i < 4; i++)
            p->d[i] = d[l / 4 + 8 * (i >> 1)][l % 4 * 2 + (i & 1)];
    }
}

static inline void emu_mma(const char *what, float (&d)[4], const uint32_t (&a)[4],
                           uint32_t b0, uint32_t b1,
                           void (*multiply)(struct emu_slot *))
{
    struct emu_product p = {
        {d[0], d[1], d[2], d[3]}, {a[0], a[1], a[2], a[3]}, {b0, b1}};
    const struct emu_slot *slot = emu_meet(what, ~0u, &p, sizeof p, multiply);
    memcpy(d, slot[emu_here.lane].bytes, 16);
}

static inline void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    emu_mma("mma", d, a, b0, b1, emu_multiply<emu_low, emu_high>);
}

static inline void mma_half(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                            uint32_t b1)
{
    emu_mma("mma_half", d, a, b0, b1, emu_multiply<emu_low_half, emu_high_half>);
}

static inline uint32_t emu_bf16(float x)
{
    return num_f32_bf16(x);
}

static inline uint32_t pack2(float low, float high)
{
    return emu_bf16(low) | emu_bf16(high) << 16;
}

static inline uint32_t pack2_half(float low, float high)
{
    return (uint32_t)_cvtss_sh(low, 0) | (uint32_t)_cvtss_sh(high, 0) << 16;
}

static inline float ex2(float x)
{
    return exp2f(x);
}

static inline int fresh_thread()
{
    return (int)threadIdx.x;
}

/* ---- barriers ---- */

static inline void pair_arrive(int id)
{
    emu_barrier(id, 64, false);
}

static inline void pair_wait(int id)
{
    emu_barrier(id, 64, true);
}

static inline void bar_init(uint32_t bar, int count)
{
    emu_bar_init(bar, count);
}

static inline void bar_arrive(uint32_t bar)
{
    emu_bar_arrive(bar);
}

static inline void bar_arrive_copied(uint32_t bar)
{
    emu_bar_arrive_copied(bar);
}

static inline void bar_wait(uint32_t bar, uint32_t parity)
{
    emu_bar_wait(bar, parity);
}

/* ---- shared memory by address ---- */

template <typename T> static inline T emu_read(uint32_t at)
{
    T v;
    memcpy(&v, emu_smem(at, sizeof v), sizeof v);
    return v;
}

static inline void st16(uint32_t at, const uint32_t (&v)[4])
{
    memcpy(emu_smem(at, 16), v, 16);
}

static inline void ld16(uint32_t (&v)[4], uint32_t at)
{
    memcpy(v, emu_smem(at, 16), 16);
}

static inline void st4(uint32_t at, uint32_t v)
{
    memcpy(emu_smem(at, 4), &v, 4);
}

static inline void ld_float2(float &x, float &y, uint32_t at)
{
    const float2 v = emu_read<float2>(at);
    x = v.x;
    y = v.y;
}

static inline int4 ld_int4(uint32_t at)
{
    return emu_read<int4>(at);
}

static inline int2 ld_int2(uint32_t at)
{
    return emu_read<int2>(at);
}

#endif
