/* SPDX-License-Identifier: MIT */
/* read_arrow.c - messages off the input, runs of their rows into blocks.
 *
 * A message is FF FF FF FF, the length of its head (a flatbuffer), the head, and a
 * body. The file format is the same between "ARROW1" and a footer, which repeats what
 * the heads say; it is not needed, as everything is read in order, but its end is
 * looked at, because it tells whether the file is whole.  Source: Message.fbs and the
 * section on serialization of arrow.apache.org/docs/format/Columnar.html.
 *
 * A batch stays in the inflow's memory until its last row has been cut off. */
#include "read_arrow.h"

#include <inttypes.h>
#include <string.h>

#include "arrow_rows.h"
#include "err.h"
#include "mem.h"

/* Numbers of fields in Message.fbs. */
enum { MESSAGE_VERSION, MESSAGE_TYPE, MESSAGE_HEAD, MESSAGE_BODY };
enum { IS_SCHEMA = 1, IS_DICTIONARY = 2, IS_BATCH = 3 };

enum {
    BLOCK = 1 << 20,
    HEAD_MAX = 64 << 20,
    TAIL = 10, // length of the footer, "ARROW1"
    STEP = 1 << 20
};
#define BODY_MAX ((int64_t)16 << 30)

static const char magic[8] = "ARROW1\0"; // padded to 8

struct arrow {
    bool is_file, has_schema, ended;
    struct arrow_schema schema;
    struct arrow_batch batch;
    int64_t row; // of the batch, the next to be cut off
    size_t used; // bytes of `have` that are done with
    struct buf extents[FIELDS];
};

/* What a message says; the pointers go into `have`. */
struct message {
    struct flat flat;
    struct flat_table head;
    int64_t version, type;
    const uint8_t *body;
    size_t size;
};

bool arrow_is(const char *bytes, size_t n)
{
    return (n >= 4 && memcmp(bytes, "\xff\xff\xff\xff", 4) == 0) ||
           (n >= 6 && memcmp(bytes, magic, 6) == 0);
}

/* ---- bytes ---- */

/* Makes sure that n bytes lie at *p, fewer only at the end: how many do. */
static int reach(struct arrow *a, struct inflow *in, size_t n, const uint8_t **p,
                 size_t *got)
{
    if (in->have.len - a->used < n) {
        inflow_take(in, a->used);
        a->used = 0;
    }
    while (in->have.len - a->used < n && !in->ended)
        TRY(inflow_more(in, n - (in->have.len - a->used)));
    *p = (const uint8_t *)buf_text(&in->have) + a->used;
    *got = in->have.len - a->used;
    return 0;
}

static int need(struct arrow *a, struct inflow *in, size_t n, const uint8_t **p)
{
    size_t got;
    TRY(reach(a, in, n, p, &got));
    return got >= n
               ? 0
               : err_set(E_FORMAT, "cut: it ends %zu bytes before its time", n - got);
}

/* ---- messages ---- */

static int get_head(struct message *m, const uint8_t *p, size_t n, int64_t *body)
{
    m->flat = (struct flat){p, n, false};
    struct flat_table t = flat_root(&m->flat);
    m->version = flat_int(&t, MESSAGE_VERSION, 2, 0);
    m->type = flat_int(&t, MESSAGE_TYPE, 1, 0);
    m->head = flat_table(&t, MESSAGE_HEAD);
    *body = flat_int(&t, MESSAGE_BODY, 8, 0);
    if (m->flat.bad || !m->head.at)
        return err_set(E_FORMAT, "the head of a message is damaged");
    if (*body < 0 || *body > BODY_MAX)
        return err_set(E_FORMAT, "a message of %" PRId64 " bytes", *body);
    return 0;
}

/* 1, or 0 when the mark of the end stands there instead. */
static int get_message(struct arrow *a, struct inflow *in, struct message *m)
{
    const uint8_t *p;
    int64_t body;
    int32_t head;
    TRY(need(a, in, 8, &p));
    if (memcmp(p, "\xff\xff\xff\xff", 4) != 0)
        return err_set(E_FORMAT, "there is no message where one must begin");
    memcpy(&head, p + 4, sizeof head);
    a->used += 8;
    if (head == 0)
        return 0;
    if (head < 0 || head > HEAD_MAX)
        return err_set(E_FORMAT, "a message with a head of %" PRId32 " bytes", head);
    TRY(need(a, in, (size_t)head, &p));
    TRY(get_head(m, p, (size_t)head, &body));
    TRY(need(a, in, (size_t)head + (size_t)body, &p));
    TRY(get_head(m, p, (size_t)head, &body)); // it may have moved
    m->body = p + head;
    m->size = (size_t)body;
    a->used += (size_t)head + m->size;
    return 1;
}

