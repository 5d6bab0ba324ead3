/* SPDX-License-Identifier: MIT */
/* read_tar.c - a block is the members of some records, one behind another:
 *
 *     struct member, name, NUL, data, NUL
 *
 * They are read in order by one thread (libarchive), and parsed on any. */
#include "read_tar.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "fields.h"
#include "file.h"
#include "mem.h"
#include "npy.h"
#include "read_jsonl.h"
#include "scan.h"
#include "unpack.h"

enum { BLOCK = 1 << 20, MEMBER_MAX = 256 << 20, RECORD_MAX = 512 << 20, HEAD = 512 };

/* What a member is for. */
enum kind { ARRAY, JSON = FIELDS, OTHER, BAD };

struct member {
    int32_t first; /* of its record */
    int32_t kind;  /* ARRAY + field, JSON, OTHER, or BAD: the data are the reason */
    int64_t name, data; /* bytes */
};

struct tar {
    struct unpack *unpack;
    struct inflow *in;
    size_t lent; // bytes of `have` that unpack is reading
    struct unpack_member now;
    bool pending;   // `now` is not yet in a block
    struct buf key; // of the record that is being read
};

/* ---- what a tar is ---- */

static int64_t octal(const char *p, size_t n)
{
    int64_t v = 0;
    while (n > 0 && *p == ' ')
        p++, n--;
    for (; n > 0 && *p >= '0' && *p <= '7'; p++, n--)
        v = 8 * v + (*p - '0');
    return v;
}

/* The checksum of the first header, with its own field as spaces. */
bool tar_is(const char *bytes, size_t n)
{
    int64_t sum = 8 * ' ';
    if (n < HEAD || bytes[0] == 0)
        return false;
    for (int i = 0; i < HEAD; i++)
        if (i < 148 || i >= 156)
            sum += (unsigned char)bytes[i];
    return sum == octal(bytes + 148, 8);
}

/* ---- names ---- */

