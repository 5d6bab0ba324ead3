/* SPDX-License-Identifier: MIT */
/* ints.c - one loop per width, written once. */
#include "ints.h"

#include <string.h>

static const struct {
    const char *name, *numpy;
    size_t size;
} types[INTS_TYPES] = {
    [INTS_U8] = {"u8", "uint8", 1},    [INTS_I8] = {"i8", "int8", 1},
    [INTS_U16] = {"u16", "uint16", 2}, [INTS_I16] = {"i16", "int16", 2},
    [INTS_U32] = {"u32", "uint32", 4}, [INTS_I32] = {"i32", "int32", 4},
    [INTS_U64] = {"u64", "uint64", 8}, [INTS_I64] = {"i64", "int64", 8},
};

size_t ints_size(enum ints_type t)
{
    return types[t].size;
}

static int same(const char *text, const char *name, size_t n)
{
    return strlen(text) == n && memcmp(text, name, n) == 0;
}

enum ints_type ints_named(const char *name, size_t n)
{
    for (int t = 1; t < INTS_TYPES; t++)
        if (same(types[t].name, name, n) || same(types[t].numpy, name, n))
            return (enum ints_type)t;
    return INTS_NONE;
}

/* DO(type, body) runs a body that loads numbers with GET(i). */
#define DO(T, BODY)                                                                    \
    {                                                                                  \
        typedef T number;                                                              \
        BODY                                                                           \
    }                                                                                  \
    break
#define EACH(TYPE, BODY)                                                               \
    switch (TYPE) {                                                                    \
    case INTS_U8:                                                                      \
        DO(uint8_t, BODY);                                                             \
    case INTS_I8:                                                                      \
        DO(int8_t, BODY);                                                              \
    case INTS_U16:                                                                     \
        DO(uint16_t, BODY);                                                            \
    case INTS_I16:                                                                     \
        DO(int16_t, BODY);                                                             \
    case INTS_U32:                                                                     \
        DO(uint32_t, BODY);                                                            \
    case INTS_I32:                                                                     \
        DO(int32_t, BODY);                                                             \
    case INTS_U64:                                                                     \
        DO(uint64_t, BODY);                                                            \
    case INTS_I64:                                                                     \
        DO(int64_t, BODY);                                                             \
    default:                                                                           \
        break;                                                                         \
    }
#define LOAD(v, i) memcpy(&(v), at + (size_t)(i) * sizeof(number), sizeof(number))

int64_t ints_get(const struct ints *a, int64_t i)
{
    const char *at = a->at;
    int64_t value = 0;
    EACH(a->type, {
        number v;
        LOAD(v, i);
        value = (int64_t)v;
    })
    return a->type == INTS_U64 && value < 0 ? INT64_MAX : value;
}

int64_t ints_narrow(int32_t *out, const struct ints *a, int64_t below)
{
    const char *at = a->at;
    int64_t outside = 0;
    EACH(a->type, {
        for (int64_t i = 0; i < a->n; i++) {
            number v;
            LOAD(v, i);
            outside += (uint64_t)v >= (uint64_t)below; // negative ones are large
            out[i] = (int32_t)v;
        }
    })
    if (outside == 0)
        return a->n;
    int64_t i = 0;
    for (int64_t v = 0; v >= 0 && v < below; i++)
        v = ints_get(a, i);
    return i - 1;
}

/* The loops below see only whether there is something wrong; where it is, is looked for
 * when there is. */

int64_t ints_bits(uint8_t *out, const struct ints *a)
{
    const char *at = a->at;
    uint64_t odd = 0;
    EACH(a->type, {
        number all = 0;
        for (int64_t i = 0; i < a->n; i++) {
            number v;
            LOAD(v, i);
            all |= v;
            out[i] = (uint8_t)v;
        }
        odd = (uint64_t)all & ~1ull;
    })
    int64_t i = odd ? 0 : a->n;
    while (i < a->n && (uint64_t)ints_get(a, i) <= 1)
        i++;
    return i;
}

int64_t ints_marks(uint8_t *out, const struct ints *a, const int32_t *want,
                   int64_t none)
{
    const char *at = a->at;
    int odd = 0;
    EACH(a->type, {
        for (int64_t i = 0; i < a->n; i++) {
            number v;
            LOAD(v, i);
            out[i] = (int64_t)v != none;
            odd |= (int64_t)v != none && (int64_t)v != want[i];
        }
    })
    int64_t i = odd ? 0 : a->n;
    while (i < a->n && (!out[i] || ints_get(a, i) == want[i]))
        i++;
    return i;
}

int64_t ints_differs(const struct ints *a, int64_t value)
{
    const char *at = a->at;
    int odd = 0;
    EACH(a->type, {
        for (int64_t i = 0; i < a->n; i++) {
            number v;
            LOAD(v, i);
            odd |= (int64_t)v != value;
        }
    })
    int64_t i = odd ? 0 : a->n;
    while (i < a->n && ints_get(a, i) == value)
        i++;
    return i;
}

int64_t ints_find(const struct ints *a, int64_t from, int64_t value)
{
    const char *at = a->at;
    EACH(a->type, {
        number want = (number)value;
        if ((int64_t)want != value)
            return a->n; // it does not fit the type
        for (int64_t i = from; i < a->n; i++) {
            number v;
            LOAD(v, i);
            if (v == want)
                return i;
        }
    })
    return a->n;
}
