/* SPDX-License-Identifier: MIT */
/* read_packed.c - one shard in memory, its rows in blocks:
 *
 *     for each document: struct piece_head, ids, mask */
#include "read_packed.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "fields.h"
#include "hash.h"
#include "mem.h"
#include "row.h"
#include "shard_head.h"

enum { BLOCK = 1 << 20, SHARD_MAX = 1 << 30 };

struct piece_head {
    int64_t entry, n; /* number in the block, tokens */
};

struct packed {
    struct buf bytes; // of the shard that is being read
    struct shard_head head;
    struct shard_view view;
    bool loaded, followed; // a shard is here; it has come behind another one
    int64_t row;           // next in it
    int64_t shard;         // the one that must come next, -1: any
    struct buf sums;       // of the headers of the run so far
};

bool packed_is(const char *bytes, size_t n)
{
    return shard_head_is(bytes, n);
}

bool packed_names(const char *name)
{
    struct shard_id id;
    size_t n;
    return shard_name_parse(&id, &n, name);
}

int packed_whole(const char *dir)
{
    struct shard_reader *r = NULL;
    char *path[] = {(char *)(uintptr_t)dir};
    int rc = shard_open(&r, path, 1);
    shard_close(r);
    return rc;
}

int packed_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    struct packed *p = *state = mem_zero(1, sizeof *p);
    (void)in;
    (void)rules;
    if (!p)
        return E_MEMORY;
    p->shard = -1;
    return 0;
}

void packed_close(void *state)
{
    struct packed *p = state;
    if (!p)
        return;
    shard_head_drop(&p->head);
    buf_drop(&p->bytes);
    buf_drop(&p->sums);
    mem_free(p);
}

/* ---- shards ---- */

static int need(struct inflow *in, uint64_t n)
{
    while (in->have.len < n) {
        int got = inflow_more(in, n - in->have.len);
        TRY(got);
        if (got == 0)
            return err_set(E_FORMAT, "%s: cut: it ends inside a shard", in->name);
    }
    return 0;
}

/* Header and data of the next file of a run into p->bytes. */
static int load(struct packed *p, struct inflow *in)
{
    size_t n;
    TRY(need(in, 8));
    TRY(st_length(in->have.p, in->have.len, &n));
    TRY(need(in, 8 + n));
    TRY(shard_head_parse(&p->head, in->have.p, 8 + n));
    uint64_t size = p->head.st.header_bytes + p->head.st.data_bytes;
    if (p->head.st.data_bytes > SHARD_MAX)
        return err_set(E_FORMAT, "a shard of %" PRIu64 " bytes", size);
    TRY(need(in, size));
    TRY(inflow_cut(in, size, &p->bytes));
    return shard_head_check(&p->head, p->bytes.p + p->head.st.header_bytes);
}

/* Whether the shard or end file is the one that belongs here. */
static int check_place(struct packed *p)
{
    const struct shard_id *id = &p->head.id;
    if (strcmp(id->stage, "pack") != 0)
        return err_set(E_FORMAT, "written by %s: only packed rows can be packed anew",
                       id->stage);
    if (p->shard >= 0 && id->index != p->shard)
        return err_set(E_FORMAT, "out of order: number %" PRId64 ", expected %" PRId64,
                       id->index, p->shard);
    bool all = p->sums.len == (size_t)id->index * sizeof(uint64_t); // from the first on
    if (id->end && p->shard >= 0 && all &&
        p->head.digest != hash_bytes(buf_text(&p->sums), p->sums.len))
        return err_set(E_FORMAT, "end file: digest does not match the shards");
    return 0;
}

static void step(struct packed *p, struct inflow *in)
{
    const struct shard_head *h = &p->head;
    if (h->id.end) {
        p->shard = -1;
        p->followed = false;
        buf_clear(&p->sums);
        return;
    }
    p->followed = p->shard >= 0;
    p->shard = h->id.index + 1;
    shard_head_sum(&p->sums, h->xxh3);
    p->loaded = true;
    p->row = 0;
    p->view = (struct shard_view){.name = in->name,
                                  .header = h->st,
                                  .first_row = h->id.first_row,
                                  .rows = h->id.rows,
                                  .data = p->bytes.p + h->st.header_bytes};
}

