/* SPDX-License-Identifier: MIT */
/* test_arrow.c - Arrow files of other writers hold the documents that they should, and
 * damaged ones are refused in words, wherever the damage is.
 *
 * The files are made by golden/make_arrow.py with datasets and pyarrow. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../tools/pack/input.h"
#include "../tools/pack/reader.h"
#include "err.h"
#include "file.h"
#include "kit.h"
#include "mem.h"

enum { VOCAB = 1000 };
#define GOLDEN "tests/golden/arrow/"

/* ---- reading ---- */

static int read_part(struct documents *d, const char *path, struct read_rules rules)
{
    const struct reader *reader = NULL;
    struct inflow in = {0};
    struct block b = {0};
    void *state = NULL;
    int got = 1, rc = inflow_open(&in, path, "file");
    if (rc == 0)
        rc = reader_of_content(&reader, &in);
    if (rc == 0 && reader->open)
        rc = reader->open(&state, &in, &rules);
    while (rc == 0 && (got = reader->block(&b, state, &in)) > 0) {
        rc = reader->parse(d, &b, &rules);
        b.record += b.records;
        b.index += b.records;
    }
    if (state)
        reader->close(state);
    buf_drop(&b.bytes);
    inflow_close(&in);
    return rc < 0 ? rc : got;
}

static int read_all(struct documents *d, const char *path)
{
    return read_part(d, path,
                     (struct read_rules){.vocab = VOCAB, .part = 0, .parts = 1});
}

static void same(const char *what, const struct documents *a, const struct documents *b,
                 bool kinds)
{
    ck_assert_msg(a->n == b->n, "%s: %lld and %lld documents", what, (long long)a->n,
                  (long long)b->n);
    for (int64_t i = 0; i < a->n; i++) {
        const struct document *x = &a->at[i], *y = &b->at[i];
        bool refused = kinds ? x->reject == y->reject : !x->reject == !y->reject;
        if (x->record != y->record || x->n != y->n || !refused)
            ck_abort_msg("%s: document %lld: record %lld, %lld tokens, %s; record "
                         "%lld, %lld tokens, %s",
                         what, (long long)i, (long long)x->record, (long long)x->n,
                         document_reject_name(x->reject), (long long)y->record,
                         (long long)y->n, document_reject_name(y->reject));
        size_t n = (size_t)x->n;
        kit_same(what, document_ids(a, x), document_ids(b, y), n * sizeof(int32_t));
        kit_same(what, document_mask(a, x), document_mask(b, y), n);
        ck_assert(!x->reject || *document_why(a, x));
    }
}

static bool is_sound(const struct documents *d, const struct document *doc)
{
    if ((doc->n > 0) != (doc->reject == REJECT_NONE))
        return false;
    for (int64_t t = 0; t < doc->n; t++)
        if ((uint32_t)document_ids(d, doc)[t] >= VOCAB || document_mask(d, doc)[t] > 1)
            return false;
    return true;
}

/* What every reader promises, of a file that may be damaged.  (An assertion of Check
 * writes to a file each time: far too slow for every token.) */
static void check_promises(const struct documents *d)
{
    for (int64_t i = 0; i < d->n; i++)
        if (!is_sound(d, &d->at[i]))
            ck_abort_msg("document %lld is not sound", (long long)i);
}

/* ---- whole files ---- */

static const char *const whole[] = {
    "int8",         "int16", "int32",  "int64", "uint8",  "uint16",   "uint32",
    "uint64",       "bool",  "labels", "fixed", "nulls",  "sliced",   "huge",
    "zstd-nulls",   "file",  "zstd",   "lz4",   "v4",     "zstd-raw", "batches",
    "file-batches", "empty", "large",  "two",   "others", "plain",    "file-zstd"};
enum { WHOLE = sizeof whole / sizeof *whole };

START_TEST(same_as_json_lines)
{
    for (int i = 0; i < WHOLE; i++) {
        struct documents arrow = {0}, lines = {0};
        kit_ok(read_all(&arrow, kit_path(GOLDEN "%s.arrow", whole[i])));
        kit_ok(read_all(&lines, kit_path(GOLDEN "%s.jsonl", whole[i])));
        /* numbers beyond 64 bits are bad JSON, and only ids too large in Arrow */
        same(whole[i], &arrow, &lines, strcmp(whole[i], "huge") != 0);
        ck_assert(arrow.n > 0 || strcmp(whole[i], "empty") == 0);
        documents_drop(&arrow);
        documents_drop(&lines);
    }
}
END_TEST

