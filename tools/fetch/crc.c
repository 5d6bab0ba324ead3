/* SPDX-License-Identifier: MIT */
/* crc.c - one code for three polynomials, all of them reflected: bit 0 of a byte is the
 * highest power.
 *
 * Folding: 16 bytes are a polynomial L x^64 + H of degree 127.  Moving them D bits
 * ahead multiplies by x^D, so L (x^(64+D) mod P) + H (x^D mod P), two carry-less
 * products of 64 bits, may be added to the 16 bytes that stand there.  A product of
 * reflected factors comes out times x, hence the powers below are smaller by one.  The
 * last 16 bytes and what follows them go through the tables. */
#include "crc.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { LANES = 4, LANE = 16, BLOCK = LANES * LANE, WIDE = 4 * BLOCK };

static struct kind {
    uint64_t poly, ones; // the polynomial, reflected; width ones
    int width;
    uint64_t table[8][256]; // [k][b]: byte b followed by k zero bytes
    uint64_t far[2];        // x^(64+D-1), x^(D-1) for D = BLOCK bytes
    uint64_t near[2];       // for D = LANE bytes
    uint64_t wide[2];       // for D = WIDE bytes
} kinds[] = {
    [CRC64NVME] = {.poly = 0x9a6c9329ac4bc9b5, .ones = ~0ull, .width = 64},
    [CRC32C] = {.poly = 0x82f63b78, .ones = 0xffffffff, .width = 32},
    [CRC32] = {.poly = 0xedb88320, .ones = 0xffffffff, .width = 32},
};
static bool folds, folds_wide;

/* a * x mod P */
static uint64_t times_x(const struct kind *k, uint64_t a)
{
    return a & 1 ? a >> 1 ^ k->poly : a >> 1;
}

static uint64_t one(const struct kind *k)
{
    return 1ull << (k->width - 1);
}

/* x^n mod P, the constant term at bit 63 as the products want it. */
static uint64_t power(const struct kind *k, int n)
{
    uint64_t a = one(k);
    while (n-- > 0)
        a = times_x(k, a);
    return a << (64 - k->width);
}

static void make_tables(struct kind *k)
{
    for (unsigned b = 0; b < 256; b++) {
        uint64_t a = b;
        for (int i = 0; i < 8; i++)
            a = times_x(k, a);
        k->table[0][b] = a;
    }
    for (int i = 1; i < 8; i++)
        for (unsigned b = 0; b < 256; b++) {
            uint64_t a = k->table[i - 1][b];
            k->table[i][b] = k->table[0][a & 0xff] ^ a >> 8;
        }
    for (int i = 0; i < 2; i++) {
        k->far[i] = power(k, 8 * BLOCK - 1 + (i ? 0 : 64));
        k->near[i] = power(k, 8 * LANE - 1 + (i ? 0 : 64));
        k->wide[i] = power(k, 8 * WIDE - 1 + (i ? 0 : 64));
    }
}

static void begin(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        make_tables(&kinds[i]);
    __builtin_cpu_init();
    folds = __builtin_cpu_supports("pclmul");
    folds_wide =
        folds && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

static const struct kind *kind_of(enum crc kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    return &kinds[kind];
}

static uint64_t by_tables(const struct kind *k, uint64_t a, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t x;
        memcpy(&x, p, 8);
        x ^= a;
        a = 0;
        for (int i = 0; i < 8; i++)
            a ^= k->table[7 - i][x >> 8 * i & 0xff];
    }
    for (; n > 0; n--, p++)
        a = k->table[0][(a ^ *p) & 0xff] ^ a >> 8;
    return a;
}

__attribute__((target("pclmul"))) static inline __m128i ahead(__m128i a, __m128i by)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(a, by, 0x00),
                         _mm_clmulepi64_si128(a, by, 0x11));
}

