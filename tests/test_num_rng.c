/* SPDX-License-Identifier: MIT */
/* test_num_rng.c - every 16- and 8-bit pattern, numbers as people write them, and the
 * published vectors of Philox. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kit.h"
#include "mem.h"
#include "num.h"
#include "rng.h"

/* The value of a small float by the definition of its format. */
static double defined(int code, int exponent_bits, int mantissa_bits, int bias)
{
    int m = code & ((1 << mantissa_bits) - 1);
    int e = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    double v = e == 0 ? ldexp(m, 1 - bias - mantissa_bits)
                      : ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -v : v;
}

START_TEST(f16_all)
{
    for (int h = 0; h < 65536; h++) {
        float got = num_f16_f32((uint16_t)h);
        bool special = (h >> 10 & 31) == 31;
        bool right = special && (h & 1023) ? isnan(got)
                     : special             ? isinf(got) && !!signbit(got) == h >> 15
                                           : got == (float)defined(h, 5, 10, 15) &&
                                     !!signbit(got) == h >> 15;
        if (!right)
            ck_abort_msg("%04x gives %g", h, (double)got);
    }
}
END_TEST

START_TEST(bf16_round_trip)
{
    for (int h = 0; h < 65536; h++) {
        float f = num_bf16_f32((uint16_t)h);
        uint16_t back = num_f32_bf16(f);
        if (isnan(f) ? !isnan(num_bf16_f32(back)) : back != h)
            ck_abort_msg("%04x comes back as %04x", h, back);
    }
    ck_assert_int_eq(num_f32_bf16(1.00390625f), 0x3f80); // half way: to even
    ck_assert_int_eq(num_f32_bf16(1.01171875f), 0x3f82);
    ck_assert_int_eq(num_f32_bf16(nextafterf(1.00390625f, 2)), 0x3f81);
    ck_assert_int_eq(num_f32_bf16(3.4e38f), 0x7f80); // beyond the largest: infinity
}
END_TEST

START_TEST(e4m3_all)
{
    for (int b = 0; b < 256; b++) {
        float got = num_e4m3_f32((uint8_t)b);
        if ((b & 127) == 127) {
            ck_assert(isnan(got));
            ck_assert(isnan(num_e4m3_f32(num_f32_e4m3(got))));
            continue;
        }
        ck_assert_float_eq(got, (float)defined(b, 4, 3, 7));
        ck_assert_int_eq(num_f32_e4m3(got), b);
    }
    ck_assert_float_eq(num_e4m3_f32(0x7e), 448);
}
END_TEST

/* Between neighbours: below the middle down, above it up, in the middle to even. */
START_TEST(e4m3_rounds_to_nearest_even)
{
    for (int b = 0; b < 126; b++) {
        float lo = num_e4m3_f32((uint8_t)b), hi = num_e4m3_f32((uint8_t)(b + 1));
        float middle = (lo + hi) / 2;
        for (int sign = 0; sign < 2; sign++) {
            float s = sign ? -1 : 1;
            int top = sign << 7;
            ck_assert_int_eq(num_f32_e4m3(s * middle), top | (b + (b & 1)));
            ck_assert_int_eq(num_f32_e4m3(s * nextafterf(middle, 0)), top | b);
            ck_assert_int_eq(num_f32_e4m3(s * nextafterf(middle, 1e9f)), top | (b + 1));
        }
    }
    for (float f = 448; f < 600; f++)
        ck_assert_int_eq(num_f32_e4m3(f), 0x7e); // saturates, also above the middle
    ck_assert_int_eq(num_f32_e4m3(1e30f), 0x7e);
    ck_assert_int_eq(num_f32_e4m3(-INFINITY), 0xfe);
    ck_assert_int_eq(num_f32_e4m3(1e-30f), 0);
    ck_assert_int_eq(num_f32_e4m3(-0.0f), 0x80);
}
END_TEST

START_TEST(parses_integers)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-12", -12},
                {"8K", 8000},
                {"3M", 3000000},
                {"2G", 2000000000},
                {"1T", 1000000000000},
                {"8KiB", 8192},
                {"1MiB", 1 << 20},
                {"3GiB", 3ll << 30},
                {"2TiB", 2ll << 40},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "x",
                                      "1x",
                                      "1k",
                                      "1Ki",
                                      "1KB",
                                      "--1",
                                      "+-1",
                                      "1.5",
                                      "0x1",
                                      "iB",
                                      "1iB",
                                      "-",
                                      "1e3",
                                      "K",
                                      "1KiBs",
                                      "1KK",
                                      "9223372036854775808",
                                      "9223372036854775807K",
                                      "-9300000000G"};
    int64_t v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        kit_ok(num_parse_int(good[i].text, &v));
        ck_assert_int_eq(v, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(num_parse_int(bad[i], &v), E_USAGE, bad[i]);
}
END_TEST

