/* SPDX-License-Identifier: MIT */
/* scan.c - one pass over the bytes of a record, without a tree.
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
    int32_t *mask;           // loss_mask or labels, in scratch
    int32_t *rest;           // any other list, in scratch
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

/* A list of whole numbers of [low, high), from its bracket on. */
static const char *list(const char *p, int32_t *out, int64_t *n, int64_t low,
                        int64_t high)
{
    int32_t *to = out;
    p = skip_space(p + 1);
    while (*p != ']') {
        int64_t v;
        p = number(p, &v);
        if (!p || v < low || v >= high)
            return NULL;
        *to++ = (int32_t)v;
        if (*p != ',')
            p = skip_space(p);
        if (*p == ',') {
            p = skip_space(p + 1);
            if (*p == ']')
                return NULL;
        } else if (*p != ']') {
            return NULL;
        }
    }
    *n = to - out;
    return p + 1;
}

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
        return list(p, s->rest, &ignored, INT32_MIN, INT32_MAX);
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
    return list(p, s->mask, &s->masked, met == LABELS ? -100 : 0,
                met == LABELS ? s->vocab : 2);
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
        return list(p, s->ids, &s->n, 0, s->vocab);
    if (labels)
        return mask(s, p, LABELS);
    if (bits)
        return mask(s, p, MASK);
    if (attention)
        return list(p, s->rest, &s->ones, 1, 2);
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

/* Do the lists fit together?  Writes the mask. */
static bool settle(const struct scan *s, uint8_t *out)
{
    if (s->n < 1 || (s->ones >= 0 && s->ones != s->n) ||
        (s->met != NOTHING && s->masked != s->n))
        return false;
    if (s->met == NOTHING)
        memset(out, 1, (size_t)s->n);
    int odd = 0;
    for (int64_t i = 0; s->met == LABELS && i < s->n; i++) {
        out[i] = s->mask[i] != -100;
        odd |= out[i] && s->mask[i] != s->ids[i];
    }
    for (int64_t i = 0; s->met == MASK && i < s->n; i++)
        out[i] = (uint8_t)s->mask[i];
    return !odd;
}

int scan_line(struct documents *out, const char *line, size_t n, int64_t record,
              int64_t vocab)
{
    size_t numbers = n / 2 + 1;
    struct scan s = {.n = -1, .masked = -1, .ones = -1, .vocab = vocab};
    s.ids = (int32_t *)(void *)buf_room(&out->ids, numbers * sizeof *s.ids);
    buf_clear(&out->scratch);
    s.mask = (int32_t *)(void *)buf_room(&out->scratch, 2 * numbers * sizeof *s.mask);
    char *bits = buf_room(&out->mask, numbers);
    if (!s.ids || !s.mask || !bits)
        return err_set(E_MEMORY, "no memory for a record of %zu bytes", n);
    s.rest = s.mask + numbers;
    if (object(&s, line) != line + n || !settle(&s, (uint8_t *)bits))
        return 0;
    out->ids.len += (size_t)s.n * sizeof *s.ids;
    out->mask.len += (size_t)s.n;
    TRY(document_add(out, record, s.n));
    return 1;
}
