/* SPDX-License-Identifier: MIT */
/* read_megatron.c - the index is mapped and checked once, whole; then X.bin streams. */
#include "read_megatron.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "file.h"
#include "mem.h"
#include "tokens.h"

enum { BLOCK = 1 << 20, MAGIC = 9, HEAD = 34 };

static const char magic[MAGIC] = "MMIDIDX\0";

struct index {
    struct file_map map; // zero for X.idx itself, which has no documents
    char *path;
    enum ints_type type;
    int64_t sequences, documents; // documents: of the file
    const char *length, *offset, *document;
    int64_t next;     // document to be read
    int64_t sequence; // its first
};

bool megatron_is(const char *bytes, size_t n)
{
    return n >= MAGIC && memcmp(bytes, magic, MAGIC) == 0;
}

/* ---- names ---- */

/* The path with its three last letters replaced, when they are `from`. */
static char *renamed(const char *path, const char *from, const char *to)
{
    size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 4, from) != 0)
        return NULL;
    char *other = mem_text(path);
    if (other)
        memcpy(other + n - 4, to, 4);
    return other;
}

static bool is_index(const char *path)
{
    char head[MAGIC];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is = file_get(fd, head, MAGIC, path) == MAGIC && megatron_is(head, MAGIC);
    close(fd);
    return is;
}

char *megatron_other(const char *path)
{
    char *other = renamed(path, ".bin", ".idx");
    if (other && is_index(other))
        return other;
    mem_free(other);
    return is_index(path) ? renamed(path, ".idx", ".bin") : NULL;
}

bool megatron_beside(const char *path)
{
    char *other = renamed(path, ".bin", ".idx");
    bool is = other && is_index(other);
    mem_free(other);
    return is;
}

/* ---- the index ---- */

static int64_t i64_at(const char *array, int64_t i)
{
    int64_t v;
    memcpy(&v, array + 8 * i, sizeof v);
    return v;
}

static int64_t i32_at(const char *array, int64_t i)
{
    int32_t v;
    memcpy(&v, array + 4 * i, sizeof v);
    return v;
}

static int read_type(struct index *x, int code)
{
    static const enum ints_type type[] = {INTS_NONE, INTS_U8,   INTS_I8,
                                          INTS_I16,  INTS_I32,  INTS_I64,
                                          INTS_NONE, INTS_NONE, INTS_U16};
    if (code == 6 || code == 7)
        return err_set(E_FORMAT, "%s: it holds fractions, not tokens", x->path);
    x->type = code < 9 ? type[code] : INTS_NONE;
    return x->type ? 0 : err_set(E_FORMAT, "%s: type %d is not known", x->path, code);
}

/* Where the arrays are. */
static int read_head(struct index *x)
{
    const char *p = (const char *)x->map.data;
    int64_t size = (int64_t)x->map.size;
    if (size < HEAD || !megatron_is(p, (size_t)size))
        return err_set(E_FORMAT, "%s: no index of Megatron's", x->path);
    if (i64_at(p + 9, 0) != 1)
        return err_set(E_FORMAT, "%s: version %" PRId64 " is not known", x->path,
                       i64_at(p + 9, 0));
    TRY(read_type(x, x->map.data[17]));
    int64_t s = i64_at(p + 18, 0), d = i64_at(p + 26, 0), most = size - HEAD;
    if (s < 0 || d < 1 || s > most / 12 || d > most / 8)
        return err_set(E_FORMAT,
                       "%s: %" PRIu64 " sequences and %" PRIu64
                       " ends of documents do not fit into %" PRId64 " bytes",
                       x->path, (uint64_t)s, (uint64_t)d, size);
    int64_t bytes = 12 * s + 8 * d;
    if (most != bytes && most != bytes + s) // with modes
        return err_set(E_FORMAT, "%s: %" PRId64 " bytes, not %" PRId64, x->path, size,
                       HEAD + bytes);
    x->sequences = s;
    x->documents = d - 1;
    x->length = p + HEAD;
    x->offset = x->length + 4 * s;
    x->document = x->offset + 8 * s;
    return 0;
}

/* Each sequence begins where the one before it ends, and the last one ends X.bin. */
static int check_sequences(const struct index *x, int64_t bin)
{
    int64_t at = 0, size = (int64_t)ints_size(x->type);
    for (int64_t i = 0; i < x->sequences; i++) {
        int64_t n = i32_at(x->length, i), offset = i64_at(x->offset, i);
        if (n < 0)
            return err_set(E_FORMAT, "%s: sequence %" PRId64 " has %" PRId64 " tokens",
                           x->path, i, n);
        if (offset != at)
            return err_set(E_FORMAT,
                           "%s: sequence %" PRId64 " is at byte %" PRId64
                           ", but the one before it ends at %" PRId64,
                           x->path, i, offset, at);
        if (at > INT64_MAX - n * size)
            return err_set(E_FORMAT, "%s: sizes beyond all bounds", x->path);
        at += n * size;
    }
    if (at == bin)
        return 0;
    return err_set(E_FORMAT, "%s tells of %" PRId64 " bytes, the .bin has %" PRId64,
                   x->path, at, bin);
}

