/* SPDX-License-Identifier: MIT */
/* test_jsonl.c - what a record may look like, why it is refused, and that the fast way
 * agrees with the strict one on anything. */
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "../tools/pack/read_jsonl.h"
#include "../tools/pack/scan.h"
#include "err.h"
#include "kit.h"
#include "mem.h"
#include "rng.h"

enum { VOCAB = 1000 };

/* The record as text: ids, '/' and mask; or the kind of refusal and its reason. */
static const char *strict(const char *line)
{
    static char text[2000];
    struct documents d = {0};
    kit_ok(jsonl_line(&d, line, strlen(line), 7, VOCAB));
    ck_assert_int_eq(d.n, 1);
    ck_assert_int_eq(d.at[0].record, 7);
    size_t n = 0;
    if (d.at[0].reject) {
        snprintf(text, sizeof text, "%s: %s", document_reject_name(d.at[0].reject),
                 document_why(&d, &d.at[0]));
        ck_assert_uint_eq(d.ids.len + d.mask.len, 0);
    } else {
        for (int64_t i = 0; i < d.at[0].n; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%d ",
                                  document_ids(&d, &d.at[0])[i]);
        n += (size_t)snprintf(text + n, sizeof text - n, "/");
        for (int64_t i = 0; i < d.at[0].n; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%d",
                                  document_mask(&d, &d.at[0])[i]);
    }
    documents_drop(&d);
    return text;
}

