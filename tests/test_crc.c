/* SPDX-License-Identifier: MIT */
/* test_crc.c - the three CRCs: check values, folding against single bytes, joining. */
#include <stdlib.h>
#include <string.h>

#include "../tools/fetch/crc.h"
#include "kit.h"
#include "rng.h"

enum { BYTES = 1100 };

static uint8_t *noise(void)
{
    static uint8_t p[BYTES];
    struct rng r = rng_new(7);
    for (int i = 0; i < BYTES; i++)
        p[i] = (uint8_t)rng_u32(&r);
    return p;
}

/* The catalogue's check values (reveng). */
START_TEST(check_values)
{
    static const char digits[] = "123456789";
    ck_assert_uint_eq(crc_add(CRC64NVME, 0, digits, 9), 0xae8b14860a799888);
    ck_assert_uint_eq(crc_add(CRC32C, 0, digits, 9), 0xe3069283);
    ck_assert_uint_eq(crc_add(CRC32, 0, digits, 9), 0xcbf43926);
    for (int k = CRC64NVME; k <= CRC32; k++)
        ck_assert_uint_eq(crc_add((enum crc)k, 0, "", 0), 0);
}
END_TEST

/* One byte at a time never folds, so all lengths are held against the tables. */
START_TEST(any_length_and_start)
{
    const uint8_t *p = noise();
    for (int k = CRC64NVME; k <= CRC32; k++)
        for (size_t from = 0; from < 3; from++) {
            uint64_t slow = 0;
            for (size_t n = 0; from + n < BYTES; n++) {
                ck_assert_uint_eq(crc_add((enum crc)k, 0, p + from, n), slow);
                slow = crc_add((enum crc)k, slow, p + from + n, 1);
            }
        }
}
END_TEST

START_TEST(joins)
{
    const uint8_t *p = noise();
    for (int k = CRC64NVME; k <= CRC32; k++) {
        enum crc kind = (enum crc)k;
        uint64_t all = crc_add(kind, 0, p, BYTES);
        for (size_t n = 0; n <= BYTES; n += 7) {
            uint64_t a = crc_add(kind, 0, p, n), b = crc_add(kind, 0, p + n, BYTES - n);
            ck_assert_uint_eq(crc_join(kind, a, b, BYTES - n), all);
            ck_assert_uint_eq(crc_add(kind, a, p + n, BYTES - n), all);
        }
    }
}
END_TEST

/* 2^40 zero bytes by doubling, which is the other way to get there. */
START_TEST(joins_what_is_long)
{
    for (int k = CRC64NVME; k <= CRC32; k++) {
        enum crc kind = (enum crc)k;
        uint64_t zeros = crc_add(kind, 0, "", 1), a = crc_add(kind, 0, "a", 1);
        for (int i = 0; i < 40; i++)
            zeros = crc_join(kind, zeros, zeros, 1ull << i);
        uint64_t half = crc_add(kind, 0, "", 1);
        for (int i = 0; i < 39; i++)
            half = crc_join(kind, half, half, 1ull << i);
        uint64_t once = crc_join(kind, a, zeros, 1ull << 40);
        uint64_t twice =
            crc_join(kind, crc_join(kind, a, half, 1ull << 39), half, 1ull << 39);
        ck_assert_uint_eq(once, twice);
        ck_assert_uint_ne(once, crc_join(kind, a, zeros, (1ull << 40) - 1));
    }
}
END_TEST

KIT_MAIN("crc", check_values, any_length_and_start, joins, joins_what_is_long)
