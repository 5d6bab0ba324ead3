/* SPDX-License-Identifier: MIT */
/* read_jsonl.c - lines into blocks, blocks into documents. */
#include "read_jsonl.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "json.h"
#include "scan.h"

enum {
    BLOCK = 1 << 20,
    LINE_MAX_BYTES = 256 << 20, // what a line may be before it counts as no text
    STRICT_MAX_BYTES = 16 << 20 // nested values take fifty times this in memory
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool jsonl_is(const char *bytes, size_t n)
{
    size_t i = file_mark(bytes, n);
    while (i < n && is_space(bytes[i]))
        i++;
    return i == n || bytes[i] == '{';
}

/* ---- blocks ---- */

/* The length of the whole lines in `have`; after the end of the file, of all. */
static size_t whole_lines(const struct inflow *in)
{
    if (in->ended || in->have.len == 0)
        return in->have.len;
    const char *last = memrchr(in->have.p, '\n', in->have.len);
    return last ? (size_t)(last + 1 - in->have.p) : 0;
}

static int64_t count_lines(const char *text, size_t n)
{
    int64_t lines = 0;
    const char *p = text, *end = text + n;
    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        lines++;
        p++;
    }
    return lines + (n > 0 && text[n - 1] != '\n');
}

int jsonl_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    int got = 1;
    (void)state;
    (void)rules;
    while (in->have.len < 3 && got > 0)
        TRY(got = inflow_more(in, 3));
    inflow_take(in, file_mark(in->have.p, in->have.len));
    return 0;
}

int jsonl_block(struct block *b, void *state, struct inflow *in)
{
    size_t n;
    (void)state;
    while ((n = whole_lines(in)) < BLOCK && !in->ended) {
        if (n == 0 && in->have.len > LINE_MAX_BYTES)
            return err_set(E_FORMAT, "%s: record %" PRId64 ": a line of over %d MiB",
                           in->name, b->record, LINE_MAX_BYTES >> 20);
        TRY(inflow_more(in, BLOCK));
    }
    TRY(inflow_cut(in, n, &b->bytes));
    b->records = count_lines(buf_text(&b->bytes), n);
    return n > 0;
}

/* ---- one record, the strict way ---- */

/* Where the pieces of a record are, while it is taken apart. */
struct record {
    struct documents *out;
    const struct json *root;
    int64_t n, vocab;
    enum reject reject; // set beside a message
};

static int refuse(struct record *r, enum reject kind)
{
    r->reject = kind;
    return E_FORMAT;
}

static int read_ids(struct record *r)
{
    const struct json *list = json_get(r->root, "input_ids");
    if (!list) {
        err_set(E_FORMAT, "no input_ids (scripts/tokenize.py makes them of chats)");
        return refuse(r, REJECT_NO_IDS);
    }
    if (json_need_array(r->root, "input_ids", &list) < 0)
        return refuse(r, REJECT_IDS);
    r->n = json_size(list);
    if (r->n == 0) {
        err_set(E_FORMAT, "input_ids is empty");
        return refuse(r, REJECT_EMPTY);
    }
    for (int64_t i = 0; i < r->n; i++) {
        int64_t id;
        if (json_to_int(json_at(list, i), &id) < 0) {
            err_wrap(E_FORMAT, "input_ids[%" PRId64 "]", i);
            return refuse(r, REJECT_IDS);
        }
        if (id < 0 || id >= r->vocab) {
            err_set(E_FORMAT,
                    "input_ids[%" PRId64 "] is %" PRId64
                    ", outside the vocabulary of %" PRId64,
                    i, id, r->vocab);
            return refuse(r, REJECT_VOCAB);
        }
        int32_t narrow = (int32_t)id;
        buf_add(&r->out->ids, &narrow, sizeof narrow);
    }
    return buf_check(&r->out->ids);
}

/* A list beside the ids, of their length; NULL when the key is absent or null. */
static int find_list(struct record *r, const char *key, const struct json **list)
{
    *list = json_get(r->root, key);
    if (!*list || json_is_null(*list)) {
        *list = NULL;
        return 0;
    }
    if (json_need_array(r->root, key, list) < 0)
        return refuse(r, REJECT_MASK);
    if (json_size(*list) != r->n) {
        err_set(E_FORMAT, "%s has %" PRId64 " items for %" PRId64 " tokens", key,
                json_size(*list), r->n);
        return refuse(r, REJECT_LENGTH);
    }
    return 0;
}