START_TEST(records)
{
    static const char *const cases[][2] = {
        {"{\"input_ids\": [1, 2, 3]}", "1 2 3 /111"},
        {"{\"input_ids\": [1, 2], \"loss_mask\": [0, 1]}", "1 2 /01"},
        {"{\"input_ids\": [1, 2], \"assistant_mask\": [true, false]}", "1 2 /10"},
        {"{\"input_ids\": [1, 2], \"assistant_masks\": [1, 0]}", "1 2 /10"},
        {"{\"labels\": [-100, 2], \"input_ids\": [1, 2]}", "1 2 /01"},
        {"{\"input_ids\": [1], \"loss_mask\": null, \"labels\": [-100]}", "1 /0"},
        {"{\"input_ids\": [1], \"loss_mask\": [1], \"labels\": [-100]}", "1 /1"},
        {"{\"input_ids\": [1], \"attention_mask\": [1], \"x\": {\"y\": [null]}}",
         "1 /1"},
        {"{\"input_ids\": [0, 999]}\r", "0 999 /11"},
        {"[1]", "syntax: the record is not an object"},
        {"{\"input_ids\": [1, 2", "syntax: bad JSON in line 1, column 19"},
        {"{\"input_ids\": [1], \"input_ids\": [1]}", "syntax: bad JSON"},
        {"{\"ids\": [1]}", "no_input_ids: no input_ids"},
        {"{\"input_ids\": 5}",
         "bad_input_ids: key \"input_ids\": expected an array, found an integer"},
        {"{\"input_ids\": [1, 2.0]}",
         "bad_input_ids: input_ids[1]: expected an integer, found a number"},
        {"{\"input_ids\": [1, null]}",
         "bad_input_ids: input_ids[1]: expected an integer, found null"},
        {"{\"input_ids\": [1, 1000]}",
         "id_out_of_vocabulary: input_ids[1] is 1000, outside the vocabulary of 1000"},
        {"{\"input_ids\": [-1]}", "id_out_of_vocabulary: input_ids[0] is -1, outside"},
        {"{\"input_ids\": [5000000000]}",
         "id_out_of_vocabulary: input_ids[0] is 50000"},
        {"{\"input_ids\": []}", "empty: input_ids is empty"},
        {"{\"input_ids\": [1], \"loss_mask\": [1, 0]}",
         "lengths_differ: loss_mask has 2 items for 1 tokens"},
        {"{\"input_ids\": [1], \"loss_mask\": [2]}",
         "bad_loss_mask: loss_mask[0] is 2, not 0 or 1"},
        {"{\"input_ids\": [1], \"loss_mask\": [0.5]}",
         "bad_loss_mask: loss_mask[0]: exp"},
        {"{\"input_ids\": [1], \"loss_mask\": \"1\"}",
         "bad_loss_mask: key \"loss_mask\""},
        {"{\"input_ids\": [1, 2], \"labels\": [2, -100]}",
         "bad_loss_mask: labels[0] is 2 where input_ids has 1"},
        {"{\"input_ids\": [1, 2], \"labels\": [1, \"x\"]}",
         "bad_loss_mask: labels[1]: ex"},
        {"{\"input_ids\": [1, 0], \"attention_mask\": [1, 0]}",
         "padded: attention_mask[1] is 0: the record is padded"},
        {"{\"input_ids\": [1, 0], \"attention_mask\": [1]}",
         "lengths_differ: attention_mask has 1 items"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = strict(cases[i][0]);
        ck_assert_msg(strncmp(got, cases[i][1], strlen(cases[i][1])) == 0,
                      "%s gives %s, expected %s", cases[i][0], got, cases[i][1]);
    }
}
END_TEST

/* ---- the fast way against the strict one ---- */

/* 1 when the fast way took the line; it must then equal the strict way's result. */
static int compare(const char *line, size_t n)
{
    struct documents fast = {0}, slow = {0};
    int32_t before = 4711; // what stood there before must stay
    buf_add(&fast.ids, &before, sizeof before);
    buf_addc(&fast.mask, 1);
    kit_ok(document_add(&fast, 0, 1));
    int taken = scan_line(&fast, line, n, 1, VOCAB);
    kit_ok(taken);
    if (fast.n != 1 + taken || document_ids(&fast, &fast.at[0])[0] != 4711)
        ck_abort_msg("%s damaged the documents before it", line);
    if (taken) {
        const struct document *f = &fast.at[1], *s;
        kit_ok(jsonl_line(&slow, line, n, 1, VOCAB));
        s = &slow.at[0];
        if (s->reject)
            ck_abort_msg("the fast way takes %s, the strict way says %s", line,
                         document_why(&slow, s));
        bool same =
            f->n == s->n && f->record == s->record && f->unmasked == s->unmasked &&
            memcmp(document_ids(&fast, f), document_ids(&slow, s),
                   (size_t)f->n * sizeof(int32_t)) == 0 &&
            memcmp(document_mask(&fast, f), document_mask(&slow, s), (size_t)f->n) == 0;
        if (!same)
            ck_abort_msg("the two ways differ on %s", line);
    }
    documents_drop(&fast);
    documents_drop(&slow);
    return taken;
}

static void add_space(struct buf *b, struct rng *r)
{
    static const char spaces[] = "   \t\r";
    for (uint64_t k = rng_below(r, 8); k > 5; k--)
        buf_addc(b, spaces[rng_below(r, 5)]);
}

static void add_list(struct buf *b, struct rng *r, int64_t n, int kind, const int *ids)
{
    buf_addc(b, '[');
    for (int64_t i = 0; i < n; i++) {
        add_space(b, r);
        bool on = rng_below(r, 2);
        if (kind == 0)
            buf_addf(b, "%d", ids[i]);
        else if (kind == 1)
            buf_addf(b, "%d", on);
        else
            buf_addf(b, "%d", on ? ids[i] : -100);
        add_space(b, r);
        if (i + 1 < n)
            buf_addc(b, ',');
    }
    buf_addc(b, ']');
}

/* A record of keys in random order. */
static void random_record(struct buf *b, struct rng *r)
{
    static const char *const extra[] = {"\"id\":\"x\"",
                                        "\"n\":-17",
                                        "\"text\":\"a\\n\\\"\xc3\xa9\xf0\x9f\x98\x80\"",
                                        "\"ok\":true",
                                        "\"none\":null",
                                        "\"position_ids\":[0,1,-2]",
                                        "\"r\":1.5e3",
                                        "\"o\":{\"input_ids\":[1]}",
                                        "\"u\":\"\\u00e9\""};
    int ids[12];
    int64_t n = (int64_t)rng_below(r, 12);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int)rng_below(r, VOCAB + (rng_below(r, 50) == 0));
    int order[] = {0, 1, 2, 3};
    int first = (int)rng_below(r, 4);
    buf_clear(b);
    add_space(b, r);
    buf_addc(b, '{');
    for (int k = 0, begun = 0; k < 4; k++) {
        int what = order[(k + first) % 4];
        if (what != 0 && rng_below(r, 2))
            continue;
        if (begun++)
            buf_addc(b, ',');
        add_space(b, r);
        if (what == 3) {
            buf_adds(b, extra[rng_below(r, 9)]);
            continue;
        }
        buf_adds(b, what == 0 ? "\"input_ids\":"
                    : what == 1
                        ? (const char *[]){"\"loss_mask\":", "\"attention_mask\":",
                                           "\"assistant_masks\":"}[rng_below(r, 3)]
                        : "\"labels\":");
        add_list(b, r, n, what, ids);
    }
    if (rng_below(r, 20) == 0) // perhaps a key that is there already
        buf_adds(b, rng_below(r, 2) ? ",\"id\":1" : ",\"input_ids\":[1]");
    add_space(b, r);
    buf_addc(b, '}');
    add_space(b, r);
}