static int check_documents(const struct index *x)
{
    int64_t before = 0;
    for (int64_t i = 0; i <= x->documents; i++) {
        int64_t at = i64_at(x->document, i);
        if (at < before || at > x->sequences || (i == 0 && at != 0))
            return err_set(E_FORMAT,
                           "%s: document %" PRId64 " begins at sequence %" PRId64,
                           x->path, i, at);
        before = at;
    }
    if (before == x->sequences)
        return 0;
    return err_set(E_FORMAT,
                   "%s: the documents end at sequence %" PRId64 " of %" PRId64, x->path,
                   before, x->sequences);
}

static int open_index(struct index *x, const char *bin)
{
    x->path = renamed(bin, ".bin", ".idx");
    if (!x->path)
        return err_set(E_FORMAT, "%s: its name does not end in .bin or .idx", bin);
    TRY(file_map(&x->map, x->path));
    TRY(read_head(x));
    int64_t size = file_size(bin);
    TRY((int)(size < 0 ? size : 0));
    TRY(check_sequences(x, size));
    return check_documents(x);
}

/* X.idx comes through too, to be compared with what was hashed; X.bin must be there. */
static int pass_index(struct index *x, const char *idx)
{
    x->path = renamed(idx, ".idx", ".bin");
    int64_t size = x->path ? file_size(x->path) : E_MEMORY;
    return size < 0 ? (int)size : 0;
}

int megatron_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    size_t n = strlen(in->path);
    struct index *x = *state = mem_zero(1, sizeof *x);
    (void)rules;
    if (!x)
        return E_MEMORY;
    bool idx = n > 4 && strcmp(in->path + n - 4, ".idx") == 0;
    int rc = idx && in->have.len == 0
                 ? err_set(E_FORMAT, "%s: cut: the index is empty", in->path)
             : idx ? pass_index(x, in->path)
                   : open_index(x, in->path);
    if (rc < 0) {
        megatron_close(x);
        *state = NULL;
    }
    return rc;
}

void megatron_close(void *state)
{
    struct index *x = state;
    if (!x)
        return;
    file_unmap(&x->map);
    mem_free(x->path);
    mem_free(x);
}

/* ---- documents ---- */

/* Takes documents for a block; the bytes that they have. */
static int64_t take(struct index *x, struct buf *lengths)
{
    int64_t bytes = 0, size = (int64_t)ints_size(x->type);
    while (bytes < BLOCK && lengths->len < BLOCK && x->next < x->documents) {
        int64_t n = 0, end = i64_at(x->document, x->next + 1);
        for (int64_t i = x->sequence; i < end; i++)
            n += i32_at(x->length, i);
        if (n > TOKENS_MAX / size && bytes > 0)
            break; // the next block begins with it
        buf_add(lengths, &n, sizeof n);
        bytes += n * size;
        x->sequence = end;
        x->next++;
    }
    return bytes;
}

static int fetch(struct inflow *in, int64_t bytes, int64_t record)
{
    if (bytes > TOKENS_MAX + BLOCK)
        return err_set(E_FORMAT, "%s: record %" PRId64 ": a document of over %d MiB",
                       in->name, record, TOKENS_MAX >> 20);
    while ((int64_t)in->have.len < bytes) {
        int got = inflow_more(in, (size_t)bytes - in->have.len);
        TRY(got);
        if (got == 0)
            return err_set(E_FORMAT,
                           "%s: cut: the documents from %" PRId64 " on need %" PRId64
                           " bytes more",
                           in->name, record, bytes - (int64_t)in->have.len);
    }
    return 0;
}

static int at_end(struct inflow *in, const struct index *x)
{
    TRY(inflow_more(in, 1));
    while (!x->map.data && in->have.len > 0) {
        inflow_take(in, in->have.len);
        TRY(inflow_more(in, BLOCK));
    }
    if (in->have.len > 0)
        return err_set(E_FORMAT, "%s: more bytes than %s tells of", in->name, x->path);
    return 0;
}

int megatron_block(struct block *b, void *state, struct inflow *in)
{
    struct index *x = state;
    struct buf lengths = {0};
    if (x->next == x->documents) {
        b->aside = !x->map.data;
        return at_end(in, x);
    }
    int64_t bytes = take(x, &lengths);
    int rc = buf_check(&lengths);
    if (rc == 0)
        rc = fetch(in, bytes, b->record);
    if (rc == 0)
        rc = tokens_pass(b, in, (const int64_t *)(const void *)lengths.p,
                         (int64_t)(lengths.len / sizeof(int64_t)), x->type);
    buf_drop(&lengths);
    return rc < 0 ? rc : 1;
}