/* 0 and 1, also written as false and true. */
static int read_bit(struct record *r, const char *key, const struct json *list,
                    int64_t i, uint8_t *out)
{
    bool yes;
    int64_t value;
    if (json_to_bool(json_at(list, i), &yes) == 0) {
        *out = yes;
        return 0;
    }
    if (json_to_int(json_at(list, i), &value) < 0) {
        err_wrap(E_FORMAT, "%s[%" PRId64 "]", key, i);
        return refuse(r, REJECT_MASK);
    }
    if (value != 0 && value != 1) {
        err_set(E_FORMAT, "%s[%" PRId64 "] is %" PRId64 ", not 0 or 1", key, i, value);
        return refuse(r, REJECT_MASK);
    }
    *out = (uint8_t)value;
    return 0;
}

static int read_mask(struct record *r, const char *key, const struct json *list)
{
    for (int64_t i = 0; i < r->n; i++) {
        uint8_t bit;
        TRY(read_bit(r, key, list, i, &bit));
        buf_addc(&r->out->mask, (char)bit);
    }
    return buf_check(&r->out->mask);
}

static int read_labels(struct record *r, const struct json *list)
{
    const int32_t *ids =
        (const int32_t *)(const void *)r->out->ids.p + document_tokens(r->out);
    for (int64_t i = 0; i < r->n; i++) {
        int64_t label;
        if (json_to_int(json_at(list, i), &label) < 0) {
            err_wrap(E_FORMAT, "labels[%" PRId64 "]", i);
            return refuse(r, REJECT_MASK);
        }
        if (label != -100 && label != ids[i]) {
            err_set(E_FORMAT,
                    "labels[%" PRId64 "] is %" PRId64 " where input_ids has %" PRId32,
                    i, label, ids[i]);
            return refuse(r, REJECT_MASK);
        }
        buf_addc(&r->out->mask, label != -100);
    }
    return buf_check(&r->out->mask);
}

static int read_supervision(struct record *r)
{
    static const char *const keys[] = {"loss_mask", "assistant_mask",
                                       "assistant_masks"};
    const struct json *list;
    for (int k = 0; k < 3; k++) {
        TRY(find_list(r, keys[k], &list));
        if (list)
            return read_mask(r, keys[k], list);
    }
    TRY(find_list(r, "labels", &list));
    if (list)
        return read_labels(r, list);
    return document_mask_all(r->out, r->n);
}

static int check_padding(struct record *r)
{
    const struct json *list;
    TRY(find_list(r, "attention_mask", &list));
    for (int64_t i = 0; list && i < r->n; i++) {
        uint8_t bit;
        TRY(read_bit(r, "attention_mask", list, i, &bit));
        if (!bit) {
            err_set(E_FORMAT, "attention_mask[%" PRId64 "] is 0: the record is padded",
                    i);
            return refuse(r, REJECT_PADDED);
        }
    }
    return 0;
}

static int read_record(struct record *r)
{
    if (!json_is_object(r->root)) {
        err_set(E_FORMAT, "the record is not an object");
        return refuse(r, REJECT_SYNTAX);
    }
    TRY(read_ids(r));
    TRY(read_supervision(r));
    return check_padding(r);
}

int jsonl_line(struct documents *out, const char *line, size_t n, int64_t record,
               int64_t vocab)
{
    struct record r = {.out = out, .vocab = vocab};
    struct json *root = NULL;
    int rc = n <= STRICT_MAX_BYTES
                 ? json_parse(&root, line, n)
                 : err_set(E_FORMAT,
                           "over %d MiB, and not a plain object of lists of numbers",
                           STRICT_MAX_BYTES >> 20);
    if (rc == E_FORMAT)
        r.reject = REJECT_SYNTAX;
    r.root = root;
    if (rc == 0)
        rc = read_record(&r);
    json_free(root);
    if (r.reject != REJECT_NONE)
        return document_reject(out, record, r.reject);
    return rc < 0 ? rc : document_add(out, record, r.n);
}

/* ---- a block of them ---- */

static bool is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_space(line[i]))
            return false;
    return true;
}

int jsonl_parse(struct documents *out, const struct block *b,
                const struct read_rules *rules)
{
    const char *line = buf_text(&b->bytes), *end = line + b->bytes.len;
    for (int64_t k = 0; line < end; k++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((stop ? stop : end) - line);
        bool wanted = (b->index + k) % rules->parts == rules->part;
        if (wanted && !is_blank(line, n)) {
            int done = scan_line(out, line, n, b->record + k, rules->vocab);
            TRY(done);
            if (done == 0)
                TRY(jsonl_line(out, line, n, b->record + k, rules->vocab));
        }
        line += n + 1;
    }
    return 0;
}
