/* SPDX-License-Identifier: MIT */
/* test_readers.c - files of other libraries, read back equal to the documents that they
 * were made of (tests/golden/make_data.py); and what is odd about files. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "kit.h"
#include "kit_read.h"
#include "mem.h"

#define DATA "tests/golden/data/"

static const struct read_rules rules = {
    .vocab = 300, .parts = 1, .separator = READ_UNSAID};

static struct documents want;

static void load(void)
{
    kit_ok(kit_read_file(&want, DATA "documents.jsonl", "jsonl", &rules));
    ck_assert_int_eq(want.n, 14);
}

/* Equal ids, up to `most` (narrow types hold no more); and masks, if there are. */
static void compare(const char *what, const struct documents *got, int32_t most,
                    bool masks)
{
    printf("%s: %lld documents\n", what, (long long)got->n);
    ck_assert_int_eq(got->n, want.n);
    for (int64_t i = 0; i < want.n; i++) {
        const struct document *g = &got->at[i], *w = &want.at[i];
        if (g->reject)
            ck_abort_msg("%s: document %lld: %s", what, (long long)i,
                         document_why(got, g));
        ck_assert_int_eq(g->n, w->n);
        for (int64_t t = 0; t < w->n; t++) {
            int32_t id = document_ids(&want, w)[t];
            if (document_ids(got, g)[t] != (id < most ? id : most) ||
                document_mask(got, g)[t] != (masks ? document_mask(&want, w)[t] : 1))
                ck_abort_msg("%s: document %lld, token %lld", what, (long long)i,
                             (long long)t);
        }
    }
}

static void read_equal(const char *path, const struct read_rules *how, int32_t most,
                       bool masks)
{
    struct documents got = {0};
    kit_ok(kit_read_input(&got, path, how));
    compare(path, &got, most, masks);
    documents_drop(&got);
}

START_TEST(megatron)
{
    static const struct {
        const char *name;
        int32_t most;
    } types[] = {{"uint8", 255}, {"int8", 127},  {"int16", 300},
                 {"int32", 300}, {"int64", 300}, {"uint16", 300}};
    load();
    for (int i = 0; i < 6; i++) {
        const char *n = types[i].name;
        read_equal(kit_path(DATA "megatron/%s.bin", n), &rules, types[i].most, false);
        read_equal(kit_path(DATA "megatron/%s.idx", n), &rules, types[i].most, false);
    }
}
END_TEST

START_TEST(mosaic)
{
    struct read_rules typed = rules;
    typed.dtype = INTS_I64;
    load();
    read_equal(DATA "mds-static", &rules, 300, true);
    read_equal(DATA "mds-dynamic", &rules, 300, true);
    read_equal(DATA "mds-bytes", &typed, 300, true);
    read_equal(DATA "mds-labels", &rules, 300, true);
    read_equal(DATA "mds-gzip", &rules, 300, true);
    struct documents got = {0};
    kit_fails(kit_read_input(&got, DATA "mds-bytes", &rules), E_USAGE,
              "column loss_mask is bytes: of which type?");
    documents_drop(&got);
}
END_TEST

START_TEST(web_dataset)
{
    load();
    read_equal(DATA "tar/arrays.tgz", &rules, 300, true);
    read_equal(DATA "tar/json.tar.gz", &rules, 300, true);
}
END_TEST

START_TEST(numpy)
{
    struct read_rules cut = rules;
    cut.separator = 0;
    load();
    read_equal(DATA "npy/vector.npy", &cut, 300, false);
    read_equal(DATA "npy/version1.npy", &cut, 300, false);
    read_equal(DATA "npy/version2.npy", &cut, 300, false);
    read_equal(DATA "npy/version3.npy", &cut, 300, false);
    struct documents got = {0};
    cut.dtype = INTS_U16;
    kit_ok(kit_read_file(&got, DATA "npy/plain.u16", "raw", &cut));
    compare("plain", &got, 300, false);
    documents_drop(&got);
}
END_TEST

/* Matrices: the same tokens, ten a row. */
START_TEST(rows_of_a_matrix)
{
    static const char *const paths[] = {DATA "npy/matrix.npy", DATA "mds-shaped"};
    load();
    for (int p = 0; p < 2; p++) {
        struct documents got = {0};
        kit_ok(kit_read_input(&got, paths[p], &rules));
        ck_assert_int_eq(got.n, document_tokens(&want) / 10);
        for (int64_t i = 0; i < got.n; i++)
            ck_assert_int_eq(got.at[i].n, 10);
        kit_same(paths[p], got.ids.p, want.ids.p, got.ids.len);
        documents_drop(&got);
    }
}
END_TEST

