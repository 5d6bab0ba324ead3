/* SPDX-License-Identifier: MIT */
/* npy.c - the header is a Python dict of three known keys, in any order and spacing. */
#include "npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

bool npy_is(const char *bytes, size_t n)
{
    return n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
}

/* ---- the dict ---- */

struct text {
    const char *at, *end;
};

static void skip_space(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t'))
        t->at++;
}

/* take goes past a word, if it is there. */
static bool take(struct text *t, const char *word)
{
    size_t n = strlen(word);
    skip_space(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

/* A quoted text without escapes. */
static bool quoted(struct text *t, const char **text, size_t *n)
{
    skip_space(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    const char *stop = memchr(t->at + 1, *t->at, (size_t)(t->end - t->at - 1));
    if (!stop)
        return false;
    *text = t->at + 1;
    *n = (size_t)(stop - *text);
    t->at = stop + 1;
    return true;
}

static int number(struct text *t, int64_t *out)
{
    int64_t v = 0;
    skip_space(t);
    if (t->at == t->end || *t->at < '0' || *t->at > '9')
        return err_set(E_FORMAT, "npy: a shape that is no list of numbers");
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        if (v > (INT64_MAX - 9) / 10)
            return err_set(E_FORMAT, "npy: a shape beyond all bounds");
        v = 10 * v + (*t->at - '0');
    }
    *out = v;
    return 0;
}

/* "<i8": order, kind, bytes. */
static enum ints_type type_of(const char *d, size_t n)
{
    char name[8];
    if (n != 3 || !strchr("1248", d[2]) || !strchr(d[2] == '1' ? "|<>=" : "<", d[0]))
        return INTS_NONE;
    if (d[1] == 'b' && d[2] == '1')
        return INTS_U8;
    int bits = 8 * (d[2] - '0');
    return ints_named(name, (size_t)snprintf(name, sizeof name, "%c%d", d[1], bits));
}

static int read_descr(struct npy *h, struct text *t)
{
    const char *d;
    size_t n;
    if (!quoted(t, &d, &n))
        return err_set(E_FORMAT, "npy: records of several fields are not read");
    h->type = type_of(d, n);
    if (h->type != INTS_NONE)
        return 0;
    int shown = n < 40 ? (int)n : 40;
    if (n > 0 && d[0] == '>')
        return err_set(E_FORMAT, "npy: big-endian numbers (\"%.*s\") are not read",
                       shown, d);
    return err_set(E_FORMAT, "npy: \"%.*s\" is no type of whole numbers", shown, d);
}

static int read_shape(struct npy *h, struct text *t)
{
    if (!take(t, "("))
        return err_set(E_FORMAT, "npy: no shape");
    for (h->rank = 0; !take(t, ")"); h->rank++) {
        if (h->rank == 2)
            return err_set(E_FORMAT, "npy: an array of more than two dimensions");
        TRY(number(t, &h->dim[h->rank]));
        if (!take(t, ",")) {
            if (h->rank == 0 || !take(t, ")"))
                return err_set(E_FORMAT, "npy: a shape that is no list of numbers");
            h->rank++;
            break;
        }
    }
    if (h->rank == 0)
        return err_set(E_FORMAT, "npy: a single number, not an array");
    return 0;
}

static int read_entry(struct npy *h, struct text *t, unsigned *seen)
{
    const char *key;
    size_t n;
    if (!quoted(t, &key, &n) || !take(t, ":"))
        return err_set(E_FORMAT, "npy: a header that is no dict");
    unsigned which = n == 5 && memcmp(key, "descr", 5) == 0             ? 1
                     : n == 5 && memcmp(key, "shape", 5) == 0           ? 2
                     : n == 13 && memcmp(key, "fortran_order", 13) == 0 ? 4
                                                                        : 0;
    if (!which || (*seen & which))
        return err_set(E_FORMAT, "npy: key \"%.*s\" is odd or there twice",
                       n < 40 ? (int)n : 40, key);
    *seen |= which;
    if (which == 1)
        return read_descr(h, t);
    if (which == 2)
        return read_shape(h, t);
    if (take(t, "False"))
        return 0;
    return err_set(E_FORMAT, take(t, "True") ? "npy: Fortran order is not read"
                                             : "npy: fortran_order is no truth value");
}

static int read_dict(struct npy *h, struct text t)
{
    unsigned seen = 0;
    if (!take(&t, "{"))
        return err_set(E_FORMAT, "npy: a header that is no dict");
    while (!take(&t, "}")) {
        TRY(read_entry(h, &t, &seen));
        if (!take(&t, ",")) {
            if (!take(&t, "}"))
                return err_set(E_FORMAT, "npy: a header that is no dict");
            break;
        }
    }
    skip_space(&t);
    if (seen != 7 || t.at != t.end)
        return err_set(E_FORMAT,
                       "npy: a header that lacks descr, fortran_order or shape");
    return 0;
}

/* ---- the file ---- */

int npy_head(struct npy *out, const char *bytes, size_t n)
{
    struct npy h = {0};
    const unsigned char *b = (const unsigned char *)bytes;
    if (n < 12)
        return n >= 6 && !npy_is(bytes, n) ? err_set(E_FORMAT, "npy: no magic") : 0;
    if (!npy_is(bytes, n))
        return err_set(E_FORMAT, "npy: no magic");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return err_set(E_FORMAT, "npy: version %d.%d is not known", b[6], b[7]);
    size_t begin = b[6] == 1 ? 10 : 12;
    size_t length = b[8] + ((size_t)b[9] << 8);
    if (b[6] > 1)
        length += ((size_t)b[10] << 16) + ((size_t)b[11] << 24);
    if (length > NPY_HEADER_MAX)
        return err_set(E_FORMAT, "npy: a header of %zu bytes", length);
    if (n - begin < length)
        return 0;
    h.header = begin + length;
    TRY(read_dict(&h, (struct text){bytes + begin, bytes + h.header}));
    int64_t most = INT64_MAX / (int64_t)ints_size(h.type);
    if (h.rank == 1)
        h.dim[1] = 1;
    if (h.dim[0] > most || (h.dim[1] > 0 && h.dim[0] > most / h.dim[1]))
        return err_set(E_FORMAT, "npy: a shape beyond all bounds");
    *out = h;
    return 1;
}

int npy_vector(struct ints *out, const char *bytes, size_t n)
{
    struct npy h = {0};
    int got = npy_head(&h, bytes, n);
    TRY(got);
    if (got == 0)
        return err_set(E_FORMAT, "npy: cut inside the header");
    if (h.rank == 2 && h.dim[0] != 1)
        return err_set(E_FORMAT, "npy: %" PRId64 " rows, not one", h.dim[0]);
    *out = (struct ints){bytes + h.header, h.dim[0] * h.dim[1], h.type};
    if ((uint64_t)out->n * ints_size(h.type) != n - h.header)
        return err_set(E_FORMAT, "npy: %zu bytes behind the header, not %" PRIu64,
                       n - h.header, (uint64_t)out->n * ints_size(h.type));
    return 0;
}