/* 1 with a shard, 0 at the end of the input.  One shard alone is enough of a file; of a
 * stream the end file must be there too. */
static int next_shard(struct packed *p, struct inflow *in)
{
    do {
        shard_head_drop(&p->head);
        p->loaded = false;
        if (in->have.len == 0)
            TRY(inflow_more(in, 8));
        if (in->have.len == 0)
            break;
        int rc = load(p, in);
        if (rc == 0)
            rc = check_place(p);
        if (rc < 0)
            return err_wrap(rc, "%s", in->name);
        step(p, in);
        TRY(buf_check(&p->sums));
    } while (!p->loaded);
    if (in->raw == 0)
        return err_set(E_FORMAT, "%s: cut: no shard at all", in->name);
    if (p->loaded || p->shard < 0 || (!p->followed && strcmp(in->path, "-") != 0))
        return p->loaded;
    return err_set(E_FORMAT, "%s: cut: no end file behind shard %" PRId64, in->name,
                   p->shard - 1);
}

/* ---- rows ---- */

static void add_piece(struct buf *to, const struct anchor_row *t, int64_t from,
                      int64_t end, int64_t entry)
{
    struct piece_head h = {entry, end - from};
    buf_add(to, &h, sizeof h);
    buf_add(to, t->ids + from, (size_t)h.n * sizeof *t->ids);
    buf_add(to, t->mask + from, (size_t)h.n);
}

/* Whether source entry b goes on where n tokens of entry a end. */
static bool goes_on(const int64_t *a, const int64_t *b, int64_t n)
{
    return a[0] == b[0] && a[1] == b[1] && a[2] + n == b[2];
}

/* The documents of a row; how many entries of `source` they are. */
static int64_t add_row(struct buf *to, const struct anchor_row *t, int64_t entry)
{
    int64_t entries = 0, end = row_end(t), at = 0;
    while (at < end) {
        int64_t begin = at, first = entry + entries, stretch = at;
        for (; at < end; at++) {
            if (t->doc[at] == t->doc[stretch])
                continue;
            if (t->doc[at] < 0 || t->doc[stretch] < 0 ||
                !goes_on(t->source + 3 * t->doc[stretch], t->source + 3 * t->doc[at],
                         at - stretch))
                break;
            entries++;
            stretch = at;
        }
        if (t->doc[begin] < 0)
            continue; // a gap, if there is one
        entries++;
        add_piece(to, t, begin, at, first);
    }
    return entries;
}

int packed_block(struct block *b, void *state, struct inflow *in)
{
    struct packed *p = state;
    buf_clear(&b->bytes);
    b->records = 0;
    while (b->bytes.len < BLOCK) {
        struct row row;
        if (!p->loaded || p->row == p->view.rows) {
            if (b->bytes.len > 0)
                break;
            int got = next_shard(p, in);
            b->aside = p->shard < 0 && b->record == 0;
            if (got <= 0)
                return got;
        }
        TRY(row_view(&row, &p->view, p->row++));
        b->records += add_row(&b->bytes, &row.text, b->records);
        TRY(buf_check(&b->bytes));
    }
    return 1;
}

int packed_parse(struct documents *out, const struct block *b,
                 const struct read_rules *rules)
{
    const char *at = buf_text(&b->bytes), *end = at + b->bytes.len;
    while (at < end) {
        struct piece_head h;
        memcpy(&h, at, sizeof h);
        const char *ids = at + sizeof h, *mask = ids + 4 * h.n;
        const struct ints field[FIELDS] = {
            [FIELD_IDS] = {ids, h.n, INTS_I32},
            [FIELD_LOSS_MASK] = {mask, h.n, INTS_U8},
        };
        if ((b->index + h.entry) % rules->parts == rules->part)
            TRY(fields_add(out, b->record + h.entry, field, rules->vocab));
        at = mask + h.n;
    }
    return 0;
}