/* Behind the mark of a file's end: the footer, its length, "ARROW1". */
static int get_footer(struct arrow *a, struct inflow *in)
{
    const uint8_t *p;
    int64_t behind = 0;
    int32_t footer;
    size_t got;
    for (;;) {
        TRY(reach(a, in, STEP, &p, &got));
        if (got < STEP)
            break;
        a->used += STEP - TAIL;
        behind += STEP - TAIL;
    }
    behind += (int64_t)got;
    a->used += got;
    if (got < TAIL || memcmp(p + got - 6, magic, 6) != 0)
        return err_set(E_FORMAT, "cut: its footer does not end in ARROW1");
    memcpy(&footer, p + got - TAIL, sizeof footer);
    if (footer != behind - TAIL)
        return err_set(E_FORMAT, "its footer has %" PRId64 " bytes, not %" PRId32,
                       behind - TAIL, footer);
    return 0;
}

/* Behind the mark of a stream's end another stream may follow. */
static int end_stream(struct arrow *a, struct inflow *in)
{
    const uint8_t *p;
    size_t got = 0;
    if (!a->has_schema)
        return err_set(E_FORMAT, "it has no schema");
    a->has_schema = false;
    if (a->is_file)
        TRY(get_footer(a, in));
    else
        TRY(reach(a, in, 1, &p, &got));
    a->ended = got == 0;
    return 0;
}

static int use_message(struct arrow *a, const struct message *m)
{
    if (m->type == IS_SCHEMA && !a->has_schema) {
        a->has_schema = true;
        return arrow_schema_read(&a->schema, &m->head, m->version);
    }
    if (m->type == IS_SCHEMA)
        return err_set(E_FORMAT, "a second schema inside of a stream");
    if (!a->has_schema)
        return err_set(E_FORMAT, "it does not begin with a schema");
    if (m->type == IS_DICTIONARY) // of a column that is none of ours
        return 0;
    if (m->type != IS_BATCH)
        return err_set(E_FORMAT, "a message of type %" PRId64, m->type);
    a->row = 0;
    return arrow_batch_open(&a->batch, &a->schema, &m->head, m->body, m->size);
}

/* Goes on to the next batch that has rows, or to the end. */
static int next_rows(struct arrow *a, struct inflow *in)
{
    while (!a->ended && a->row == a->batch.rows) {
        struct message m;
        int got = get_message(a, in, &m);
        TRY(got);
        TRY(got ? use_message(a, &m) : end_stream(a, in));
    }
    return 0;
}

/* ---- the reader ---- */

int arrow_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    (void)rules;
    const uint8_t *p;
    struct arrow *a = mem_zero(1, sizeof *a);
    if (!a)
        return E_MEMORY;
    int rc = need(a, in, sizeof magic, &p);
    if (rc < 0) {
        arrow_close(a);
        return err_wrap(rc, "%s", in->name);
    }
    a->is_file = memcmp(p, magic, sizeof magic) == 0;
    a->used = a->is_file ? sizeof magic : 0;
    *state = a;
    return 0;
}

void arrow_close(void *state)
{
    struct arrow *a = state;
    if (!a)
        return;
    arrow_batch_drop(&a->batch);
    for (int c = 0; c < FIELDS; c++)
        buf_drop(&a->extents[c]);
    mem_free(a);
}

static int fill(struct block *b, struct arrow *a, struct inflow *in)
{
    TRY(next_rows(a, in));
    while (!a->ended && b->bytes.len < BLOCK) {
        int64_t rows;
        int rc = arrow_run_add(&b->bytes, &a->batch, a->row,
                               BLOCK - (int64_t)b->bytes.len, a->extents, &rows);
        b->records += rows;
        TRY(rc);
        a->row += rows;
        TRY(next_rows(a, in));
    }
    return 0;
}

int arrow_block(struct block *b, void *state, struct inflow *in)
{
    b->records = 0;
    buf_clear(&b->bytes);
    int rc = fill(b, state, in);
    if (rc < 0)
        return err_wrap(rc, "%s: record %" PRId64, in->name, b->record + b->records);
    return b->records > 0;
}

int arrow_parse(struct documents *out, const struct block *b,
                const struct read_rules *rules)
{
    int64_t done = 0;
    for (size_t at = 0; at < b->bytes.len;) {
        const struct arrow_run *run =
            (const struct arrow_run *)(const void *)(b->bytes.p + at);
        TRY(arrow_rows(out, run, b->record + done, b->index + done, rules));
        done += run->rows;
        at += (size_t)run->bytes;
    }
    return 0;
}
