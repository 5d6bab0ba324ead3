/* SPDX-License-Identifier: MIT */
/* test_safetensors.c - round trips, the limits of the format, checkpoint folders. */
#include "safetensors.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "kit.h"
#include "mem.h"

/* A file of this header, padded to a multiple of 8, and n bytes of data; its path. */
static const char *file_of(const char *header, size_t n)
{
    const char *path = kit_path("%s/x.safetensors", kit_tmp_dir());
    struct buf b = {0};
    size_t used = strlen(header);
    uint64_t length = (used + 7) / 8 * 8;
    buf_add(&b, &length, sizeof length);
    buf_adds(&b, header);
    buf_fill(&b, ' ', length - used);
    for (size_t i = 0; i < n; i++)
        buf_addc(&b, (char)i);
    kit_write(path, b.p, b.len);
    buf_drop(&b);
    return path;
}

/* Expects that a header over n bytes of data is refused with a text. */
static void refuses(const char *header, size_t n, const char *text)
{
    struct st_file f;
    const char *path = file_of(header, n);
    kit_fails(st_open(&f, path), E_FORMAT, text);
    ck_assert_msg(strstr(err_text(), path), "no path in: %s", err_text());
}

#define X(shape, range)                                                                \
    "{\"x\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" range "}}"

START_TEST(round_trip)
{
    struct st_tensor t[] = {
        {.name = "wide", .type = ST_I64, .rank = 2, .dim = {2, 1}},
        {.name = "scalar", .type = ST_F32, .rank = 0},
        {.name = "empty", .type = ST_BF16, .rank = 2, .dim = {0, 7}},
        {.name = "q\"\n\xc3\xa9", .type = ST_BOOL, .rank = 1, .dim = {3}},
    };
    const char *const meta[] = {"z", "last first", "a", "\\"};
    struct buf b = {0};
    kit_ok(st_header_write(&b, t, 4, meta, 2, 4096));
    ck_assert_uint_eq(b.len, 4096);
    for (int i = 0; i < 23; i++)
        buf_addc(&b, (char)(i + 1));
    const char *path = kit_path("%s/x", kit_tmp_dir());
    kit_write(path, b.p, b.len);

    struct st_file f;
    kit_ok(st_open(&f, path));
    ck_assert_int_eq(f.header.tensors, 4);
    ck_assert_uint_eq(f.header.data_bytes, 23);
    ck_assert_str_eq(f.header.meta[0], "z");
    ck_assert_str_eq(st_meta(&f.header, "a"), "\\");
    ck_assert_ptr_null(st_meta(&f.header, "b"));
    const struct st_tensor *x = st_find(&f.header, "q\"\n\xc3\xa9");
    ck_assert_ptr_nonnull(x);
    kit_same("data", st_data(&f, x), "\x15\x16\x17", 3);
    ck_assert_int_eq(st_count(st_find(&f.header, "scalar")), 1);
    ck_assert_int_eq(st_count(st_find(&f.header, "empty")), 0);
    ck_assert_ptr_null(st_find(&f.header, "none"));
    st_close(&f);
    buf_drop(&b);
}
END_TEST

START_TEST(types)
{
    for (int i = ST_U8; i <= ST_BOOL; i++) {
        char header[200];
        struct st_file f;
        size_t size = st_type_size((enum st_type)i);
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}",
                 st_type_name((enum st_type)i), 3 * size);
        kit_ok(st_open(&f, file_of(header, 3 * size)));
        ck_assert_int_eq(f.header.tensor[0].type, i);
        st_close(&f);
    }
    refuses("{\"x\":{\"dtype\":\"F8_E5M2\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
            "tensor x: unknown type \"F8_E5M2\"");
}
END_TEST

START_TEST(lengths)
{
    struct st_file f;
    const char *path = kit_path("%s/x", kit_tmp_dir());
    kit_write(path, "", 0);
    kit_fails(st_open(&f, path), E_FORMAT, "0 bytes");
    kit_write(path, "\2\0\0\0\0\0\0", 7);
    kit_fails(st_open(&f, path), E_FORMAT, "7 bytes");
    kit_write(path, "\3\0\0\0\0\0\0\0{}", 10);
    kit_fails(st_open(&f, path), E_FORMAT, "cut: header of 3 bytes");
    kit_write(path, "\0\0\0\0\0\0\0\0", 8);
    kit_fails(st_open(&f, path), E_FORMAT, "begin");
    kit_write(path, "\1\0\x40\6\0\0\0\0{}", 10); // 100 MiB + 1
    kit_fails(st_open(&f, path), E_FORMAT, "at most");
    kit_write(path, "\2\0\0\0\0\0\0\x80{}", 10);
    kit_fails(st_open(&f, path), E_FORMAT, "at most");
    kit_write(path, "\2\0\0\0\0\0\0\0{}", 10);
    kit_ok(st_open(&f, path));
    st_close(&f);
    kit_fails(st_open(&f, kit_path("%s/none", kit_tmp_dir())), E_MISSING, "none");
}
END_TEST

