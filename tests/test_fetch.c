/* SPDX-License-Identifier: MIT */
/* test_fetch.c - names that leave the destination, choice and order of objects, and the
 * manifest's memory; what a folder cannot show to the tool's own test. */
#include <stdio.h>
#include <string.h>

#include "../tools/fetch/manifest.h"
#include "../tools/fetch/object.h"
#include "err.h"
#include "file.h"
#include "kit.h"
#include "mem.h"

START_TEST(keys_that_leave_the_destination)
{
    static const char *const good[] = {"a",         "a/b",      "..a",
                                       "a..",       "a/.b",     "...",
                                       "a b/+#%=:", "\xc3\xa9", "a/b.draft-fetch"};
    static const char *const bad[] = {"",
                                      "/",
                                      "/a",
                                      "a/",
                                      "a//b",
                                      ".",
                                      "..",
                                      "./a",
                                      "../a",
                                      "a/..",
                                      "a/../b",
                                      "a/./b",
                                      "a\nb",
                                      "\x7f",
                                      "a\xff",
                                      "\xc0\xae",
                                      ".draft-fetch/lock",
                                      "a/.draft-fetch"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        kit_ok(object_check_key(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(object_check_key(bad[i]), E_FORMAT, "refused");
    char part[300] = "";
    memset(part, 'x', 255);
    kit_ok(object_check_key(part));
    part[255] = 'x';
    kit_fails(object_check_key(part), E_FORMAT, "over 255 bytes");
}
END_TEST

static void add(struct objects *list, const char *keys)
{
    char key[64];
    while (*keys) {
        size_t n = strcspn(keys, " ");
        memcpy(key, keys, n);
        key[n] = 0;
        ck_assert_ptr_nonnull(object_add(list, key, key));
        keys += n + (keys[n] == ' ');
    }
}

/* The keys, refused ones in brackets. */
static const char *shown(const struct objects *list)
{
    static char text[1000];
    text[0] = 0;
    for (int64_t i = 0; i < list->n; i++) {
        const char *format = list->at[i].code ? "[%s]" : "%s";
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, format, list->at[i].key);
        strncat(text, " ", 2);
    }
    return text;
}

START_TEST(arranges)
{
    struct objects list = {0};
    add(&list, "b a/x a/y/z a/y a-b a/y b c/../d .. e/f/g e.f");
    kit_ok(object_arrange(&list));
    ck_assert_str_eq(shown(&list),
                     "[..] a-b a/x a/y [a/y] [a/y/z] b [b] [c/../d] e.f e/f/g ");
    ck_assert_str_eq(list.at[5].why, "a/y/z: refused: a/y is a file");
    object_drop(&list);
    kit_ok(object_arrange(&list));
}
END_TEST

START_TEST(chooses)
{
    static const struct {
        const char *include, *exclude, *kept;
    } cases[] = {{NULL, NULL, "a.x b/a.x b/c.y d "},
                 {"*.x", NULL, "a.x b/a.x "},
                 {"*.y,d", NULL, "b/c.y d "},
                 {NULL, "b/*", "a.x d "},
                 {"*.x", "b/*", "a.x "},
                 {"?", NULL, "d "},
                 {"", NULL, ""},
                 {NULL, "", "a.x b/a.x b/c.y d "},
                 {"[a-c]*", "*c.?", "a.x b/a.x "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct objects list = {0};
        add(&list, "a.x b/a.x b/c.y d");
        int rc = object_choose(&list, cases[i].include, cases[i].exclude);
        ck_assert_int_eq(rc, *cases[i].kept ? 0 : E_MISSING);
        ck_assert_str_eq(shown(&list), cases[i].kept);
        object_drop(&list);
    }
}
END_TEST

START_TEST(shares_are_a_partition)
{
    enum { N = 1000, PARTS = 7 };
    int64_t total = 0;
    for (int part = 0; part < PARTS; part++) {
        struct objects list = {0};
        for (int i = 0; i < N; i++)
            object_add(&list, kit_path("data/%d", i), "");
        object_share(&list, part, PARTS);
        ck_assert_int_gt(list.n, N / PARTS / 2);
        ck_assert_int_lt(list.n, N / PARTS * 2);
        total += list.n;
        object_drop(&list);
    }
    ck_assert_int_eq(total, N);
}
END_TEST

static void load(struct manifest *m, const char *dest, int part, int parts)
{
    int64_t damaged;
    kit_ok(manifest_load(m, dest, part, parts, &damaged));
    ck_assert_int_eq(damaged, 0);
}

static int64_t size_of(const struct manifest *m, const char *key)
{
    const struct entry *e;
    int64_t n = manifest_find(m, key, &e);
    return n ? e[n - 1].size : -1;
}

static void add_entry(struct manifest *m, const char *key, const char *etag,
                      int64_t size, int64_t mtime_ns, uint64_t sum)
{
    struct entry e = {
        .key = key, .etag = etag, .size = size, .mtime_ns = mtime_ns, .sum = sum};
    kit_ok(manifest_add(m, &e));
    kit_ok(manifest_flush(m));
}

START_TEST(manifest_remembers)
{
    struct manifest m;
    const char *dest = kit_tmp_dir();
    load(&m, dest, 0, 1);
    ck_assert_int_eq(size_of(&m, "a"), -1);
    kit_ok(manifest_save(&m)); // nothing to say, nothing written
    ck_assert(!file_exists(kit_path("%s/.draft-fetch", dest)));
    kit_ok(file_make_dirs(kit_path("%s/.draft-fetch", dest)));
    add_entry(&m, "b", NULL, 1, -5, 0xabc);
    add_entry(&m, "a\"\\", "\"e\"", 2, 1ll << 60, 0);
    manifest_drop(&m); // as after a kill
    load(&m, dest, 0, 1);
    ck_assert_int_eq(size_of(&m, "b"), 1);
    add_entry(&m, "b", NULL, 3, 7, 0xdef);
    kit_ok(manifest_save(&m));
    manifest_drop(&m);
    ck_assert(!file_exists(kit_path("%s/.draft-fetch/manifest.journal", dest)));
    load(&m, dest, 0, 1);
    const struct entry *e;
    ck_assert_int_eq(manifest_find(&m, "b", &e), 1);
    ck_assert(e->size == 3 && e->mtime_ns == 7 && e->sum == 0xdef);
    ck_assert_int_eq(manifest_find(&m, "a\"\\", &e), 1);
    ck_assert(e->size == 2 && e->mtime_ns == 1ll << 60 && e->sum == 0);
    ck_assert_str_eq(e->etag, "\"e\"");
    ck_assert_int_eq(manifest_find(&m, "aa", &e), 0);
    ck_assert_int_eq(manifest_find(&m, "c", &e), 0);
    manifest_drop(&m);
}
END_TEST

START_TEST(manifests_of_parts)
{
    struct manifest m;
    const char *dest = kit_tmp_dir();
    kit_ok(file_make_dirs(kit_path("%s/.draft-fetch", dest)));
    for (int part = 0; part < 2; part++) {
        load(&m, dest, part, 2);
        add_entry(&m, part ? "one" : "zero", NULL, part, 0, 0);
        kit_ok(manifest_save(&m));
        manifest_drop(&m);
    }
    size_t n;
    char *text = kit_read(kit_path("%s/.draft-fetch/manifest-1-of-2.json", dest), &n);
    ck_assert_ptr_null(strstr(text, "zero")); // a part writes its own only
    mem_free(text);
    load(&m, dest, 0, 1);
    ck_assert(size_of(&m, "zero") == 0 && size_of(&m, "one") == 1);
    add_entry(&m, "two", NULL, 2, 0, 0);
    kit_ok(manifest_save(&m));
    manifest_drop(&m);
    ck_assert(!file_exists(kit_path("%s/.draft-fetch/manifest-0-of-2.json", dest)));
    load(&m, dest, 0, 1);
    ck_assert(size_of(&m, "zero") == 0 && size_of(&m, "two") == 2);
    manifest_drop(&m);
}
END_TEST

#define BEGIN "{\"format\":2,\"objects\":[\n"
#define ENTRY "{\"key\":\"a\",\"size\":1,\"mtime_ns\":2,\"crc64nvme\":"
#define GOOD  ENTRY "\"0000000000000000\"}"

START_TEST(manifest_damage)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      BEGIN,
                                      BEGIN "{\"key\":\"a\"}\n]}\n",
                                      BEGIN ENTRY "\"z\"}\n]}\n",
                                      BEGIN GOOD "\n",
                                      BEGIN GOOD "\n]}\nx\n",
                                      BEGIN GOOD "\n" GOOD,
                                      "{\"format\":1,\"objects\":[\n" GOOD "\n]}\n"};
    struct manifest m;
    int64_t damaged;
    const char *dest = kit_tmp_dir();
    kit_ok(file_make_dirs(kit_path("%s/.draft-fetch", dest)));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit_write_text(kit_path("%s/.draft-fetch/manifest.json", dest), bad[i]);
        kit_ok(manifest_load(&m, dest, 0, 1, &damaged));
        ck_assert_int_eq(damaged, 1);
        manifest_drop(&m);
    }
    kit_write_text(kit_path("%s/.draft-fetch/manifest.json", dest),
                   BEGIN GOOD "\n]}\n");
    load(&m, dest, 0, 1);
    ck_assert_int_eq(size_of(&m, "a"), 1);
    manifest_drop(&m);
}
END_TEST

KIT_MAIN("fetch", keys_that_leave_the_destination, arranges, chooses,
         shares_are_a_partition, manifest_remembers, manifests_of_parts,
         manifest_damage)