/* n >= BLOCK; all but the last n % BLOCK bytes are taken. */
__attribute__((target("pclmul"))) static uint64_t by_folding(const struct kind *k,
                                                             uint64_t a,
                                                             const uint8_t *p, size_t n)
{
    const __m128i far = _mm_loadu_si128((const __m128i *)k->far),
                  near = _mm_loadu_si128((const __m128i *)k->near);
    __m128i lane[LANES];
    uint8_t rest[LANE];
    for (int i = 0; i < LANES; i++)
        lane[i] = _mm_loadu_si128((const __m128i *)(p + i * LANE));
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi64_si128((long long)a));
    for (p += BLOCK, n -= BLOCK; n >= BLOCK; p += BLOCK, n -= BLOCK)
        for (int i = 0; i < LANES; i++)
            lane[i] = _mm_xor_si128(ahead(lane[i], far),
                                    _mm_loadu_si128((const __m128i *)(p + i * LANE)));
    for (int i = 1; i < LANES; i++)
        lane[i] = _mm_xor_si128(ahead(lane[i - 1], near), lane[i]);
    _mm_storeu_si128((__m128i *)rest, lane[LANES - 1]);
    return by_tables(k, 0, rest, LANE);
}

/* n >= WIDE; all but the last n % WIDE bytes are taken: 32 at a time where by_folding
 * takes 16.  What is left of them is folded as if it were bytes. */
__attribute__((target("avx2,vpclmulqdq,pclmul"))) static uint64_t by_wide_folding(
    const struct kind *k, uint64_t a, const uint8_t *p, size_t n)
{
    enum { AT_ONCE = 32 };
    const __m256i by =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)k->wide));
    __m256i lane[WIDE / AT_ONCE];
    uint8_t rest[WIDE];
    for (int i = 0; i < WIDE / AT_ONCE; i++)
        lane[i] = _mm256_loadu_si256((const __m256i *)(p + i * AT_ONCE));
    lane[0] = _mm256_xor_si256(lane[0],
                               _mm256_zextsi128_si256(_mm_cvtsi64_si128((long long)a)));
    for (p += WIDE, n -= WIDE; n >= WIDE; p += WIDE, n -= WIDE)
        for (int i = 0; i < WIDE / AT_ONCE; i++) {
            __m256i low = _mm256_clmulepi64_epi128(lane[i], by, 0x00),
                    high = _mm256_clmulepi64_epi128(lane[i], by, 0x11),
                    here = _mm256_loadu_si256((const __m256i *)(p + i * AT_ONCE));
            lane[i] = _mm256_xor_si256(_mm256_xor_si256(low, high), here);
        }
    for (int i = 0; i < WIDE / AT_ONCE; i++)
        _mm256_storeu_si256((__m256i *)(rest + i * AT_ONCE), lane[i]);
    return by_folding(k, 0, rest, WIDE);
}

uint64_t crc_add(enum crc kind, uint64_t value, const void *p, size_t n)
{
    const struct kind *k = kind_of(kind);
    const uint8_t *from = p;
    uint64_t a = value ^ k->ones;
    if (folds_wide && n >= WIDE) {
        a = by_wide_folding(k, a, from, n);
        from += n - n % WIDE;
        n %= WIDE;
    }
    if (folds && n >= BLOCK) {
        a = by_folding(k, a, from, n);
        from += n - n % BLOCK;
        n %= BLOCK;
    }
    return by_tables(k, a, from, n) ^ k->ones;
}

/* a * b mod P */
static uint64_t product(const struct kind *k, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    for (uint64_t bit = one(k); bit; bit >>= 1, b = times_x(k, b))
        if (a & bit)
            sum ^= b;
    return sum;
}

uint64_t crc_join(enum crc kind, uint64_t a, uint64_t b, uint64_t n)
{
    const struct kind *k = kind_of(kind);
    uint64_t shift = one(k), square = one(k) >> 8; // x^0, x^8
    for (; n > 0; n >>= 1, square = product(k, square, square))
        if (n & 1)
            shift = product(k, shift, square);
    return product(k, a, shift) ^ b;
}
