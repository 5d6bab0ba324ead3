/* SPDX-License-Identifier: MIT */
/* test_json.c - what is refused and where, getters, and that what is written reads back
 * equal, to the bit for numbers. */
#include <math.h>
#include <string.h>

#include "err.h"
#include "json.h"
#include "kit.h"
#include "rng.h"

static struct json *parsed(const char *text)
{
    struct json *root = NULL;
    kit_ok(json_parse(&root, text, strlen(text)));
    return root;
}

START_TEST(refuses)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "line 1"},
               {"{", "line 1"},
               {"{\"a\": 1,\n \"a\": 2}", "line 2, column 4: duplicate object key"},
               {"[1] x", "end of file expected"},
               {"[1,]", "column"},
               {"[01]", "column"},
               {"[NaN]", "column"},
               {"[1e999]", "real number overflow"},
               {"[9223372036854775808]", "too big integer"},
               {"[\"\\u0000\"]", "\\u0000"},
               {"[\"\xff\"]", "byte 0xff"},
               {"['a']", "column"},
               {"// no\n1", "column"}};
    struct json *root;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(json_parse(&root, bad[i].text, strlen(bad[i].text)), E_FORMAT,
                  bad[i].why);
    kit_fails(json_parse(&root, NULL, 0), E_FORMAT, "line 1");
    kit_fails(json_parse(&root, "[1]\0x", 5), E_FORMAT, "a NUL at byte 3");
    char deep[20000];
    memset(deep, '[', sizeof deep);
    kit_fails(json_parse(&root, deep, sizeof deep), E_FORMAT, "depth");
}
END_TEST

START_TEST(need_and_have)
{
    struct json *o =
        parsed("{\"i\": 7, \"r\": 2.5, \"b\": true, \"t\": \"x\", \"n\": null,"
               " \"a\": [1, 2.5, \"y\"], \"o\": {\"k\": 1}}");
    int64_t i = 0;
    double r = 0;
    bool b = false;
    const char *t = NULL;
    const struct json *v = NULL;
    kit_ok(json_need_int(o, "i", &i));
    kit_ok(json_need_real(o, "r", &r));
    kit_ok(json_need_bool(o, "b", &b));
    kit_ok(json_need_text(o, "t", &t));
    ck_assert(i == 7 && r == 2.5 && b && strcmp(t, "x") == 0);
    kit_ok(json_need_real(o, "i", &r)); // an integer is a real
    ck_assert_double_eq(r, 7);
    kit_fails(json_need_int(o, "r", &i), E_FORMAT,
              "key \"r\": expected an integer, found a number");
    kit_fails(json_need_int(o, "z", &i), E_FORMAT, "no key \"z\"");
    kit_fails(json_need_text(o, "n", &t), E_FORMAT, "found null");
    kit_fails(json_need_bool(o, "o", &b), E_FORMAT, "found an object");
    kit_fails(json_need_array(o, "o", &v), E_FORMAT, "expected an array");
    kit_fails(json_need_object(o, "a", &v), E_FORMAT,
              "expected an object, found an array");
    i = 99;
    ck_assert_int_eq(json_have_int(o, "z", &i), 0);
    ck_assert_int_eq(json_have_int(o, "n", &i), 0);
    ck_assert_int_eq(i, 99);
    ck_assert_int_eq(json_have_int(o, "i", &i), 1);
    ck_assert_int_eq(i, 7);
    kit_fails(json_have_int(o, "t", &i), E_FORMAT, "found a text");
    ck_assert_int_eq(json_have_real(o, "i", &r), 1);
    ck_assert_int_eq(json_have_bool(o, "b", &b), 1);
    ck_assert_int_eq(json_have_text(o, "t", &t), 1);
    json_free(o);
}
END_TEST

START_TEST(walks)
{
    struct json *o = parsed("{\"z\": [1, 2.5, \"y\", 3], \"b\": {}, \"a\": null}");
    const struct json *a = json_get(o, "z");
    int64_t i;
    double r;
    const char *t;
    ck_assert(json_is_array(a) && json_size(a) == 4 && json_size(o) == 3);
    ck_assert(json_is_object(json_get(o, "b")) && json_is_null(json_get(o, "a")));
    ck_assert(json_size(json_get(o, "a")) == 0 && !json_get(o, "none"));
    ck_assert(json_is_text(json_at(a, 2)) && !json_at(a, 4) && !json_at(a, -1));
    kit_ok(json_to_int(json_at(a, 3), &i));
    kit_ok(json_to_real(json_at(a, 1), &r));
    kit_ok(json_to_text(json_at(a, 2), &t));
    ck_assert(i == 3 && r == 2.5 && strcmp(t, "y") == 0);
    kit_fails(json_to_int(json_at(a, 9), &i), E_FORMAT, "found nothing");
    void *iter = NULL;
    const char *key;
    const struct json *v;
    char keys[8] = "";
    for (int n = 0; json_each(o, &iter, &key, &v); n++)
        keys[n] = *key;
    ck_assert_str_eq(keys, "zba"); // file order
    iter = NULL;
    ck_assert(!json_each(json_get(o, "b"), &iter, &key, &v));
    json_free(o);
    json_free(NULL);
}
END_TEST