START_TEST(reasons)
{
    static const struct {
        int record;
        const char *why;
    } cases[] = {{2, "input_ids is empty"},
                 {3, "no input_ids (scripts/tokenize.py makes them of chats)"},
                 {5, "input_ids[1] is null"},
                 {6, "loss_mask[0] is null"},
                 {7, "loss_mask[0] is 2, not 0 or 1"},
                 {9, "loss_mask has 8 items for 9 tokens"},
                 {10, "input_ids[0] is -1, outside the vocabulary of 1000"},
                 {11, "input_ids[2] is 1000, outside the vocabulary of 1000"},
                 {12, "input_ids[0] is 1099511627776, outside the vocabulary of 1000"},
                 {14, "loss_mask[0] is -1099511627776, not 0 or 1"},
                 {15, "input_ids is empty"},
                 {16, "loss_mask[0] is null"}};
    struct documents d = {0};
    size_t refused = 0;
    kit_ok(read_all(&d, GOLDEN "nulls.arrow"));
    for (int64_t i = 0; i < d.n; i++) {
        const struct document *doc = &d.at[i];
        if (!doc->reject)
            continue;
        ck_assert_uint_lt(refused, sizeof cases / sizeof *cases);
        ck_assert_int_eq(doc->record, cases[refused].record);
        ck_assert_str_eq(document_why(&d, doc), cases[refused].why);
        refused++;
    }
    ck_assert_uint_eq(refused, sizeof cases / sizeof *cases);
    documents_drop(&d);
    kit_ok(read_all(&d, GOLDEN "labels.arrow"));
    ck_assert_str_eq(document_why(&d, &d.at[4]),
                     "attention_mask[9] is 0: the record is padded");
    ck_assert_str_eq(document_why(&d, &d.at[7]),
                     "labels[0] is 5 where input_ids has 17");
    documents_drop(&d);
    kit_ok(read_all(&d, GOLDEN "huge.arrow"));
    ck_assert_str_eq(
        document_why(&d, &d.at[0]),
        "input_ids[0] is 9223372036854775807, outside the vocabulary of 1000");
    documents_drop(&d);
}
END_TEST

START_TEST(one_part_of_three)
{
    struct documents all = {0}, part = {0};
    kit_ok(read_all(&all, GOLDEN "batches.arrow"));
    for (int p = 0; p < 3; p++) {
        int64_t n = 0;
        kit_ok(read_part(&part, GOLDEN "batches.arrow",
                         (struct read_rules){.vocab = VOCAB, .part = p, .parts = 3}));
        for (int64_t i = p; i < all.n; i += 3, n++) {
            const struct document *x = &part.at[n], *y = &all.at[i];
            ck_assert(n < part.n && x->record == y->record && x->n == y->n);
            kit_same("ids", document_ids(&part, x), document_ids(&all, y),
                     (size_t)x->n * sizeof(int32_t));
        }
        ck_assert_int_eq(n, part.n);
        documents_drop(&part);
    }
    documents_drop(&all);
}
END_TEST

/* Records of more than a block, and many blocks of a batch; see make_arrow.py. */
START_TEST(long_records)
{
    struct documents d = {0};
    kit_ok(read_all(&d, GOLDEN "long.arrow"));
    ck_assert_int_eq(d.n, 40);
    for (int64_t i = 0; i < d.n; i++) {
        const struct document *doc = &d.at[i];
        int64_t n = i == 20 ? 100000 : i * 9973 % 20011;
        ck_assert(doc->record == i && doc->n == n);
        for (int64_t t = 0; t < n; t++)
            if (document_ids(&d, doc)[t] != (i * 31 + t * 7) % 100 ||
                document_mask(&d, doc)[t] != t / 3 % 2)
                ck_abort_msg("record %lld, token %lld", (long long)i, (long long)t);
    }
    documents_drop(&d);
}
END_TEST

