/* SPDX-License-Identifier: MIT */
/* test_malformed.c - binary files cut at every byte, with absurd counts, pointers and
 * sizes: an error or a refusal that says what is wrong. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tools/pack/emit.h"
#include "err.h"
#include "kit.h"
#include "kit_read.h"
#include "mem.h"

#define DATA "tests/golden/data/"

static const struct read_rules rules = {.vocab = 300, .parts = 1, .separator = 0};
static const struct read_rules by_rows = {
    .vocab = 300, .parts = 1, .separator = READ_UNSAID};

/* Without the fsync of kit_write: there are thousands of these. */
static void overwrite(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static bool same(const struct documents *a, const struct documents *b)
{
    return a->n == b->n && a->ids.len == b->ids.len &&
           a->reasons.len == b->reasons.len &&
           memcmp(a->ids.p, b->ids.p, a->ids.len) == 0;
}

/* ---- cut ---- */

static void cut_everywhere(const char *name, const char *format, const char *beside,
                           const struct read_rules *how, size_t step)
{
    struct documents want = {0}, got = {0};
    const char *dir = kit_tmp_dir();
    size_t n, m;
    int whole = 0;
    char *data = kit_read(kit_path(DATA "%s", name), &n);
    const char *last = strrchr(name, '/');
    const char *path = kit_path("%s%s", dir, last);
    if (beside) {
        char *other = kit_read(kit_path(DATA "%s", beside), &m);
        overwrite(kit_path("%s%s", dir, strrchr(beside, '/')), other, m);
        mem_free(other);
    }
    overwrite(path, data, n);
    const char *read = beside && strstr(beside, ".bin")
                           ? kit_path("%s%s", dir, strrchr(beside, '/'))
                           : path;
    kit_ok(kit_read_file(&want, read, format, how));
    ck_assert_int_gt(want.n, 0);
    for (size_t cut = n; cut-- > 0; cut -= cut < 3000 || n - cut < 1100 ? 0 : step) {
        ck_assert_int_eq(truncate(path, (off_t)cut), 0);
        documents_clear(&got);
        int rc = kit_read_file(&got, read, format, how);
        whole += rc == 0 && same(&got, &want); // what is missing held nothing
        if (rc != E_FORMAT && !(rc == 0 && same(&got, &want)))
            ck_abort_msg("%s, %zu of %zu bytes: code %d, %lld documents", name, cut, n,
                         rc, (long long)got.n);
    }
    printf("%s: whole without %d bytes\n", name, whole);
    ck_assert(whole == 0 || strstr(name, ".tar"));
    documents_drop(&want);
    documents_drop(&got);
    mem_free(data);
}

START_TEST(cut_at_every_byte)
{
    cut_everywhere("npy/vector.npy", "npy", NULL, &rules, 1);
    cut_everywhere("npy/matrix.npy", "npy", NULL, &by_rows, 1);
    cut_everywhere("npy/version3.npy", "npy", NULL, &rules, 1);
    cut_everywhere("megatron/int32.bin", "megatron", "megatron/int32.idx", &rules, 1);
    cut_everywhere("megatron/int32.idx", "megatron", "megatron/int32.bin", &rules, 1);
    cut_everywhere("mds-static/shard.00000.mds", "mds", NULL, &rules, 1);
    cut_everywhere("mds-dynamic/shard.00000.mds", "mds", NULL, &rules, 1);
    cut_everywhere("tar/odd.tar", "tar", NULL, &rules, 41);
    cut_everywhere("../shards/packed/packed-00000.safetensors", "packed", NULL, &rules,
                   41);
}
END_TEST

/* ---- bytes that lie ---- */

struct lie {
    const char *file, *format, *beside; // read `beside` when it is not NULL
    size_t at;
    const char *bytes;
    size_t n;
    const char *why; // the file's error, or the first refusal
};

#define B(text) text, sizeof text - 1
#define IDX     "megatron/int32.idx", "megatron", "megatron/int32.bin"
#define MDS     "mds-static/shard.00000.mds", "mds", NULL
#define DYN     "mds-dynamic/shard.00000.mds", "mds", NULL
#define NPY     "npy/vector.npy", "npy", NULL
#define ODD     "tar/odd.tar", "tar", NULL

static const struct lie lies[] = {
    /* Magic, version, type, counts, lengths, offsets, documents. */
    {IDX, 0, B("X"), "no index of Megatron's"},
    {IDX, 9, B("\2"), "version 2 is not known"},
    {IDX, 17, B("\7"), "it holds fractions"},
    {IDX, 17, B("\0"), "type 0 is not known"},
    {IDX, 17, B("\xff"), "type 255 is not known"},
    {IDX, 17, B("\5"), "is at byte 148, but the one before it ends at 296"},
    {IDX, 18, B("\0\0\0\x80\0\0\0\0"), "2147483648 sequences"},
    {IDX, 18, B("\0\0\0\0\0\0\0\x40"), "4611686018427387904 sequences"},
    {IDX, 18, B("\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615 sequences"},
    {IDX, 26, B("\0\0\0\0\0\0\0\x40"), "4611686018427387904 ends"},
    {IDX, 26, B("\0\0\0\0\0\0\0\0"), "and 0 ends of documents do not fit"},
    {IDX, 34, B("\xff\xff\xff\xff"), "sequence 0 has -1 tokens"},
    {IDX, 34, B("\xff\xff\xff\x7f"), "sequence 1 is at byte 148"},
    {IDX, 142, B("\1"), "sequence 0 is at byte 1,"},
    {IDX, 149, B("\x80"), "sequence 0 is at byte -9223372036854775808"},
    {IDX, 350, B("\0\0\0\0\0\0\0\x40"), "sequence 26 is at byte 4611686018427387904"},
    {IDX, 358, B("\1"), "document 0 begins at sequence 1"},
    {IDX, 366, B("\x7f"), "document 1 begins at sequence 127"},
    {IDX, 374, B("\0"), "document 2 begins at sequence 0"},
    {IDX, 470, B("\x1a"), "the documents end at sequence 26 of 27"},
    /* The header of a .npy file. */
    {NPY, 0, B("X"), "no magic"},
    {NPY, 6, B("\4"), "version 4.0 is not known"},
    {NPY, 8, B("\xff\xff"), "cut inside the header"},
    {NPY, 6, B("\2\0\xff\xff\xff\xff"), "a header of 4294967295 bytes"},
    {NPY, 10, B("["), "no dict"},
    {NPY, 20, B("'>i8'"), "big-endian"},
    {NPY, 20, B("'<V8'"), "is no type of whole numbers"},
    {NPY, 44, B("True, "), "Fortran order"},
    {NPY, 44, B("Maybe "), "no truth value"},
    {NPY, 60, B("(2147483648,), }   "), "2147483331 numbers are missing"},
    {NPY, 60, B("(4611686018427387904,), } "), "a shape beyond all bounds"},
    {NPY, 60, B("(2147483648, 2147483648), } "), "a shape beyond all bounds"},
    {NPY, 60, B("(99999999999999999999,), } "), "a shape beyond all bounds"},
    {NPY, 60, B("(-1,), }"), "a shape that is no list of numbers"},
    {NPY, 60, B("(), }   "), "a single number"},
    {NPY, 60, B("(1,2,3), }   "), "more than two dimensions"},
    {NPY, 60, B("(316,), }"), "8 bytes behind the last number"},
    {NPY, 60, B("(317,), 'shape': (317,), }"), "is odd or there twice"},
    {NPY, 128, B("\xff\xff\xff\xff\xff\xff\xff\xff"), "input_ids[0] is -1, outside"},
    {NPY, 128, B("\0\0\0\0\1\0\0\0"), "input_ids[0] is 4294967296, outside"},
    /* Counts, offsets, the header and a sample of an MDS shard. */
    {MDS, 0, B("\0\0\0\x80"), "2147483648 samples"},
    {MDS, 0, B("\0\0\0\0"), "0 samples"},
    {MDS, 4, B("\xff\xff\xff\xff"), "from byte 4294967295"},
    {MDS, 8, B("\0\0\0\0"), "record 0 from byte 280 to 0"},
    {MDS, 8, B("\xff\xff\xff\xff"), "from byte 280 to 4294967295"},
    {MDS, 64, B("["), "bad JSON"},
    {MDS, 66, B("column_encodingz"), "column_encodings"},
    {MDS, 87, B("pickle-object"), "column input_ids is \"pickle-object\""},
    {MDS, 87, B("ndarray:flo32"), "column input_ids is \"ndarray:flo32\""},
    {MDS, 139, B("input_idz"), "no column input_ids or tokens"},
    {MDS, 280, B("\xff\xff\xff\xff"), "column 0 goes beyond its sample"},
    {MDS, 280, B("\x95"), "147 bytes for 37 numbers of 4"},
    {MDS, 288, B("\x08"), "an array that is not of one dimension"},
    {MDS, 289, B("\xff"), "148 bytes for 255 numbers of 4"},
    {DYN, 292, B("\x22"), "an array that is not of whole numbers"},
    {DYN, 293, B("\x07\xff\xff\xff\xff\xff\xff\xff\x7f"), "numbers of 8"},
    /* Size and checksum of a tar's header. */
    {ODD, 512 + 124, B("77777777777"), ""},
    {ODD, 512 + 148, B("00000000"), ""},
};

START_TEST(bytes_that_lie)
{
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const struct lie *l = &lies[i];
        struct documents got = {0};
        const char *dir = kit_tmp_dir(), *last = strrchr(l->file, '/');
        const char *path = kit_path("%s%s", dir, last), *why = "";
        size_t n, m;
        char *data = kit_read(kit_path(DATA "%s", l->file), &n);
        ck_assert_uint_le(l->at + l->n, n);
        memcpy(data + l->at, l->bytes, l->n);
        overwrite(path, data, n);
        mem_free(data);
        if (l->beside) {
            data = kit_read(kit_path(DATA "%s", l->beside), &m);
            path = kit_path("%s%s", dir, strrchr(l->beside, '/'));
            overwrite(path, data, m);
            mem_free(data);
        }
        const struct read_rules *how =
            memmem(l->bytes, l->n, "2147483648)", 11) ? &by_rows : &rules;
        int rc = kit_read_file(&got, path, l->format, how);
        for (int64_t k = 0; rc == 0 && !*why && k < got.n; k++)
            if (got.at[k].reject)
                why = document_why(&got, &got.at[k]);
        if (rc < 0)
            why = err_text();
        if ((rc != 0 && rc != E_FORMAT) || !*why || !strstr(why, l->why))
            ck_abort_msg("%s, byte %zu: code %d, \"%s\", expected \"%s\"", l->file,
                         l->at, rc, why, l->why);
        documents_drop(&got);
    }
}
END_TEST

/* X.bin that is longer than its index says. */
START_TEST(more_than_the_index_says)
{
    struct documents got = {0};
    const char *dir = kit_tmp_dir(), *path = kit_path("%s/int32.bin", dir);
    size_t n;
    char *data = kit_read(DATA "megatron/int32.idx", &n);
    overwrite(kit_path("%s/int32.idx", dir), data, n);
    mem_free(data);
    data = kit_read(DATA "megatron/int32.bin", &n);
    overwrite(path, data, n);
    FILE *f = fopen(path, "ab");
    ck_assert(f && fputc(0, f) == 0 && fclose(f) == 0);
    kit_fails(kit_read_file(&got, path, "auto", &rules), E_FORMAT,
              "int32.idx tells of 1268 bytes, the .bin has 1269");
    mem_free(data);
    documents_drop(&got);
}
END_TEST

/* ---- arrays in tars ---- */

static void add_member(struct buf *tar, const char *name, const void *data, size_t n)
{
    char head[512] = {0};
    unsigned sum = 0;
    snprintf(head, 100, "%s", name);
    memcpy(head + 100,
           "0000644\0"
           "0000000\0"
           "0000000\0",
           24);
    snprintf(head + 124, 12, "%011zo", n);
    memcpy(head + 136, "00000000000\0        0", 21);
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    buf_add(tar, head, 512);
    buf_add(tar, data, n);
    buf_fill(tar, 0, (512 - n % 512) % 512);
}

/* A .npy file of bytes. */
static size_t make_npy(char *out, const uint8_t *v, int n)
{
    char dict[80];
    int k = snprintf(dict, sizeof dict,
                     "{'descr':'|u1','fortran_order':False,'shape':(%d,)}\n", n);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (char)k;
    out[9] = 0;
    memcpy(out + 10, dict, (size_t)k);
    memcpy(out + 10 + k, v, (size_t)n);
    return (size_t)(10 + k + n);
}

START_TEST(fields_that_do_not_fit)
{
    static const struct {
        const char *field;
        uint8_t v[4];
        int n;
        const char *why;
    } cases[] = {
        {"loss_mask", {0, 1}, 2, "k.input_ids.npy: loss_mask has 2 items for 3 tokens"},
        {"loss_mask", {0, 1, 2}, 3, "loss_mask[2] is 2, not 0 or 1"},
        {"labels", {1, 2, 4}, 3, "labels[2] is 4 where input_ids has 3"},
        {"labels", {1, 2, 3, 4}, 4, "labels has 4 items for 3 tokens"},
        {"attention_mask",
         {1, 1, 0},
         3,
         "attention_mask[2] is 0: the record is padded"},
        {"attention_mask", {1, 1, 2}, 3, "attention_mask[2] is 2, not 0 or 1"},
        {"attention_mask", {1}, 1, "attention_mask has 1 items"},
        {"tokens", {1}, 1, "the record has two such arrays"},
        {"assistant_masks", {1, 0, 1}, 3, NULL},
        {"nothing", {9}, 1, NULL}};
    const char *path = kit_path("%s/a.tar", kit_tmp_dir());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf tar = {0};
        struct documents got = {0};
        char npy[200];
        add_member(&tar, "k.input_ids.npy", npy,
                   make_npy(npy, (uint8_t[]){1, 2, 3}, 3));
        size_t n = make_npy(npy, cases[i].v, cases[i].n);
        add_member(&tar, kit_path("k.%s.npy", cases[i].field), npy, n);
        add_member(&tar, "empty.npy", npy, make_npy(npy, (uint8_t[]){0}, 0));
        buf_fill(&tar, 0, 1024);
        overwrite(path, tar.p, tar.len);
        kit_ok(kit_read_file(&got, path, "auto", &rules));
        ck_assert_int_eq(got.n, 2);
        ck_assert((got.at[0].reject != 0) == (cases[i].why != NULL));
        if (cases[i].why)
            ck_assert_ptr_nonnull(strstr(document_why(&got, &got.at[0]), cases[i].why));
        ck_assert_int_eq(got.at[1].reject, REJECT_EMPTY);
        buf_drop(&tar);
        documents_drop(&got);
    }
}
END_TEST