START_TEST(every_cut)
{
    char header[] = X("[2]", "[0,8]");
    size_t n;
    char *all = kit_read(file_of(header, 8), &n);
    const char *path = kit_path("%s/x", kit_tmp_dir());
    for (size_t i = 0; i < n; i++) {
        struct st_file f;
        kit_write(path, all, i);
        kit_fails(st_open(&f, path), E_FORMAT, path);
    }
    mem_free(all);
}
END_TEST

START_TEST(ranges)
{
    refuses(X("[2]", "[0,4]"), 4, "tensor x: its shape has 8 bytes, its range 4");
    refuses(X("[2]", "[0,8]"), 7, "cut: data of 7 bytes");
    refuses(X("[2]", "[0,8]"), 9, "1 bytes behind the last tensor");
    refuses(X("[2]", "[4,12]"), 12, "tensor x: begins at byte 4, behind byte 0");
    refuses(X("[2]", "[-8,0]"), 8, "not a range");
    refuses(X("[2]", "[8,0]"), 8, "not a range");
    refuses(X("[2]", "[0]"), 8, "not a pair");
    refuses(X("[2]", "[0,8,8]"), 8, "not a pair");
    refuses(X("[2]", "[0,8.0]"), 8, "expected an integer");
    refuses(X("[2]", "[0,9223372036854775808]"), 8, "header");
    refuses(X("[1]", "[9223372036854775804,9223372036854775807]"), 8, "its range 3");
}
END_TEST