/* Changes a few bytes: what comes out is mostly malformed, and in every way. */
static void damage(struct buf *b, struct rng *r)
{
    static const char bytes[] = "{}[]\",:-0123456789.eE \\tfnu\x01\x7f\xc3\xa9\xff";
    for (uint64_t k = rng_below(r, 3); k + 1 > 0 && b->len > 2; k--) {
        size_t at = (size_t)rng_below(r, b->len);
        switch (rng_below(r, 4)) {
        case 0:
            b->p[at] = bytes[rng_below(r, sizeof bytes - 1)];
            break;
        case 1:
            memmove(b->p + at, b->p + at + 1, b->len - at);
            b->len--;
            break;
        case 2:
            b->len = at;
            b->p[at] = 0;
            break;
        default:
            buf_addc(b, 0);
            memmove(b->p + at + 1, b->p + at, b->len - 1 - at);
            b->p[at] = bytes[rng_below(r, sizeof bytes - 1)];
        }
        if (k == 0)
            break;
    }
}

START_TEST(fast_agrees_with_strict)
{
    struct rng r = rng_new(42);
    struct buf b = {0};
    int whole = 0, damaged = 0;
    for (int i = 0; i < 60000; i++) {
        random_record(&b, &r);
        whole += compare(b.p, b.len);
        damage(&b, &r);
        damaged += compare(b.p, b.len);
    }
    buf_drop(&b);
    printf("fast way: %d whole and %d damaged records of 60000\n", whole, damaged);
    ck_assert_int_gt(whole, 20000); // the comparison has something to compare
    ck_assert_int_gt(damaged, 2000);
}
END_TEST