START_TEST(parses_reals)
{
    static const char *const bad[] = {"",      " 1",    "1 ",    "x",  "nan", "inf",
                                      "0x1p3", "1e999", "1.2.3", "1e", "-",   "."};
    double v;
    kit_ok(num_parse_real("2.5e-3", &v));
    ck_assert_double_eq(v, 2.5e-3);
    kit_ok(num_parse_real("-.5", &v));
    ck_assert_double_eq(v, -0.5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(num_parse_real(bad[i], &v), E_USAGE, bad[i]);
}
END_TEST

START_TEST(parses_parts)
{
    static const char *const bad[] = {"",     "1",    "1/",       "/2",   "2/2",
                                      "3/2",  "-1/2", "1/0",      " 0/2", "0/ 2",
                                      "0/2x", "a/b",  "0/2000000"};
    int i, n;
    kit_ok(num_parse_part("0/1", &i, &n));
    ck_assert(i == 0 && n == 1);
    kit_ok(num_parse_part("7/1000000", &i, &n));
    ck_assert(i == 7 && n == 1000000);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        kit_fails(num_parse_part(bad[k], &i, &n), E_USAGE, bad[k]);
}
END_TEST

START_TEST(prints_numbers)
{
    char s[32];
    ck_assert_str_eq(num_bytes(s, sizeof s, 0), "0 B");
    ck_assert_str_eq(num_bytes(s, sizeof s, 1023), "1023 B");
    ck_assert_str_eq(num_bytes(s, sizeof s, 1024), "1.00 KiB");
    ck_assert_str_eq(num_bytes(s, sizeof s, 1.23 * 1073741824), "1.23 GiB");
    ck_assert_str_eq(num_bytes(s, sizeof s, 1048575.9), "1.00 MiB");
    ck_assert_str_eq(num_count(s, sizeof s, 999), "999");
    ck_assert_str_eq(num_count(s, sizeof s, 4560000), "4.56 M");
    ck_assert_str_eq(num_count(s, sizeof s, 999999), "1.00 M");
    ck_assert_str_eq(num_real(s, sizeof s, 0.1), "0.1");
    ck_assert_str_eq(num_real(s, sizeof s, 1e-5), "1e-05");
    ck_assert_str_eq(num_real(s, sizeof s, 0.1 + 0.2), "0.30000000000000004");
    ck_assert_str_eq(num_real(s, sizeof s, 3), "3");
}
END_TEST

/* Random123's kat_vectors, philox4x32 10. */
START_TEST(philox_vectors)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } kat[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                {0xffffffff, 0xffffffff},
                {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
               {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xa4093822, 0x299f31d0},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (int i = 0; i < 3; i++) {
        uint32_t got[4];
        const uint32_t *c = kat[i].counter, *k = kat[i].key;
        rng_philox(got, (uint64_t)k[1] << 32 | k[0], (uint64_t)c[1] << 32 | c[0],
                   (uint64_t)c[3] << 32 | c[2]);
        kit_same("philox", got, kat[i].want, sizeof got);
    }
}
END_TEST

START_TEST(draws_are_a_function_of_key_and_counter)
{
    uint64_t a[] = {1, 2}, b[] = {2, 1}, c[] = {1, 2, 0};
    ck_assert_uint_eq(rng_key(a, 2), rng_key(a, 2));
    ck_assert_uint_ne(rng_key(a, 2), rng_key(b, 2));
    ck_assert_uint_ne(rng_key(a, 2), rng_key(c, 3));
    struct rng r = rng_new(rng_key(a, 2)), s = r;
    for (int i = 0; i < 9; i++)
        rng_u32(&r);
    s.next = 8;
    rng_u32(&s);
    ck_assert_uint_eq(rng_u32(&r), rng_u32(&s));
    uint32_t block[4];
    rng_philox(block, r.key, 2, 0);
    s.next = 9;
    ck_assert_uint_eq(rng_u32(&s), block[1]);
}
END_TEST

/* chi-square over n cells: mean n - 1, deviation sqrt(2 (n - 1)); 6 deviations. */
START_TEST(below_is_uniform)
{
    enum { CELLS = 7, DRAWS = 70000 };
    struct rng r = rng_new(11);
    int count[CELLS] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t v = rng_below(&r, CELLS);
        ck_assert_uint_lt(v, CELLS);
        count[v]++;
    }
    double chi = 0, want = (double)DRAWS / CELLS;
    for (int i = 0; i < CELLS; i++)
        chi += (count[i] - want) * (count[i] - want) / want;
    ck_assert_double_lt(chi, CELLS - 1 + 6 * sqrt(2.0 * (CELLS - 1)));
    ck_assert_uint_eq(rng_below(&r, 1), 0);
    /* Of 2^64 draws scaled to 3 * 2^62 values those divisible by 3 would come up twice
     * as often as the others, unless a quarter is rejected. */
    int thirds = 0;
    for (int i = 0; i < 9000; i++) {
        uint64_t v = rng_below(&r, (uint64_t)3 << 62);
        ck_assert_uint_lt(v, (uint64_t)3 << 62);
        thirds += v % 3 == 0;
    }
    ck_assert_double_lt(fabs(thirds - 3000.0), 6 * sqrt(2000));
}
END_TEST