/* Length of the key: up to the first dot of the last component. */
static size_t key_length(const char *name)
{
    const char *last = file_last_name(name), *dot = strchr(last, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

static bool is_ignored(const struct unpack_member *m)
{
    const char *last = file_last_name(m->name);
    return m->folder || !*last || !file_is_input(last) || strncmp(last, "__", 2) == 0 ||
           !strchr(last, '.');
}

static enum kind kind_of(const char *name)
{
    const char *ext = name + key_length(name) + 1;
    size_t n = strlen(ext);
    if (strcmp(ext, "json") == 0)
        return JSON;
    if (strcmp(ext, "npy") == 0)
        return ARRAY;
    if (n < 5 || strcmp(ext + n - 4, ".npy") != 0)
        return OTHER;
    enum field f = fields_named(ext, n - 4);
    return f < FIELDS ? (enum kind)(ARRAY + f) : OTHER;
}

/* Why a member makes its record unusable, or NULL. */
static const char *trouble(const struct unpack_member *m)
{
    if (m->name[0] == '/')
        return "its name is absolute";
    if (!file_stays_below(m->name))
        return "its name has a \"..\" component";
    if (m->oddity)
        return m->oddity;
    return m->size > MEMBER_MAX && kind_of(m->name) < OTHER ? "it is over 256 MiB"
                                                            : NULL;
}

/* ---- reading ---- */

/* Decompressed bytes for unpack: what it had before is done with. */
static int64_t give(void *ctx, const void **bytes)
{
    struct tar *t = ctx;
    inflow_take(t->in, t->lent);
    t->lent = 0;
    if (t->in->have.len == 0)
        TRY(inflow_more(t->in, 1 << 18));
    t->lent = t->in->have.len;
    *bytes = t->in->have.p;
    return (int64_t)t->lent;
}

int tar_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    struct tar *t = *state = mem_zero(1, sizeof *t);
    (void)rules;
    if (!t)
        return E_MEMORY;
    t->in = in;
    int rc = unpack_tar(&t->unpack, give, t, in->name);
    if (rc < 0) {
        tar_close(t);
        *state = NULL;
    }
    return rc;
}

void tar_close(void *state)
{
    struct tar *t = state;
    if (!t)
        return;
    unpack_close(t->unpack);
    buf_drop(&t->key);
    mem_free(t);
}

/* The data of the member that unpack stands before. */
static int add_data(struct tar *t, struct buf *to, int64_t size)
{
    char *room = buf_room(to, (size_t)size + 1);
    if (!room)
        return buf_check(to);
    for (int64_t at = 0; at < size;) {
        int64_t got = unpack_read(t->unpack, room + at, (size_t)(size - at));
        TRY((int)(got < 0 ? got : 0));
        if (got == 0)
            return err_set(E_FORMAT, "%s: member %s has fewer bytes than it says",
                           t->in->name, t->now.name);
        at += got;
    }
    to->len += (size_t)size;
    return 0;
}

static int add_member(struct tar *t, struct buf *to, bool first)
{
    const char *name = t->now.name, *why = trouble(&t->now);
    enum kind kind = why ? BAD : kind_of(name);
    struct member m = {.first = first,
                       .kind = kind,
                       .name = (int64_t)strlen(name),
                       .data = why             ? (int64_t)strlen(why)
                               : kind == OTHER ? 0
                                               : t->now.size};
    buf_add(to, &m, sizeof m);
    buf_add(to, name, (size_t)m.name + 1);
    if (why)
        buf_adds(to, why);
    else
        TRY(add_data(t, to, m.data));
    buf_addc(to, 0);
    return buf_check(to);
}

/* Goes to the next member that counts: 1, or 0 at the end. */
static int advance(struct tar *t)
{
    int got = 1;
    while (!t->pending && (got = unpack_next(t->unpack, &t->now)) > 0)
        t->pending = !is_ignored(&t->now);
    return got;
}

/* All members of the next record: 1, or 0 at the end. */
static int add_record(struct tar *t, struct buf *to)
{
    int got = advance(t);
    TRY(got);
    if (got == 0)
        return 0;
    size_t n = key_length(t->now.name), begin = to->len;
    buf_clear(&t->key);
    buf_add(&t->key, t->now.name, n);
    TRY(buf_check(&t->key));
    while (got > 0 && key_length(t->now.name) == n &&
           memcmp(t->now.name, t->key.p, n) == 0) {
        TRY(add_member(t, to, to->len == begin));
        if (to->len - begin > RECORD_MAX)
            return err_set(E_FORMAT, "%s: the members %s.* are over %d MiB",
                           t->in->name, t->key.p, RECORD_MAX >> 20);
        t->pending = false;
        got = advance(t);
        TRY(got);
    }
    return 1;
}

int tar_block(struct block *b, void *state, struct inflow *in)
{
    struct tar *t = state;
    int got = 1;
    (void)in; // unpack reads from it
    buf_clear(&b->bytes);
    b->records = 0;
    while (b->bytes.len < BLOCK && (got = add_record(t, &b->bytes)) > 0)
        b->records++;
    return got < 0 ? got : b->records > 0;
}

/* ---- parsing ---- */

/* A record as it is put together. */
struct record {
    struct ints field[FIELDS];
    const char *json;
    size_t json_size;
    const char *name; // of its first member
    bool bad;         // beside a message
};

static void take_array(struct record *r, enum field f, const char *name,
                       const char *data, size_t n)
{
    if (r->field[f].at) {
        err_set(E_FORMAT, "%s: the record has two such arrays", name);
        r->bad = true;
    } else if (npy_vector(&r->field[f], data, n) < 0) {
        err_wrap(E_FORMAT, "%s", name);
        r->bad = true;
    }
}

static void take_member(struct record *r, const struct member *m, const char *name,
                        const char *data)
{
    if (!r->name)
        r->name = name;
    if (r->bad)
        return;
    if (m->kind == BAD) {
        err_set(E_FORMAT, "member %s: %s", name, data);
        r->bad = true;
    } else if (m->kind == JSON && r->json) {
        err_set(E_FORMAT, "%s: the record has two such members", name);
        r->bad = true;
    } else if (m->kind == JSON) {
        r->json = data;
        r->json_size = (size_t)m->data;
    } else if (m->kind < FIELDS)
        take_array(r, (enum field)m->kind, name, data, (size_t)m->data);
}

static int add_json(struct documents *out, const struct record *r, int64_t record,
                    int64_t vocab)
{
    int done = scan_line(out, r->json, r->json_size, record, vocab);
    return done ? done : jsonl_line(out, r->json, r->json_size, record, vocab);
}

/* Puts the name into the reason why the last record was refused. */
static int name_it(struct documents *out, const char *name)
{
    const struct document *doc = &out->at[out->n - 1];
    if (doc->reject == REJECT_NONE)
        return 0;
    char *why = mem_text(document_why(out, doc));
    if (!why)
        return E_MEMORY;
    out->reasons.len = doc->why;
    buf_addf(&out->reasons, "%s: %s", name, why);
    buf_addc(&out->reasons, 0);
    mem_free(why);
    return buf_check(&out->reasons);
}

static int end_record(struct documents *out, const struct record *r, int64_t record,
                      int64_t vocab)
{
    if (r->bad)
        return document_reject(out, record, REJECT_SYNTAX);
    if (r->json || r->field[FIELD_IDS].at) {
        TRY(r->field[FIELD_IDS].at ? fields_add(out, record, r->field, vocab)
                                   : add_json(out, r, record, vocab));
        return name_it(out, r->name);
    }
    err_set(E_FORMAT, "%s: neither .json nor .input_ids.npy is in this record",
            r->name);
    return document_reject(out, record, REJECT_NO_IDS);
}

int tar_parse(struct documents *out, const struct block *b,
              const struct read_rules *rules)
{
    const char *at = b->bytes.p, *end = at + b->bytes.len;
    for (int64_t i = 0; i < b->records; i++) {
        struct record r = {0};
        struct member m;
        bool wanted = (b->index + i) % rules->parts == rules->part;
        do {
            memcpy(&m, at, sizeof m);
            const char *name = at + sizeof m, *data = name + m.name + 1;
            if (wanted)
                take_member(&r, &m, name, data);
            at = data + m.data + 1;
            if (at < end)
                memcpy(&m, at, sizeof m);
        } while (at < end && !m.first);
        if (wanted)
            TRY(end_record(out, &r, b->record + i, rules->vocab));
    }
    return 0;
}