START_TEST(fast_takes_the_ordinary)
{
    static const char *const lines[] = {
        "{\"input_ids\":[1,2,3]}",
        "{\"input_ids\": [1, 2, 3], \"loss_mask\": [0, 1, 1]}\r",
        "{\"id\": \"a\\\"b\\\\\", \"input_ids\": [1], \"labels\": [-100]}",
        "{\"input_ids\":[1],\"attention_mask\":[1],\"assistant_masks\":[0]}",
        "{\"text\": \"\xe2\x82\xac\", \"input_ids\": [999], \"n\": 12, \"y\": null}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(compare(lines[i], strlen(lines[i])), "%s", lines[i]);
}
END_TEST

START_TEST(fast_leaves_the_odd)
{
    static const char *const lines[] = {
        "{\"n\": 9999999999999999999, \"input_ids\": [1]}",
        "{\"n\": 99999999999999999999999999, \"input_ids\": [1]}",
        "{\"n\": -0, \"m\": 01, \"input_ids\": [1]}",
        "{\"input_ids\": [1], \"loss_mask\": [1], \"labels\": [1]}",
        "{\"input\\u005fids\": [2], \"input_ids\": [1]}",
        "{\"input_ids\": [1,]}",
        "{\"input_ids\": [1]} {}",
        "{\"input_ids\": [1]",
        "{,\"input_ids\": [1]}",
        "{\"input_ids\": [1] \"n\": 1}",
        "{}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(!compare(lines[i], strlen(lines[i])), "%s", lines[i]);
}
END_TEST

/* Seventeen MiB of lists in lists would be a gigabyte to jansson. */
START_TEST(large_records)
{
    enum { TOKENS = 9 << 20 };
    struct block b = {.records = 2};
    struct documents d = {0};
    buf_adds(&b.bytes, "{\"x\":[[]");
    for (int i = 0; i < 6 << 20; i++)
        buf_adds(&b.bytes, ",[]");
    buf_adds(&b.bytes, "],\"input_ids\":[1]}\n{\"input_ids\":[1");
    for (int i = 1; i < TOKENS; i++)
        buf_adds(&b.bytes, ",2");
    buf_adds(&b.bytes, "]}\n");
    kit_ok(buf_check(&b.bytes));
    kit_ok(jsonl_parse(&d, &b, &(struct read_rules){.vocab = VOCAB, .parts = 1}));
    ck_assert_int_eq(d.n, 2);
    ck_assert_int_eq(d.at[0].reject, REJECT_SYNTAX);
    ck_assert_str_eq(document_why(&d, &d.at[0]),
                     "over 16 MiB, and not a plain object of lists of numbers");
    ck_assert_int_eq(d.at[1].n, TOKENS);
    buf_drop(&b.bytes);
    documents_drop(&d);
}
END_TEST

/* ---- blocks ---- */

/* Reads a file block by block and returns all of it, checking the counts. */
static int read_back(struct buf *all, const char *path)
{
    struct inflow in;
    struct block b = {0};
    const struct reader *reader;
    kit_ok(inflow_open(&in, path, "file"));
    int rc = reader_of_content(&reader, &in);
    while (rc == 0 && (rc = reader->block(&b, NULL, &in)) > 0) {
        buf_add(all, b.bytes.p, b.bytes.len);
        b.record += b.records;
        rc = 0;
    }
    if (rc == 0) {
        int64_t lines = 0;
        for (size_t i = 0; i < all->len; i++)
            lines += all->p[i] == '\n';
        lines += all->len > 0 && all->p[all->len - 1] != '\n';
        ck_assert_int_eq(b.record, lines);
    }
    buf_drop(&b.bytes);
    inflow_close(&in);
    return rc;
}

/* Lines of all lengths, some longer than a block. */
static void make_lines(struct buf *text, bool end)
{
    struct rng r = rng_new(3);
    for (int i = 0; i < 300; i++) {
        buf_adds(text, "{\"input_ids\":[1]}");
        uint64_t n = rng_below(&r, 4) ? rng_below(&r, 100) : rng_below(&r, 100000);
        buf_fill(text, ' ', i == 150 ? 3 << 20 : (size_t)n);
        buf_addc(text, '\n');
    }
    if (!end)
        buf_adds(text, "{\"input_ids\":[2]}");
}

/* Appends a zstd frame. */
static void add_frame(struct buf *out, const char *data, size_t n)
{
    size_t most = ZSTD_compressBound(n);
    char *room = buf_room(out, most);
    size_t size = ZSTD_compress(room, most, data, n, 1);
    ck_assert(!ZSTD_isError(size));
    out->len += size;
}

START_TEST(blocks_are_the_file)
{
    const char *path = kit_path("%s/a", kit_tmp_dir());
    for (int end = 0; end < 2; end++) {
        struct buf text = {0}, got = {0}, packed = {0};
        make_lines(&text, end);
        kit_write(path, text.p, text.len);
        kit_ok(read_back(&got, path));
        ck_assert_uint_eq(got.len, text.len);
        kit_same("plain", got.p, text.p, text.len);
        /* Three frames, cut anywhere. */
        add_frame(&packed, text.p, 1000);
        add_frame(&packed, text.p + 1000, 0);
        add_frame(&packed, text.p + 1000, text.len - 1000);
        kit_write(path, packed.p, packed.len);
        buf_clear(&got);
        kit_ok(read_back(&got, path));
        ck_assert_uint_eq(got.len, text.len);
        kit_same("zstd", got.p, text.p, text.len);
        buf_drop(&text);
        buf_drop(&got);
        buf_drop(&packed);
    }
}
END_TEST

START_TEST(empty_and_blank_files)
{
    static const char *const texts[] = {"", "\n", "  \n\n", "\r\n"};
    const char *path = kit_path("%s/a", kit_tmp_dir());
    for (int i = 0; i < 4; i++) {
        struct buf got = {0};
        kit_write_text(path, texts[i]);
        kit_ok(read_back(&got, path));
        ck_assert_str_eq(buf_text(&got), texts[i]);
        buf_drop(&got);
    }
}
END_TEST

START_TEST(damaged_compression)
{
    const char *path = kit_path("%s/a", kit_tmp_dir());
    struct buf text = {0}, packed = {0}, got = {0};
    make_lines(&text, true);
    add_frame(&packed, text.p, text.len);
    for (size_t cut = 5; cut < packed.len; cut += packed.len / 7 + 1) {
        kit_write(path, packed.p, cut);
        kit_fails(read_back(&got, path), E_FORMAT, "cut: it ends inside a zstd frame");
    }
    buf_adds(&packed, "trailing");
    kit_write(path, packed.p, packed.len);
    kit_fails(read_back(&got, path), E_FORMAT, "cannot decompress behind byte");
    kit_write_text(path, "\1\2");
    kit_fails(read_back(&got, path), E_FORMAT, "file: unknown format");
    buf_drop(&text);
    buf_drop(&packed);
    buf_drop(&got);
}
END_TEST

START_TEST(parts_share_lines)
{
    struct block b = {.record = 10, .index = 25};
    buf_adds(&b.bytes,
             "{\"input_ids\":[0]}\n\n{\"input_ids\":[2]}\nx\n{\"input_ids\":[4]}");
    for (int part = 0; part < 3; part++) {
        struct documents d = {0};
        kit_ok(jsonl_parse(
            &d, &b, &(struct read_rules){.vocab = VOCAB, .part = part, .parts = 3}));
        for (int64_t i = 0; i < d.n; i++)
            ck_assert_int_eq((d.at[i].record + 15) % 3, part);
        static const int count[] = {1, 2, 1}; // index 25: part 1; the blank line none
        ck_assert_int_eq(d.n, count[part]);
        documents_drop(&d);
    }
    buf_drop(&b.bytes);
}
END_TEST

KIT_MAIN("jsonl", records, fast_agrees_with_strict, fast_takes_the_ordinary,
         fast_leaves_the_odd, large_records, blocks_are_the_file, empty_and_blank_files,
         damaged_compression, parts_share_lines)