START_TEST(loads_files)
{
    struct json *root;
    const char *dir = kit_tmp_dir(), *path = kit_path("%s/a.json", dir);
    kit_write_text(path, "{\"a\": 1}\n");
    kit_ok(json_load(&root, path));
    json_free(root);
    kit_write_text(path, "{\"a\": }\n");
    kit_fails(json_load(&root, path), E_FORMAT, "a.json: bad JSON in line 1, column 7");
    kit_fails(json_load(&root, kit_path("%s/b.json", dir)), E_MISSING, "b.json");
}
END_TEST

static void write_sample(struct buf *to, int indent)
{
    struct json_out o = {.to = to, .indent = indent};
    json_open_object(&o, NULL);
    json_add_int(&o, "i", -5);
    json_add_text(&o, "t", "a\"b\\c\n\t\x7f\xc3\xa9\xff");
    json_open_array(&o, "a");
    json_add_real(&o, NULL, 3);
    json_add_real(&o, NULL, NAN);
    json_open_object(&o, NULL);
    json_close_object(&o);
    json_add_bool(&o, NULL, false);
    json_close_array(&o);
    json_open_array(&o, "e");
    json_close_array(&o);
    json_add_null(&o, "n");
    json_close_object(&o);
    kit_ok(buf_check(to));
}

START_TEST(writes)
{
    struct buf line = {0}, tall = {0};
    write_sample(&line, 0);
    ck_assert_str_eq(
        line.p, "{\"i\":-5,\"t\":\"a\\\"b\\\\c\\n\\u0009\\u007f\xc3\xa9\xef\xbf\xbd\","
                "\"a\":[3.0,null,{},false],\"e\":[],\"n\":null}");
    write_sample(&tall, 2);
    ck_assert_str_eq(tall.p,
                     "{\n  \"i\": -5,\n"
                     "  \"t\": \"a\\\"b\\\\c\\n\\u0009\\u007f\xc3\xa9\xef\xbf\xbd\",\n"
                     "  \"a\": [\n    3.0,\n    null,\n    {},\n    false\n  ],\n"
                     "  \"e\": [],\n  \"n\": null\n}");
    struct json *a = parsed(line.p);
    json_free(a);
    buf_drop(&line);
    buf_drop(&tall);
}
END_TEST

START_TEST(writes_lines)
{
    struct buf b = {0};
    struct json_out o = {.to = &b};
    for (int i = 0; i < 2; i++) {
        json_open_object(&o, NULL);
        json_add_int(&o, "i", i);
        json_close_object(&o);
        buf_addc(&b, '\n');
    }
    ck_assert_str_eq(b.p, "{\"i\":0}\n{\"i\":1}\n");
    buf_drop(&b);
}
END_TEST

START_TEST(reals_come_back)
{
    struct rng rng = rng_new(1);
    struct buf b = {0};
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = (uint64_t)rng_u32(&rng) << 32 | rng_u32(&rng);
        double want, got = 0;
        memcpy(&want, &bits, sizeof want);
        if (i < 4)
            want = (const double[]){0.0, -0.0, 5e-324, 1.7976931348623157e308}[i];
        if (!isfinite(want))
            continue;
        struct json_out o = {.to = &b};
        buf_clear(&b);
        json_open_array(&o, NULL);
        json_add_real(&o, NULL, want);
        json_close_array(&o);
        struct json *root = parsed(b.p);
        kit_ok(json_to_real(json_at(root, 0), &got));
        json_free(root);
        if (memcmp(&got, &want, sizeof got) != 0)
            ck_abort_msg("%s reads as %a, written %a", b.p, got, want);
    }
    buf_drop(&b);
}
END_TEST

START_TEST(knows_utf8)
{
    static const char *const bad[] = {"\x80",
                                      "a\xc3",
                                      "\xc0\x80",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xff",
                                      "\xe2\x82"};
    ck_assert(json_utf8("") && json_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!json_utf8(bad[i]), "case %zu", i);
}
END_TEST

START_TEST(any_bytes_become_valid_text)
{
    struct rng rng = rng_new(2);
    struct buf b = {0};
    for (int i = 0; i < 5000; i++) {
        char text[9] = "";
        for (int k = 0; k < 8; k++)
            text[k] = (char)(rng_below(&rng, 2) ? rng_below(&rng, 256)
                                                : 0xc0 + rng_below(&rng, 64));
        struct json_out o = {.to = &b};
        buf_clear(&b);
        json_open_object(&o, NULL);
        json_add_text(&o, text, text);
        json_close_object(&o);
        json_free(parsed(b.p));
    }
    buf_drop(&b);
}
END_TEST

KIT_MAIN("json", refuses, need_and_have, walks, loads_files, writes, writes_lines,
         reals_come_back, knows_utf8, any_bytes_become_valid_text)
