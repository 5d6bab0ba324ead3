/* SPDX-License-Identifier: MIT */
/* scan.c - one pass over the bytes of a record, without a tree; lists of numbers 8
 * bytes at a time.
 *
 * Every step returns where it stopped, or NULL for "not an ordinary record".  The byte
 * behind the record ends every number and text, so loops need no bound of their own. */
#include "scan.h"

#include <stdbool.h>
#include <string.h>

#include "err.h"
#include "json.h"

enum { KEYS = 16, DIGITS = 18 };

enum met { NOTHING, MASK, LABELS };

/* What has been met of a record. */
struct scan {
    int32_t *ids;            // in place; room for a number in every second byte
    uint8_t *mask;           // loss_mask, in place
    int32_t *labels;         // in scratch
    int32_t *rest;           // any other list, in scratch
    const char *end;         // of the record
    int64_t n, masked, ones; // items of ids, mask and attention_mask, -1: not met
    enum met met;            // what mask is
    int64_t vocab;
    const char *key[KEYS]; // met so far, to find one given twice
    size_t length[KEYS];
    int keys;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* A whole number of at most DIGITS digits, as JSON writes it. */
static const char *number(const char *p, int64_t *out)
{
    bool negative = *p == '-';
    p += negative;
    const char *begin = p;
    int64_t v = 0;
    for (; is_digit(*p) && p - begin < DIGITS; p++)
        v = v * 10 + (*p - '0');
    if (p == begin || is_digit(*p) || (*begin == '0' && p - begin > 1) || *p == '.' ||
        *p == 'e' || *p == 'E')
        return NULL;
    *out = negative ? -v : v;
    return p;
}

/* ---- lists ---- */

#define EVERY(byte) (0x0101010101010101u * (byte))

static uint64_t eight(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* The number in the top n (1 .. 7) of 8 bytes, digits less '0', first digit lowest:
 * pairs of digits, then pairs of these, in two multiplications. */
static uint32_t join(uint64_t digits, int n)
{
    uint64_t w = digits << (64 - 8 * n);
    w = w * 10 + (w >> 8);
    uint64_t even = (w & 0x000000ff000000ff) * (100 + (1000000ull << 32));
    uint64_t odd = (w >> 16 & 0x000000ff000000ff) * (1 + (10000ull << 32));
    return (uint32_t)((even + odd) >> 32);
}

/* As many numbers as can be taken 8 bytes at a time, each with a comma behind it, and
 * either all with a space too or none, as the first: so no branch and no address waits
 * for more than where a number ends.  What remains begins with a number, perhaps behind
 * space, if it is a list at all. */
static const char *run(const struct scan *s, const char *p, int32_t **out, int64_t low,
                       int64_t high)
{
    int32_t *to = *out;
    const char *comma = memchr(p, ',', (size_t)(s->end - p));
    int gap = comma && comma[1] == ' ' ? 2 : 1;
    while (s->end - p >= 16) {
        uint64_t digits = eight(p) ^ EVERY('0');
        /* the top bit of the first byte that is no digit, and perhaps of later ones */
        uint64_t stop = ((digits + EVERY(0x76)) | digits) & EVERY(0x80);
        int n = stop ? __builtin_ctzll(stop) >> 3 : 0;
        if (n == 0 || ((digits & 0xff) == 0 && n > 1) || p[n] != ',' ||
            (gap == 2 && p[n + 1] != ' '))
            break;
        int64_t v = join(digits, n);
        if (v < low || v >= high)
            break;
        *to++ = (int32_t)v;
        p += n + gap;
    }
    *out = to;
    return p;
}

/* The same for a list of 0 and 1, which come several to 8 bytes. */
static const char *bit_run(const struct scan *s, const char *p, uint8_t **out)
{
    static const uint64_t tight = 0x2c302c302c302c30, // 0,0,0,0,
        loose = 0x0000202c30202c30,                   // 0, 0,
        loose_bytes = 0x0000ffffffffffff;
    uint8_t *to = *out;
    for (; s->end - p >= 8; p += 8) {
        uint64_t w = eight(p) ^ tight;
        if (w & ~0x0001000100010001ull)
            break;
        w |= w >> 8;
        uint32_t four = (uint32_t)((w & 0xffff) | (w >> 16 & 0xffff0000));
        memcpy(to, &four, sizeof four);
        to += 4;
    }
    for (; s->end - p >= 8; p += 6) {
        uint64_t w = (eight(p) ^ loose) & loose_bytes;
        if (w & ~0x0000000001000001ull)
            break;
        *to++ = (uint8_t)w;
        *to++ = (uint8_t)(w >> 24);
    }
    *out = to;
    return p;
}

/* What is between two items: 1, or 0 behind the last, or -1 for neither. */
static int between(const char **p)
{
    const char *q = skip_space(*p);
    if (*q != ',' && *q != ']')
        return -1;
    *p = *q == ',' ? skip_space(q + 1) : q + 1;
    return *q == ',';
}

/* A list of whole numbers of [low, high), from its bracket on. */
static const char *list(const struct scan *s, const char *p, int32_t *out, int64_t *n,
                        int64_t low, int64_t high)
{
    int32_t *to = out;
    int more = 1;
    p = skip_space(p + 1);
    if (*p == ']')
        more = 0, p++;
    while (more > 0) {
        int64_t v;
        p = skip_space(run(s, p, &to, low, high));
        p = number(p, &v);
        if (!p || v < low || v >= high)
            return NULL;
        *to++ = (int32_t)v;
        more = between(&p);
    }
    *n = to - out;
    return more < 0 ? NULL : p;
}

/* A list of 0 and 1. */
static const char *bit_list(const struct scan *s, const char *p, uint8_t *out,
                            int64_t *n)
{
    uint8_t *to = out;
    int more = 1;
    p = skip_space(p + 1);
    if (*p == ']')
        more = 0, p++;
    while (more > 0) {
        int64_t v;
        p = skip_space(bit_run(s, p, &to));
        p = number(p, &v);
        if (!p || v < 0 || v > 1)
            return NULL;
        *to++ = (uint8_t)v;
        more = between(&p);
    }
    *n = to - out;
    return more < 0 ? NULL : p;
}

/* ---- values ---- */

/* The end of a text, from its opening quote on; escapes by number are left to jansson.
 */
static const char *text(const char *p)
{
    for (p++; *p != '"';) {
        if ((unsigned char)*p < 0x20) {
            return NULL;
        } else if (*p == '\\') {
            if (!p[1] || !strchr("\"\\/bfnrt", p[1]))
                return NULL;
            p += 2;
        } else if ((unsigned char)*p < 0x80) {
            p++;
        } else {
            int n = json_utf8_length(p);
            if (n == 0)
                return NULL;
            p += n;
        }
    }
    return p + 1;
}

static const char *word(const char *p, const char *w)
{
    size_t n = strlen(w);
    return strncmp(p, w, n) == 0 ? p + n : NULL;
}

/* A value that does not matter. */
static const char *skip_value(struct scan *s, const char *p)
{
    int64_t ignored;
    switch (*p) {
    case '"':
        return text(p);
    case '[':
        return list(s, p, s->rest, &ignored, INT32_MIN, INT32_MAX);
    case 't':
        return word(p, "true");
    case 'f':
        return word(p, "false");
    case 'n':
        return word(p, "null");
    default:
        return number(p, &ignored);
    }
}

static bool is_key(const struct scan *s, const char *name)
{
    size_t n = s->length[s->keys - 1];
    return strlen(name) == n && memcmp(s->key[s->keys - 1], name, n) == 0;
}

static const char *mask(struct scan *s, const char *p, enum met met)
{
    if (s->met != NOTHING) // which of two counts is for the strict way to say
        return NULL;
    s->met = met;
    return met == MASK ? bit_list(s, p, s->mask, &s->masked)
                       : list(s, p, s->labels, &s->masked, -100, s->vocab);
}

static const char *value(struct scan *s, const char *p)
{
    bool ids = is_key(s, "input_ids"), labels = is_key(s, "labels");
    bool bits = is_key(s, "loss_mask") || is_key(s, "assistant_mask") ||
                is_key(s, "assistant_masks");
    bool attention = is_key(s, "attention_mask");
    if ((ids || labels || bits || attention) && *p != '[')
        return NULL;
    if (ids)
        return list(s, p, s->ids, &s->n, 0, s->vocab);
    if (labels)
        return mask(s, p, LABELS);
    if (bits)
        return mask(s, p, MASK);
    if (attention)
        return list(s, p, s->rest, &s->ones, 1, 2);
    return skip_value(s, p);
}

/* A key, which is plain ASCII and new, up to its value. */
static const char *key(struct scan *s, const char *p)
{
    const char *begin = p + 1, *end = begin;
    if (*p != '"' || s->keys == KEYS)
        return NULL;
    while (*end >= 0x20 && *end < 0x7f && *end != '"' && *end != '\\')
        end++;
    if (*end != '"')
        return NULL;
    size_t n = (size_t)(end - begin);
    for (int k = 0; k < s->keys; k++)
        if (s->length[k] == n && memcmp(s->key[k], begin, n) == 0)
            return NULL;
    s->key[s->keys] = begin;
    s->length[s->keys++] = n;
    p = skip_space(end + 1);
    return *p == ':' ? skip_space(p + 1) : NULL;
}

static const char *object(struct scan *s, const char *p)
{
    p = skip_space(p);
    if (*p != '{')
        return NULL;
    do {
        p = key(s, skip_space(p + 1));
        p = p ? value(s, p) : NULL;
        if (!p)
            return NULL;
        p = skip_space(p);
    } while (*p == ',');
    return *p == '}' ? skip_space(p + 1) : NULL;
}

/* Do the lists fit together?  Writes the mask, if it is not there yet. */
static bool settle(const struct scan *s)
{
    if (s->n < 1 || (s->ones >= 0 && s->ones != s->n) ||
        (s->met != NOTHING && s->masked != s->n))
        return false;
    if (s->met == NOTHING)
        memset(s->mask, 1, (size_t)s->n);
    int odd = 0;
    for (int64_t i = 0; s->met == LABELS && i < s->n; i++) {
        s->mask[i] = s->labels[i] != -100;
        odd |= s->mask[i] && s->labels[i] != s->ids[i];
    }
    return !odd;
}

int scan_line(struct documents *out, const char *line, size_t n, int64_t record,
              int64_t vocab)
{
    size_t numbers = n / 2 + 1;
    struct scan s = {
        .n = -1, .masked = -1, .ones = -1, .vocab = vocab, .end = line + n};
    s.ids = (int32_t *)(void *)buf_room(&out->ids, numbers * sizeof *s.ids);
    buf_clear(&out->scratch);
    s.labels = (int32_t *)(void *)buf_room(&out->scratch, 2 * numbers * sizeof *s.rest);
    s.mask = (uint8_t *)buf_room(&out->mask, numbers);
    if (!s.ids || !s.labels || !s.mask)
        return err_set(E_MEMORY, "no memory for a record of %zu bytes", n);
    s.rest = s.labels + numbers;
    if (object(&s, line) != line + n || !settle(&s))
        return 0;
    out->ids.len += (size_t)s.n * sizeof *s.ids;
    out->mask.len += (size_t)s.n;
    out->unmasked = s.met == NOTHING;
    TRY(document_add(out, record, s.n));
    return 1;
}