/* ---- packed again ---- */

START_TEST(packed_rows)
{
    enum { S = 8 };
    static const int32_t ids[] = {10, 11, 12, 13, 14, 15, 16, 17};
    static const uint8_t mask[] = {0, 1, 1, 0, 1, 1, 0, 1};
    const struct piece row0[] = {{{0, 5, 0}, 3, ids, mask},
                                 {{0, 5, 3}, 2, ids + 3, mask + 3},
                                 {{0, 6, 5}, 2, ids + 5, mask + 5}};
    const struct piece row1[] = {{{0, 5, 9}, 4, ids, mask},
                                 {{1, 5, 13}, 4, ids + 4, mask}};
    const struct emit_of of = {"train", "", "0", S, 0, 1};
    static const int64_t length[] = {5, 2, 4, 4}, record[] = {0, 2, 3, 4};
    const char *dir = kit_path("%s/p", kit_tmp_dir());
    struct documents got = {0};
    struct emit e;
    kit_ok(emit_open(&e, dir, &of));
    kit_ok(emit_row(&e, row0, 3));
    kit_ok(emit_row(&e, row1, 2));
    kit_ok(emit_finish(&e, "0", "[]"));
    kit_ok(kit_read_input(&got, dir, &rules));
    ck_assert_int_eq(got.n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(got.at[i].n, length[i]);
        ck_assert_int_eq(got.at[i].record, record[i]);
    }
    kit_same("first", document_ids(&got, &got.at[0]), ids, 5 * sizeof *ids);
    kit_same("its mask", document_mask(&got, &got.at[0]), mask, 5);
    kit_same("last", document_ids(&got, &got.at[3]), ids + 4, 4 * sizeof *ids);
    documents_clear(&got);
    ck_assert_int_eq(remove(kit_path("%s/packed-end.safetensors", dir)), 0);
    kit_fails(kit_read_input(&got, dir, &rules), E_FORMAT, "incomplete");
    kit_ok(kit_read_file(&got, kit_path("%s/packed-00000.safetensors", dir), "auto",
                         &rules));
    ck_assert_int_eq(got.n, 4);
    documents_drop(&got);
}
END_TEST

START_TEST(shards_that_are_not_packed_rows)
{
    struct documents got = {0};
    kit_fails(kit_read_input(&got, "tests/golden/shards/hidden", &rules), E_FORMAT,
              "only packed rows can be packed anew");
    const char *path = kit_path("%s/a.safetensors", kit_tmp_dir());
    size_t n;
    char *data = kit_read("tests/golden/shards/packed/packed-00000.safetensors", &n);
    data[n - 1] ^= 1;
    overwrite(path, data, n);
    kit_fails(kit_read_file(&got, path, "auto", &rules), E_FORMAT, "checksum");
    mem_free(data);
    documents_drop(&got);
}
END_TEST

KIT_MAIN("malformed", cut_at_every_byte, bytes_that_lie, more_than_the_index_says,
         fields_that_do_not_fit, packed_rows, shards_that_are_not_packed_rows)
