/* SPDX-License-Identifier: MIT */
/* tokens.c - a block holds the numbers, then the lengths of its documents, then the
 * type: so the numbers are moved out of the inflow and not copied. */
#include "tokens.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "fields.h"

enum { BLOCK = 1 << 20 };

int tokens_ends(struct tokens *t, const struct read_rules *rules, const char *file)
{
    t->row = 0;
    t->whole = rules->separator == READ_WHOLE;
    t->separator = rules->separator;
    if (rules->separator != READ_UNSAID)
        return 0;
    return err_set(E_USAGE,
                   "%s: where do documents end?  --separator ID names the token; "
                   "--separator none makes the file one document",
                   file);
}

/* ---- cutting ---- */

/* How many whole numbers are at hand. */
static int64_t at_hand(const struct tokens *t, const struct inflow *in)
{
    int64_t n = (int64_t)(in->have.len / ints_size(t->type));
    return t->left >= 0 && t->left < n ? t->left : n;
}

static bool all_here(const struct tokens *t, const struct inflow *in)
{
    return in->ended || (t->left >= 0 && at_hand(t, in) == t->left);
}

/* Lengths of the documents that are whole, in `lengths`; how many numbers they have. */
static int64_t cut_off(struct tokens *t, const struct inflow *in, struct buf *lengths)
{
    struct ints a = {in->have.p, at_hand(t, in), t->type};
    int64_t used = 0, next;
    bool last = all_here(t, in);
    if (!t->row && !t->whole) {
        int64_t from = t->seen;
        while ((next = ints_find(&a, from, t->separator)) < a.n) {
            int64_t n = next + 1 - used;
            buf_add(lengths, &n, sizeof n);
            used = from = next + 1;
        }
    }
    for (; t->row && a.n - used >= t->row; used += t->row)
        buf_add(lengths, &t->row, sizeof t->row);
    if (last && used < a.n && !t->row) {
        int64_t n = a.n - used;
        buf_add(lengths, &n, sizeof n);
        used = a.n;
    }
    t->seen = a.n - used;
    return used;
}

static int check_room(const struct tokens *t, const struct block *b,
                      const struct inflow *in)
{
    int64_t first = t->row ? t->row : t->seen;
    if (first <= TOKENS_MAX / (int64_t)ints_size(t->type))
        return 0;
    return err_set(E_FORMAT, "%s: record %" PRId64 ": a document of over %d MiB%s",
                   in->name, b->record, TOKENS_MAX >> 20,
                   t->row || t->whole ? "" : ": is this the right separator?");
}

/* At the end of the numbers, the file must end too. */
static int check_end(const struct tokens *t, struct inflow *in)
{
    if (!in->ended)
        TRY(inflow_more(in, 1));
    if (t->left > 0)
        return err_set(E_FORMAT, "%s: cut: %" PRId64 " numbers are missing", in->name,
                       t->left);
    if (in->have.len > 0)
        return err_set(E_FORMAT, "%s: %zu%s bytes behind the last number", in->name,
                       in->have.len, in->ended ? "" : " or more");
    return 0;
}

int tokens_block(struct block *b, void *state, struct inflow *in)
{
    struct tokens *t = state;
    struct buf lengths = {0};
    int64_t used = 0;
    int rc = 0;
    TRY(check_room(t, b, in));
    while (used == 0 && rc == 0) {
        if (!all_here(t, in))
            rc = inflow_more(in, BLOCK);
        used = rc < 0 ? 0 : cut_off(t, in, &lengths);
        if (rc >= 0)
            rc = used ? buf_check(&lengths) : check_room(t, b, in);
        if (used == 0 && all_here(t, in))
            break;
    }
    if (rc == 0 && used == 0)
        rc = check_end(t, in);
    else if (rc == 0) {
        t->left -= t->left >= 0 ? used : 0;
        rc = tokens_pass(b, in, (const int64_t *)(const void *)lengths.p,
                         (int64_t)(lengths.len / sizeof(int64_t)), t->type);
    }
    buf_drop(&lengths);
    return rc < 0 ? rc : used > 0;
}

/* ---- blocks ---- */

/* What stands at the end of a block, behind the lengths. */
struct trailer {
    int64_t type, n;
};

int tokens_pass(struct block *b, struct inflow *in, const int64_t *length, int64_t n,
                enum ints_type type)
{
    struct trailer end = {type, n};
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all += length[i];
    TRY(inflow_cut(in, (size_t)all * ints_size(type), &b->bytes));
    buf_add(&b->bytes, length, (size_t)n * sizeof *length);
    buf_add(&b->bytes, &end, sizeof end);
    b->records = n;
    return buf_check(&b->bytes);
}

int tokens_parse(struct documents *out, const struct block *b,
                 const struct read_rules *rules)
{
    struct trailer end;
    const char *tail = b->bytes.p + b->bytes.len - sizeof end, *at = b->bytes.p;
    memcpy(&end, tail, sizeof end);
    tail -= (size_t)end.n * sizeof(int64_t);
    for (int64_t i = 0; i < end.n; i++) {
        struct ints field[FIELDS] = {{at, 0, (enum ints_type)end.type}};
        memcpy(&field[0].n, tail + (size_t)i * sizeof(int64_t), sizeof(int64_t));
        if ((b->index + i) % rules->parts == rules->part)
            TRY(fields_add(out, b->record + i, field, rules->vocab));
        at += (size_t)field[0].n * ints_size(field[0].type);
    }
    return 0;
}