START_TEST(columns_that_are_not_ours)
{
    static const struct {
        const char *name, *why;
    } cases[] = {
        {"float", "column input_ids is a list of float, not a list of whole numbers"},
        {"flat", "column input_ids is integer, not a list of whole numbers"},
        {"nested", "column input_ids is a list of list, not a list"},
        {"tokens", "no column input_ids, but: text, messages"},
        {"mask", "column labels is integer, not a list of whole numbers"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct documents d = {0};
        kit_fails(read_all(&d, kit_path(GOLDEN "not-%s.arrow", cases[i].name)),
                  E_FORMAT, cases[i].why);
        documents_drop(&d);
    }
}
END_TEST

/* ---- damage ---- */

/* A file that lies in memory, whose bytes can be changed in place. */
struct clay {
    int fd;
    size_t size;
    char path[40];
    char *bytes;
};

static void clay_open(struct clay *c, const char *name)
{
    c->bytes = kit_read(kit_path(GOLDEN "%s.arrow", name), &c->size);
    mallopt(M_MMAP_THRESHOLD, 1 << 30); // else every read maps its buffers anew
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    c->fd = memfd_create("arrow", 0);
    ck_assert_int_ge(c->fd, 0);
    snprintf(c->path, sizeof c->path, "/proc/self/fd/%d", c->fd);
}

static int clay_read(const struct clay *c, size_t n)
{
    struct documents d = {0};
    if (pwrite(c->fd, c->bytes, c->size, 0) != (ssize_t)c->size ||
        ftruncate(c->fd, (off_t)n) != 0)
        ck_abort_msg("cannot write to memory");
    int rc = read_all(&d, c->path);
    check_promises(&d);
    documents_drop(&d);
    return rc;
}

static void clay_close(struct clay *c)
{
    close(c->fd);
    mem_free(c->bytes);
}

/* Two streams in a row may be cut between them. */
START_TEST(cut_anywhere)
{
    static const char *const names[] = {"plain", "file-zstd", "lz4",  "others",
                                        "empty", "batches",   "fixed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct clay c;
        clay_open(&c, names[i]);
        for (size_t n = c.size - 1; n > 0; n--)
            if (clay_read(&c, n) != E_FORMAT)
                ck_abort_msg("%s passes with %zu of %zu bytes", names[i], n, c.size);
        clay_close(&c);
    }
}
END_TEST

START_TEST(any_byte_changed)
{
    static const char *const names[] = {"plain",  "file-zstd", "lz4",
                                        "others", "fixed",     "nulls"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct clay c;
        clay_open(&c, names[i]);
        for (size_t at = 0; at < c.size; at++) {
            char was = c.bytes[at];
            static const int flips[] = {0x01, 0x80, 0xff};
            for (int k = 0; k < 3; k++) {
                c.bytes[at] = (char)(was ^ flips[k]);
                int rc = clay_read(&c, c.size);
                if (rc != 0 && rc != E_FORMAT && rc != E_MEMORY)
                    ck_abort_msg("%s: byte %zu: %d", names[i], at, rc);
            }
            c.bytes[at] = was;
        }
        clay_close(&c);
    }
}
END_TEST

/* The nth place, from 0, at which these bytes stand. */
static char *find(struct clay *c, const void *what, size_t n, int nth)
{
    char *at = c->bytes;
    for (;; at++) {
        at = memmem(at, c->size - (size_t)(at - c->bytes), what, n);
        ck_assert_msg(at != NULL, "the number is not there");
        if (nth-- == 0)
            return at;
    }
}

/* Writes another number in place of one, reads, and repairs. */
static int read_changed(struct clay *c, int64_t was, int nth, int64_t now)
{
    char *at = find(c, &was, sizeof was, nth);
    memcpy(at, &now, sizeof now);
    int rc = clay_read(c, c->size);
    memcpy(at, &was, sizeof was);
    return rc;
}

START_TEST(sizes_that_lie)
{
    struct clay c;
    int64_t rows = 97, items = 0;
    for (int i = 0; i < rows; i++)
        items += (i * 5 + 3) % 13;
    clay_open(&c, "plain");
    kit_ok(clay_read(&c, c.size));
    /* rows of the batch, and of the two columns */
    kit_fails(read_changed(&c, rows, 0, (int64_t)1 << 31), E_FORMAT,
              "record 0: column input_ids: 97 rows in a batch of 2147483648");
    kit_fails(read_changed(&c, rows, 0, -1), E_FORMAT, "is damaged");
    kit_fails(read_changed(&c, rows, 1, (int64_t)1 << 31), E_FORMAT,
              "column input_ids: 2147483648 rows in a batch of 97");
    kit_fails(read_changed(&c, rows, 2, -97), E_FORMAT, "column loss_mask: 0 nulls");
    kit_fails(read_changed(&c, rows, 2, INT64_MAX), E_FORMAT, "are too many");
    /* items, and buffers that hold them */
    kit_fails(read_changed(&c, items, 1, (int64_t)1 << 40), E_FORMAT,
              "column input_ids: a buffer of");
    kit_fails(read_changed(&c, items, 1, items - 1), E_FORMAT, "its offsets are");
    kit_fails(read_changed(&c, items * 4, 0, -1), E_FORMAT, "lie outside a body");
    kit_fails(read_changed(&c, items * 4, 0, INT64_MAX), E_FORMAT,
              "lie outside a body");
    kit_fails(read_changed(&c, items * 4, 0, items * 4 - 1), E_FORMAT,
              "where 2296 are needed");
    /* all rows at once: the batch and both columns agree, the offsets are too few */
    char *at[3];
    int64_t many = (int64_t)1 << 31;
    for (int i = 0; i < 3; i++)
        at[i] = find(&c, &rows, sizeof rows, i);
    for (int i = 0; i < 3; i++)
        memcpy(at[i], &many, sizeof many);
    kit_fails(clay_read(&c, c.size), E_FORMAT, "where 8589934596 are needed");
    clay_close(&c);
}
END_TEST

START_TEST(offsets_that_lie)
{
    static const int32_t narrow[] = {0, 3, 11, 11, 16};
    static const int64_t wide[] = {0, 3, 11, 11, 16};
    struct clay c;
    clay_open(&c, "plain");
    int32_t *ids = (int32_t *)(void *)find(&c, narrow, sizeof narrow, 0);
    ids[2] = 17;
    kit_fails(clay_read(&c, c.size), E_FORMAT,
              "record 2: column input_ids: its offsets are 17 and 11 in");
    ids[2] = -11;
    kit_fails(clay_read(&c, c.size), E_FORMAT, "record 1: column input_ids");
    ids[2] = 11;
    ids[3] = INT32_MAX;
    kit_fails(clay_read(&c, c.size), E_FORMAT, "record 2: column input_ids");
    ids[3] = 11;
    ids[1] = 4; // the mask has one token less, and one more
    kit_ok(clay_read(&c, c.size));
    ids[1] = 3;
    int64_t *mask = (int64_t *)(void *)find(&c, wide, sizeof wide, 0);
    mask[1] = INT64_MIN;
    kit_fails(clay_read(&c, c.size), E_FORMAT, "record 0: column loss_mask");
    clay_close(&c);
}
END_TEST

/* A compressed buffer that announces more than anyone needs, or other than it has. */
START_TEST(bombs)
{
    static const struct {
        const char *name, *magic;
    } cases[] = {{"zstd", "\x28\xb5\x2f\xfd"}, {"lz4", "\x04\x22\x4d\x18"}};
    for (size_t i = 0; i < 2; i++) {
        struct clay c;
        clay_open(&c, cases[i].name);
        char *at = find(&c, cases[i].magic, 4, 1) - 8; // of the ids
        int64_t was, lies[] = {(int64_t)1 << 40, -2, 1, -1};
        memcpy(&was, at, sizeof was);
        lies[2] += was;
        lies[3] += was;
        const char *why[] = {"announces 1099511627776 bytes", "announces -2 bytes",
                             "announced", "cannot unpack"};
        for (int k = 0; k < 4; k++) {
            memcpy(at, &lies[k], sizeof was);
            kit_fails(clay_read(&c, c.size), E_FORMAT, why[k]);
        }
        clay_close(&c);
    }
}
END_TEST

START_TEST(footers)
{
    struct clay c;
    clay_open(&c, "file");
    char *length = c.bytes + c.size - 10;
    ++*length;
    kit_fails(clay_read(&c, c.size), E_FORMAT, "its footer has");
    --*length;
    c.bytes[c.size - 1] = '2';
    kit_fails(clay_read(&c, c.size), E_FORMAT, "does not end in ARROW1");
    clay_close(&c);
}
END_TEST

/* ---- folders ---- */

static int list(struct input *in, const char *folder, const char *split)
{
    char *operand[] = {(char *)folder, NULL};
    return input_list(in, operand, &(struct input_choice){.split = split});
}

static void read_listed(struct documents *d, const struct input *in)
{
    int64_t before = 0;
    for (int64_t i = 0; i < in->n; i++) {
        kit_ok(read_all(d, in->at[i].path));
        int64_t n = d->n;
        for (int64_t k = before; k < n; k++) // records count through all files
            d->at[k].record += before;
        before = n;
    }
}

static void folder_is(const char *folder, const char *split, const char *lines)
{
    struct input in;
    struct documents arrow = {0}, json = {0};
    kit_ok(list(&in, folder, split));
    read_listed(&arrow, &in);
    kit_ok(read_all(&json, lines));
    same(folder, &arrow, &json, true);
    documents_drop(&arrow);
    documents_drop(&json);
    input_drop(&in);
}

START_TEST(saved_datasets)
{
    folder_is(GOLDEN "saved", NULL, GOLDEN "saved.jsonl");
    folder_is(GOLDEN "dict", NULL, GOLDEN "dict.jsonl");
    folder_is(GOLDEN "dict", "train", GOLDEN "dict.jsonl");
    folder_is(GOLDEN "dict", "test", GOLDEN "dict-test.jsonl");
    folder_is(GOLDEN "dict/test", NULL, GOLDEN "dict-test.jsonl");
    struct input in;
    kit_fails(list(&in, GOLDEN "dict", "dev"), E_MISSING,
              "no split \"dev\", but: train, test");
    input_drop(&in);
    kit_fails(list(&in, GOLDEN "saved", "test"), E_USAGE, "no folder has splits");
    input_drop(&in);
}
END_TEST

static const char *state(const char *dir, const char *text)
{
    kit_write_text(kit_path("%s/state.json", dir), text);
    return dir;
}

START_TEST(the_list_decides)
{
    struct input in;
    const char *dir = kit_tmp_dir();
    for (const char *n = "abc"; *n; n++)
        kit_write_text(kit_path("%s/%c.arrow", dir, *n), "");
    kit_write_text(kit_path("%s/cache-1.arrow", dir), "");
    kit_ok(list(&in,
                state(dir, "{\"_data_files\": [{\"filename\": \"c.arrow\"}, "
                           "{\"filename\": \"a.arrow\"}], \"_split\": null}"),
                NULL));
    ck_assert_int_eq(in.n, 2);
    ck_assert_str_eq(in.at[0].name, "c.arrow");
    ck_assert_str_eq(in.at[1].name, "a.arrow");
    input_drop(&in);
    kit_ok(list(&in, state(dir, "{\"other\": 1}"), NULL)); // of another program
    ck_assert_int_eq(in.n, 4);
    input_drop(&in);
    static const struct {
        const char *text, *why;
        int code;
    } bad[] = {
        {"{\"_data_files\": [{\"filename\": \"../a.arrow\"}]}", "cannot be a name",
         E_FORMAT},
        {"{\"_data_files\": [{\"filename\": \"b/a.arrow\"}]}", "cannot be a name",
         E_FORMAT},
        {"{\"_data_files\": [{\"filename\": \"d.arrow\"}]}", "d.arrow", E_MISSING},
        {"{\"_data_files\": [\"a.arrow\"]}", "filename", E_FORMAT},
        {"{\"_data_files\": {}}", "an array", E_FORMAT},
        {"{\"_data_files\": [{\"filename\": \"a.arrow\"}], \"_indices_data_files\": "
         "[{\"filename\": \"b.arrow\"}]}",
         "a selection of rows", E_FORMAT},
        {"{", "state.json", E_FORMAT}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit_fails(list(&in, state(dir, bad[i].text), NULL), bad[i].code, bad[i].why);
        input_drop(&in);
    }
}
END_TEST

START_TEST(splits)
{
    struct input in;
    const char *dir = kit_tmp_dir(), *dict = kit_path("%s/dataset_dict.json", dir);
    ck_assert_int_eq(file_make_dirs(kit_path("%s/dev", dir)), 0);
    kit_write_text(kit_path("%s/dev/a.jsonl", dir), "");
    kit_write_text(dict, "{\"splits\": [\"dev\"]}");
    kit_ok(list(&in, dir, NULL)); // the only one
    ck_assert_int_eq(in.n, 1);
    ck_assert_uint_eq(in.said.len, 0);
    input_drop(&in);
    kit_write_text(dict, "{\"splits\": [\"dev\", \"test\"]}");
    kit_fails(list(&in, dir, NULL), E_USAGE, "choose one with --split: dev, test");
    input_drop(&in);
    kit_ok(list(&in, dir, "dev"));
    ck_assert_ptr_nonnull(strstr(in.said.p, "split dev, of dev, test"));
    input_drop(&in);
    kit_write_text(dict, "{\"splits\": [\"..\"]}");
    kit_fails(list(&in, dir, NULL), E_FORMAT, "cannot be a name");
    input_drop(&in);
    kit_write_text(dict, "{\"splits\": [1]}");
    kit_fails(list(&in, dir, NULL), E_FORMAT, "dataset_dict");
    input_drop(&in);
}
END_TEST

START_TEST(parquet)
{
    struct documents d = {0};
    const char *path = kit_path("%s/x", kit_tmp_dir());
    kit_write(path, "PAR1\25\4", 6);
    kit_fails(read_all(&d, path), E_FORMAT, "Parquet is not read; convert it: python3");
    documents_drop(&d);
}
END_TEST

KIT_MAIN("arrow", same_as_json_lines, reasons, one_part_of_three, long_records,
         columns_that_are_not_ours, cut_anywhere, any_byte_changed, sizes_that_lie,
         offsets_that_lie, bombs, footers, saved_datasets, the_list_decides, splits,
         parquet)