/* A file may be one document. */
START_TEST(whole_files)
{
    struct read_rules whole = rules;
    struct documents got = {0};
    whole.separator = READ_WHOLE;
    load();
    kit_ok(kit_read_file(&got, DATA "npy/vector.npy", "auto", &whole));
    ck_assert_int_eq(got.n, 1);
    ck_assert_int_eq(got.at[0].n, document_tokens(&want));
    kit_same("ids", got.ids.p, want.ids.p, want.ids.len);
    documents_drop(&got);
}
END_TEST

START_TEST(what_is_not_read)
{
    static const struct {
        const char *path, *format;
        int64_t separator;
        int code;
        const char *why;
    } cases[] = {
        {"npy/odd-big-endian.npy", "auto", 0, E_FORMAT, "big-endian numbers (\">i4\")"},
        {"npy/odd-fortran.npy", "auto", READ_UNSAID, E_FORMAT, "Fortran order"},
        {"npy/odd-floats.npy", "auto", 0, E_FORMAT, "\"<f4\" is no type of whole"},
        {"npy/odd-cube.npy", "auto", READ_UNSAID, E_FORMAT, "more than two dimensions"},
        {"npy/odd-scalar.npy", "auto", 0, E_FORMAT, "a single number"},
        {"npy/odd-fields.npy", "auto", 0, E_FORMAT, "records of several fields"},
        {"npy/vector.npy", "auto", READ_UNSAID, E_USAGE, "where do documents end?"},
        {"npy/matrix.npy", "auto", 0, E_USAGE, "a document a row"},
        {"npy/plain.u16", "raw", 0, E_USAGE, "numbers of which type?"},
        {"npy/plain.u16", "npy", 0, E_FORMAT, "no magic"},
        {"npy/plain.u16", "mds", 0, E_FORMAT, "no shard of MosaicML's"},
        {"npy/plain.u16", "tar", 0, E_FORMAT, ""},
        {"npy/plain.u16", "megatron", 0, E_FORMAT, "does not end in .bin or .idx"},
        {"npy/plain.u16", "auto", 0, E_FORMAT, "unknown format"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct documents got = {0};
        struct read_rules how = rules;
        how.separator = cases[i].separator;
        kit_fails(kit_read_file(&got, kit_path(DATA "%s", cases[i].path),
                                cases[i].format, &how),
                  cases[i].code, cases[i].why);
        documents_drop(&got);
    }
}
END_TEST

/* A tar of everything that must not be believed: nothing is written anywhere, each is
 * refused by name, and the good ones between them are read. */
START_TEST(odd_members)
{
    static const char *const why[] = {
        NULL,
        "member /etc/evil.json: its name is absolute",
        "member ../../evil.json: its name has a \"..\" component",
        "member data/../../evil2.json: its name has a \"..\" component",
        "member link.json: a link",
        "member hard.json: a link",
        "member device.json: a device or the like",
        "notes.txt: neither .json nor .input_ids.npy is in this record",
        NULL,
        "bad.json: bad JSON",
        "matrix.npy: npy: 31 rows, not one",
        NULL};
    enum { RECORDS = sizeof why / sizeof *why };
    struct documents got = {0};
    kit_ok(kit_read_file(&got, DATA "tar/odd.tar", "auto", &rules));
    for (int64_t i = 0; i < got.n; i++)
        printf("%lld: %s\n", (long long)i,
               got.at[i].reject ? document_why(&got, &got.at[i]) : "read");
    ck_assert_int_eq(got.n, RECORDS);
    for (int64_t i = 0; i < RECORDS; i++) {
        ck_assert_int_eq(got.at[i].record, i);
        ck_assert((why[i] == NULL) == (got.at[i].reject == REJECT_NONE));
        if (why[i])
            ck_assert_ptr_nonnull(strstr(document_why(&got, &got.at[i]), why[i]));
    }
    ck_assert(!file_exists("../../evil.json") && !file_exists("data/0.json") &&
              !file_exists("/etc/evil.json"));
    documents_drop(&got);
}
END_TEST

KIT_MAIN("readers", megatron, mosaic, web_dataset, numpy, rows_of_a_matrix, whole_files,
         what_is_not_read, odd_members)
