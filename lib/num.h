/* SPDX-License-Identifier: MIT */
/* num.h - number formats: bf16, f16, f8_e4m3, and numbers as people write them. */
#ifndef NUM_H
#define NUM_H

#include <stdint.h>
#include <stddef.h>
#include <string.h>

static inline float num_bf16_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* num_f32_bf16 rounds to nearest, ties to even; NaN stays NaN (quiet). */
static inline uint16_t num_f32_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

float num_f16_f32(uint16_t h);

/* f8_e4m3 (OCP 8-bit formats, "fn"): largest finite 448, no infinity.  num_f32_e4m3
 * rounds to nearest even and saturates at +-448; NaN stays NaN. */
float num_e4m3_f32(uint8_t b);
uint8_t num_f32_e4m3(float f);

/* num_parse_int reads a whole string as a decimal integer with an optional K, M, G, T
 * (powers of 1000) or KiB, MiB, GiB, TiB; num_parse_real reads a finite real.  Anything
 * else is E_USAGE with the text in the message. */
int num_parse_int(const char *text, int64_t *out);
int num_parse_real(const char *text, double *out);

/* num_parse_part reads "i/n" with 0 <= i < n <= 1,000,000, the share of a tool that is
 * run n times; else E_USAGE. */
int num_parse_part(const char *text, int *part, int *parts);

/* num_real prints the shortest decimal that reads back equal into out (at least 32
 * bytes); num_bytes and num_count print "1.23 GiB", "4.56 M" (at least 16 bytes).  All
 * return out. */
char *num_real(char *out, size_t size, double v);
char *num_bytes(char *out, size_t size, double bytes);
char *num_count(char *out, size_t size, double count);

#endif