START_TEST(shapes)
{
    refuses(X("[-1]", "[0,8]"), 8, "dimension 0 of -1");
    refuses(X("[4611686018427387904]", "[0,0]"), 0, "out of range");
    refuses(X("[4294967296,4294967296]", "[0,0]"), 0, "dimension 1");
    refuses(X("[0,4294967296,4294967296]", "[0,0]"), 0, "dimension 2");
    refuses(X("[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, "rank 9");
    refuses(X("2", "[0,8]"), 8, "shape");
    refuses(X("[\"2\"]", "[0,8]"), 8, "expected an integer");
}
END_TEST

#define PAIR(a, b)                                                                     \
    "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" a "},"                  \
    "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" b "}}"

START_TEST(cover)
{
    struct st_file f;
    kit_ok(st_open(&f, file_of(PAIR("[4,8]", "[0,4]"), 8)));
    ck_assert_str_eq(f.header.tensor[0].name, "y"); // in the order of the data
    st_close(&f);
    refuses(PAIR("[0,4]", "[0,4]"), 4, "tensor y: begins at byte 0, inside byte 4");
    refuses(PAIR("[0,4]", "[3,7]"), 7, "tensor y: begins at byte 3, inside byte 4");
    refuses(PAIR("[0,4]", "[5,9]"), 9, "tensor y: begins at byte 5, behind byte 4");
    refuses("{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
            5, "tensor y: not aligned");
}
END_TEST

START_TEST(json)
{
    refuses("[]", 0, "does not begin with {");
    refuses(" {}", 0, "does not begin with {");
    refuses("{} x", 0, "header: bad JSON");
    refuses("{", 0, "header: bad JSON");
    refuses("{\"x\":1}", 0, "tensor x: expected dtype");
    refuses("{\"x\":[1,2,3]}", 0, "tensor x");
    refuses("{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"z\":1}}", 1,
            "tensor x: expected dtype");
    refuses("{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"offsets\":[0,1]}}", 1,
            "data_offsets");
    refuses("{\"x\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}}", 1, "dtype");
    refuses("{\"x\\u0000\":{}}", 0, "header: bad JSON");
    refuses("{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
            "\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]}}",
            2, "duplicate");
    refuses("{\"__metadata__\":1}", 0, "__metadata__ is not an object");
    refuses("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ \"a\"");
    refuses("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "duplicate");
}
END_TEST

START_TEST(need)
{
    struct st_file f;
    const struct st_tensor *t;
    kit_ok(st_open(&f, file_of(X("[1,2]", "[0,8]"), 8)));
    kit_ok(st_need(&f, "x", &t, 2, (const int64_t[]){1, 2}));
    kit_ok(st_need(&f, "x", &t, 2, (const int64_t[]){-1, 2}));
    kit_fails(st_need(&f, "y", &t, 2, (const int64_t[]){1, 2}), E_FORMAT,
              "no tensor y");
    kit_fails(st_need(&f, "x", &t, 2, (const int64_t[]){-1, 3}), E_FORMAT,
              "tensor x: found shape [1,2], expected [any,3]");
    kit_fails(st_need(&f, "x", &t, 1, (const int64_t[]){2}), E_FORMAT, "expected [2]");
    st_close(&f);
}
END_TEST

/* ---- folders ---- */

static void put_tensor(const char *dir, const char *file, const char *a, const char *b,
                       float value)
{
    struct st_tensor t[2] = {
        {.name = (char *)(uintptr_t)a, .type = ST_F32, .rank = 1, .dim = {1}},
        {.name = (char *)(uintptr_t)b, .type = ST_F32, .rank = 1, .dim = {1}}};
    struct buf out = {0};
    int n = b ? 2 : 1;
    kit_ok(st_header_write(&out, t, n, NULL, 0, 8));
    for (int i = 0; i < n; i++, value++)
        buf_add(&out, &value, sizeof value);
    kit_write(kit_path("%s/%s", dir, file), out.p, out.len);
    buf_drop(&out);
}

static void put_index(const char *dir, const char *map)
{
    char text[400];
    snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":8},\"weight_map\":%s}",
             map);
    kit_write_text(kit_path("%s/model.safetensors.index.json", dir), text);
}

START_TEST(folders)
{
    const char *dir = kit_tmp_dir();
    struct st_model m;
    uint64_t one, two, changed;
    kit_fails(st_model_open(&m, dir), E_MISSING, "model.safetensors");
    put_tensor(dir, "model.safetensors", "b", "a", 1);
    kit_write_text(kit_path("%s/config.json", dir), "{}");
    kit_ok(st_model_open(&m, dir));
    ck_assert_int_eq(m.entries, 2);
    ck_assert_str_eq(m.entry[0].name, "a");
    ck_assert_float_eq(*(const float *)st_data(m.entry[0].file, m.entry[0].tensor), 2);
    ck_assert_ptr_null(st_model_find(&m, "c"));
    kit_ok(st_model_digest(&m, &one));
    st_model_close(&m);

    /* The same tensors spread over two files are the same model; model.safetensors
     * still lies there and is not looked at. */
    put_tensor(dir, "m-1", "b", "unused", 1);
    put_tensor(dir, "m-2", "a", NULL, 2);
    put_index(dir, "{\"a\":\"m-2\",\"b\":\"m-1\"}");
    kit_ok(st_model_open(&m, dir));
    ck_assert_int_eq(m.files, 2);
    ck_assert_int_eq(m.entries, 2);
    ck_assert_ptr_nonnull(st_model_find(&m, "b"));
    ck_assert_ptr_null(st_model_find(&m, "unused"));
    kit_ok(st_model_digest(&m, &two));
    ck_assert_uint_eq(one, two);
    st_model_close(&m);

    /* A tensor that two files have is the one of the file that the index names. */
    put_tensor(dir, "m-2", "a", "b", 2);
    kit_ok(st_model_open(&m, dir));
    const struct st_entry *b = st_model_find(&m, "b");
    ck_assert_float_eq(*(const float *)st_data(b->file, b->tensor), 1);
    st_model_close(&m);

    put_tensor(dir, "m-2", "a", NULL, 3);
    kit_ok(st_model_open(&m, dir));
    kit_ok(st_model_digest(&m, &changed));
    ck_assert_uint_ne(one, changed);
    st_model_close(&m);
}
END_TEST

START_TEST(bad_index)
{
    const char *dir = kit_tmp_dir();
    struct st_model m;
    put_tensor(dir, "m-1", "a", "b", 1);
    put_index(dir, "{\"a\":\"m-1\",\"c\":\"m-1\"}");
    kit_fails(st_model_open(&m, dir), E_FORMAT, "tensor c is promised in m-1");
    put_index(dir, "{\"a\":\"m-1\",\"b\":\"m-2\"}");
    kit_fails(st_model_open(&m, dir), E_MISSING, "m-2");
    put_index(dir, "{\"a\":\"../m-1\"}");
    kit_fails(st_model_open(&m, dir), E_FORMAT, "not a file name");
    put_index(dir, "{\"a\":\"/etc/passwd\"}");
    kit_fails(st_model_open(&m, dir), E_FORMAT, "not a file name");
    put_index(dir, "{\"a\":\"\"}");
    kit_fails(st_model_open(&m, dir), E_FORMAT, "not a file name");
    put_index(dir, "{\"a\":1}");
    kit_fails(st_model_open(&m, dir), E_FORMAT, "expected a text");
    put_index(dir, "[]");
    kit_fails(st_model_open(&m, dir), E_FORMAT, "weight_map");
    put_index(dir, "{}");
    kit_ok(st_model_open(&m, dir));
    ck_assert_int_eq(m.entries, 0);
    st_model_close(&m);
}
END_TEST

KIT_MAIN("safetensors", round_trip, types, lengths, every_cut, ranges, shapes, cover,
         json, need, folders, bad_index)