START_TEST(normal_has_its_moments)
{
    enum { DRAWS = 200000 };
    struct rng r = rng_new(12);
    double sum[5] = {0};
    for (int i = 0; i < DRAWS; i++) {
        double v = rng_normal(&r), power = 1;
        for (int k = 1; k <= 4; k++)
            sum[k] += power *= v;
    }
    /* Deviations of the sample moments: sqrt(1, 2, 15, 96) / sqrt(n); 5 of them. */
    double unit = 5 / sqrt(DRAWS);
    ck_assert_double_lt(fabs(sum[1] / DRAWS), unit);
    ck_assert_double_lt(fabs(sum[2] / DRAWS - 1), sqrt(2) * unit);
    ck_assert_double_lt(fabs(sum[3] / DRAWS), sqrt(15) * unit);
    ck_assert_double_lt(fabs(sum[4] / DRAWS - 3), sqrt(96) * unit);
}
END_TEST

/* Against libm: the first draws of a key by the formula of Box and Muller. */
START_TEST(normal_is_box_muller)
{
    struct rng r = rng_new(13), s = r;
    for (int i = 0; i < 20000; i++) {
        double u = 1 - rng_real(&s), v = rng_real(&s);
        double want = sqrt(-2 * log(u)) * cos(6.283185307179586477 * v);
        ck_assert_double_lt(fabs(rng_normal(&r) - want), 1e-14);
    }
}
END_TEST

START_TEST(shuffle_permutes)
{
    int64_t index[50], first[50];
    bool seen[50] = {0};
    for (int i = 0; i < 50; i++)
        index[i] = i;
    struct rng r = rng_new(14);
    rng_shuffle(&r, index, 50);
    int moved = 0;
    for (int i = 0; i < 50; i++) {
        ck_assert(!seen[index[i]]);
        seen[index[i]] = true;
        moved += index[i] != i;
        first[i] = i;
    }
    ck_assert_int_gt(moved, 40);
    r = rng_new(14);
    rng_shuffle(&r, first, 50);
    kit_same("shuffle", first, index, sizeof first);
    rng_shuffle(&r, NULL, 0);
}
END_TEST

/* Every order of four equally often: chi-square over 24 cells, 6 deviations. */
START_TEST(shuffle_is_uniform)
{
    enum { DRAWS = 24000 };
    int count[256] = {0};
    struct rng r = rng_new(15);
    double chi = 0, want = DRAWS / 24.0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t x[4] = {0, 1, 2, 3};
        rng_shuffle(&r, x, 4);
        count[x[0] << 6 | x[1] << 4 | x[2] << 2 | x[3]]++;
    }
    for (int i = 0; i < 256; i++)
        if (count[i])
            chi += (count[i] - want) * (count[i] - want) / want;
    ck_assert_double_lt(chi, 23 + 6 * sqrt(46));
}
END_TEST

KIT_MAIN("num, rng", f16_all, bf16_round_trip, e4m3_all, e4m3_rounds_to_nearest_even,
         parses_integers, parses_reals, parses_parts, prints_numbers, philox_vectors,
         draws_are_a_function_of_key_and_counter, below_is_uniform,
         normal_has_its_moments, normal_is_box_muller, shuffle_permutes,
         shuffle_is_uniform)
