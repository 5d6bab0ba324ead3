/* SPDX-License-Identifier: MIT */
/* num.c - small floats by their bit patterns; numbers as people write them.
 *
 * f8_e4m3: sign, 4 bits of exponent (bias 7), 3 of mantissa; S.1111.111 is NaN. */
#include "num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "err.h"

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

float num_f16_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) // subnormal: mantissa * 2^-24, exact in f32
        return from_bits(sign | to_bits((float)mantissa * 0x1p-24f));
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

float num_e4m3_f32(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80) << 24;
    uint32_t exponent = b >> 3 & 15, mantissa = b & 7;
    if ((b & 0x7f) == 0x7f)
        return from_bits(sign | 0x7fc00000u);
    if (exponent == 0)
        return from_bits(sign | to_bits((float)mantissa * 0x1p-9f));
    return from_bits(sign | (exponent + 120) << 23 | mantissa << 20);
}

uint8_t num_f32_e4m3(float f)
{
    uint32_t u = to_bits(f), sign = u >> 24 & 0x80;
    u &= 0x7fffffffu;
    float a = from_bits(u);
    if (u > 0x7f800000u)
        return (uint8_t)(sign | 0x7f);
    if (a >= 448)
        return (uint8_t)(sign | 0x7e);
    /* Below 2^-6 the grid is 2^-9, the last bit of a f32 near 2^14: the sum rounds to
     * it, and a carry lands on the first normal code. */
    if (a < 0x1p-6f)
        return (uint8_t)(sign | (to_bits(a + 0x1p14f) - to_bits(0x1p14f)));
    u += 0x7ffffu + (u >> 20 & 1);
    return (uint8_t)(sign | ((u >> 20) - (120u << 3)));
}

/* The factor of a suffix, 0 for an unknown one. */
static int64_t suffix_factor(const char *s)
{
    static const char letters[] = "KMGT";
    const char *at = *s ? strchr(letters, *s) : NULL;
    int64_t base = strcmp(s + 1, "iB") == 0 ? 1024 : 1000, factor = 1;
    if (!at || (base == 1000 && s[1]))
        return 0;
    for (const char *c = letters; c <= at; c++)
        factor *= base;
    return factor;
}

int num_parse_int(const char *text, int64_t *out)
{
    char *end;
    const char *digits = text + (*text == '-');
    if (!isdigit((unsigned char)*digits))
        return err_set(E_USAGE, "not an integer: \"%.60s\"", text);
    errno = 0;
    long long v = strtoll(text, &end, 10);
    int64_t factor = *end ? suffix_factor(end) : 1, scaled;
    if (factor == 0)
        return err_set(E_USAGE, "not an integer: \"%.60s\"", text);
    if (errno == ERANGE || __builtin_mul_overflow((int64_t)v, factor, &scaled))
        return err_set(E_USAGE, "integer out of range: \"%.60s\"", text);
    *out = scaled;
    return 0;
}

int num_parse_real(const char *text, double *out)
{
    char *end;
    /* strtod also reads spaces, hexadecimal, "inf" and "nan". */
    bool plain = *text && strspn(text, "+-.0123456789eE") == strlen(text);
    double v = plain ? strtod(text, &end) : 0;
    if (!plain || end == text || *end)
        return err_set(E_USAGE, "not a number: \"%.60s\"", text);
    if (!isfinite(v))
        return err_set(E_USAGE, "number out of range: \"%.60s\"", text);
    *out = v;
    return 0;
}

int num_parse_part(const char *text, int *part, int *parts)
{
    char *slash, *end;
    long i = strtol(text, &slash, 10);
    long n = *slash == '/' && isdigit((unsigned char)slash[1])
                 ? strtol(slash + 1, &end, 10)
                 : 0;
    if (!isdigit((unsigned char)*text) || n < 1 || *end || i >= n || n > 1000000)
        return err_set(E_USAGE, "not a part i/n with 0 <= i < n: \"%.60s\"", text);
    *part = (int)i;
    *parts = (int)n;
    return 0;
}

char *num_real(char *out, size_t size, double v)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    return out;
}

static char *scaled(char *out, size_t size, double v, double base, const char *unit[])
{
    int i = 0;
    /* What would print as 1000.00 or 1024.00 is one of the next unit. */
    while (unit[i + 1] && fabs(v) >= base - 0.005) {
        v /= base;
        i++;
    }
    snprintf(out, size, i ? "%.2f%s" : "%.0f%s", v, unit[i]);
    return out;
}

char *num_bytes(char *out, size_t size, double bytes)
{
    static const char *unit[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", NULL};
    return scaled(out, size, bytes, 1024, unit);
}

char *num_count(char *out, size_t size, double count)
{
    static const char *unit[] = {"", " K", " M", " G", " T", " P", NULL};
    return scaled(out, size, count, 1000, unit);
}
