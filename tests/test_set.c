/* SPDX-License-Identifier: MIT */
/* test_set.c - manifests of uploads: what is read, what is refused, and what of a
 * listing agrees with one. */
#include "../tools/fetch/set.h"

#include <string.h>

#include "err.h"
#include "kit.h"
#include "mem.h"

#define HEAD "{\"format\":1,\"complete\":true,\"objects\":["
#define A    "{\"key\":\"a\",\"size\":1,\"crc64nvme\":\"x\",\"etag\":\"\\\"e\\\"\"}"
#define B    "{\"key\":\"b/c\",\"size\":0,\"crc64nvme\":\"y\",\"etag\":\"\"}"

static int parse(struct set *s, const char *text)
{
    *s = (struct set){0};
    return set_parse(s, text, strlen(text));
}

START_TEST(there_and_back)
{
    struct set s;
    struct buf text = {0};
    kit_ok(parse(&s, HEAD B "," A "]}"));
    ck_assert(s.complete && s.n == 2);
    ck_assert_int_eq(set_find(&s, "a")->size, 1);
    ck_assert_str_eq(set_find(&s, "a")->etag, "\"e\"");
    ck_assert_str_eq(set_find(&s, "b/c")->sum, "y");
    ck_assert(!set_find(&s, "b"));
    set_write(&text, &s);
    ck_assert_str_eq(buf_text(&text), HEAD "\n" A ",\n" B "\n]}\n");
    set_drop(&s);
    kit_ok(parse(&s, "{\"format\":1,\"complete\":false,\"objects\":[]}"));
    ck_assert(!s.complete && s.n == 0 && !set_find(&s, "a"));
    set_drop(&s);
    buf_drop(&text);
}
END_TEST

START_TEST(what_is_refused)
{
    static const char *const bad[][2] = {
        {"", "line"},
        {"[]", "not an object"},
        {"{\"format\":2,\"complete\":true,\"objects\":[]}", "format 2"},
        {"{\"format\":1,\"objects\":[]}", "complete"},
        {"{\"format\":1,\"complete\":true}", "objects"},
        {HEAD "1]}", "an entry that is no object"},
        {HEAD A "," A "]}", "a is there twice"},
        {HEAD "{\"key\":\"a\",\"size\":-1,\"crc64nvme\":\"x\",\"etag\":\"\"}]}",
         "size"},
        {HEAD "{\"key\":\"a\",\"size\":1,\"crc64nvme\":\"0123456789abcdef\","
              "\"etag\":\"\"}]}",
         "crc64nvme"},
        {HEAD A, "line"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct set s;
        kit_fails(parse(&s, bad[i][0]), E_FORMAT, bad[i][1]);
        set_drop(&s);
    }
}
END_TEST

/* A listing of p/a (1 byte, "e"), p/b/c (0 bytes) and other things. */
static void list(struct objects *l, int64_t size, const char *etag)
{
    struct object *o;
    *l = (struct objects){0};
    ck_assert((o = object_add(l, "zero", "p/zero")));
    ck_assert((o = object_add(l, "c", "p/b/c")));
    ck_assert((o = object_add(l, "a", "p/a")));
    o->size = size;
    o->etag = etag;
    ck_assert((o = object_add(l, "0", "p/0")));
}

START_TEST(against_a_listing)
{
    struct set s;
    struct objects l;
    kit_ok(parse(&s, HEAD B "," A "]}"));
    list(&l, 1, "\"e\"");
    kit_ok(set_check(&s, &l, 0, "p/"));
    kit_ok(set_check(&s, &l, 1, "p/"));
    kit_fails(set_check(&s, &l, 2, "p/"), E_AGAIN, "p/b/c is missing");
    kit_fails(set_check(&s, &l, 0, "q/"), E_AGAIN, "q/a is missing");
    s.complete = false;
    kit_fails(set_check(&s, &l, 0, "p/"), E_AGAIN,
              "p/draft-manifest.json: the upload has not ended");
    s.complete = true;
    object_drop(&l);
    list(&l, 2, "\"e\"");
    kit_fails(set_check(&s, &l, 0, "p/"), E_AGAIN, "p/a is not the one");
    object_drop(&l);
    list(&l, 1, "\"f\"");
    kit_fails(set_check(&s, &l, 0, "p/"), E_AGAIN, "p/a is not the one");
    object_drop(&l);
    list(&l, 1, NULL); // a server without ETags
    kit_ok(set_check(&s, &l, 0, "p/"));
    object_drop(&l);
    set_drop(&s);
}
END_TEST

START_TEST(names_and_sums)
{
    char sum[SET_SUM];
    ck_assert_str_eq(set_sum(sum, 0), "AAAAAAAAAAA=");
    ck_assert_str_eq(set_sum(sum, 0xae8b14860a799888), "rosUhgp5mIg=");
    ck_assert_uint_eq(set_folder("draft-manifest.json"), 0);
    ck_assert_uint_eq(set_folder("a/draft-manifest.json"), 2);
    ck_assert_uint_eq(set_folder("a/x-draft-manifest.json"), 23);
    ck_assert_uint_eq(set_folder("a"), 1);
}
END_TEST

KIT_MAIN("set", there_and_back, what_is_refused, against_a_listing, names_and_sums)
