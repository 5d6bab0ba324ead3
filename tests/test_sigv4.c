/* SPDX-License-Identifier: MIT */
/* test_sigv4.c - signing, on AWS's test suite, on the examples of the S3 API reference,
 * and on what only S3 has: keys that look like paths. */
#include "../tools/fetch/sigv4.h"

#include <string.h>

#include "err.h"
#include "kit.h"
#include "mem.h"

#define SUITE "tests/golden/sigv4/suite.txt"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum { SUITE_TIME = 1440938160, S3_TIME = 1369353600 };

/* ---- the suite ---- */

/* A request as the suite writes it: text that is cut up in place. */
struct written {
    struct sigv4_request r;
    struct sigv4_pair query[SIGV4_PAIRS], header[SIGV4_PAIRS];
    char payload[SIGV4_HEX];
};

static int unhex(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static char *decode(char *text)
{
    char *to = text;
    for (char *from = text; *from; from++) {
        if (*from == '%') {
            *to++ = (char)(unhex(from[1]) << 4 | unhex(from[2]));
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    return text;
}

static void cut_query(struct written *w, char *query)
{
    for (char *next; query; query = next) {
        if ((next = strchr(query, '&')))
            *next++ = 0;
        char *value = strchr(query, '=');
        if (value)
            *value++ = 0;
        w->query[w->r.queries++] =
            (struct sigv4_pair){decode(query), value ? decode(value) : ""};
    }
}

/* "METHOD TARGET HTTP/1.1", headers with continuation lines, an empty line, the body.
 */
static void cut_request(struct written *w, char *text)
{
    char *next = strchr(text, '\n'), *path = strchr(text, ' '), *end;
    *next++ = 0;
    *path++ = 0;
    end = strrchr(path, ' ');
    *end = 0;
    char *query = strchr(path, '?');
    if (query)
        *query++ = 0;
    *w = (struct written){.r = {.method = text, .path = path, .resolve = true}};
    cut_query(w, query);
    while (next && *next && *next != '\n') {
        char *line = next, *value = strchr(line, ':');
        for (next = line; (next = strchr(next, '\n')) && next[1] == ' '; next++)
            ;
        if (next)
            *next++ = 0;
        *value++ = 0;
        w->header[w->r.headers++] = (struct sigv4_pair){line, value};
    }
    const char *body = next && *next == '\n' ? next + 1 : "";
    w->r.query = w->query;
    w->r.header = w->header;
    w->r.payload = sigv4_hash(w->payload, body, strlen(body));
    w->r.time = SUITE_TIME;
}

/* The text of a section "@@ NAME", up to the line before the next one. */
static char *section(char **at, const char *name)
{
    ck_assert(strncmp(*at, "@@ ", 3) == 0);
    ck_assert(strncmp(*at + 3, name, strlen(name)) == 0);
    char *text = strchr(*at, '\n') + 1, *end = strstr(text, "\n@@ ");
    if (strncmp(text, "@@ ", 3) == 0)
        end = text - 1; // "@@ case" has no text
    *at = end ? end + 1 : text + strlen(text);
    if (end)
        *end = 0;
    else if ((end = strrchr(text, '\n')))
        *end = 0;
    return text;
}

START_TEST(suite_of_aws)
{
    size_t size;
    char *text = kit_read(SUITE, &size), *at = text;
    struct sigv4_key key;
    int cases = 0;
    kit_ok(sigv4_key_init(&key, "AKIDEXAMPLE",
                          "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SUITE_TIME,
                          "us-east-1", "service"));
    for (; *at; cases++) {
        char *name = at + strlen("@@ case ");
        section(&at, "case");
        struct buf canonical = {0}, names = {0}, authorization = {0};
        struct written w;
        cut_request(&w, section(&at, "req"));
        sigv4_canonical(&canonical, &names, &w.r);
        kit_ok(sigv4_sign(&authorization, &w.r, &key));
        const char *want = section(&at, "creq");
        ck_assert_msg(strcmp(buf_text(&canonical), want) == 0, "%s: %s\nnot\n%s", name,
                      buf_text(&canonical), want);
        want = section(&at, "authz");
        ck_assert_msg(strcmp(buf_text(&authorization), want) == 0, "%s: %s\nnot\n%s",
                      name, buf_text(&authorization), want);
        buf_drop(&canonical);
        buf_drop(&names);
        buf_drop(&authorization);
    }
    ck_assert_int_eq(cases, 34);
    mem_free(text);
}
END_TEST

/* ---- the examples of the S3 API reference ---- */

#define HOST                                                                           \
    {                                                                                  \
        "Host", "examplebucket.s3.amazonaws.com"                                       \
    }
#define DATE                                                                           \
    {                                                                                  \
        "x-amz-date", "20130524T000000Z"                                               \
    }

static const struct {
    const char *method, *path, *target;
    struct sigv4_pair query[2], header[5];
    int queries, headers;
    const char *payload, *names, *signature;
} example[] = {
    {"GET",
     "/test.txt",
     "/test.txt",
     {{0}},
     {HOST, {"Range", "bytes=0-9"}, {"x-amz-content-sha256", EMPTY}, DATE},
     0,
     4,
     EMPTY,
     "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT",
     "/test$file.text",
     "/test%24file.text",
     {{0}},
     {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
      HOST,
      DATE,
      {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
      {"x-amz-content-sha256",
       "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
     0,
     5,
     "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
     "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET",
     "/",
     "/?lifecycle=",
     {{"lifecycle", ""}},
     {HOST, {"x-amz-content-sha256", EMPTY}, DATE},
     1,
     3,
     EMPTY,
     "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"GET",
     "/",
     "/?max-keys=2&prefix=J",
     {{"prefix", "J"}, {"max-keys", "2"}},
     {HOST, {"x-amz-content-sha256", EMPTY}, DATE},
     2,
     3,
     EMPTY,
     "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

START_TEST(examples_of_s3)
{
    struct sigv4_key key;
    kit_ok(sigv4_key_init(&key, "AKIAIOSFODNN7EXAMPLE",
                          "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", S3_TIME,
                          "us-east-1", "s3"));
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        struct buf got = {0}, want = {0}, target = {0};
        const struct sigv4_request r = {.method = example[i].method,
                                        .path = example[i].path,
                                        .query = example[i].query,
                                        .queries = example[i].queries,
                                        .header = example[i].header,
                                        .headers = example[i].headers,
                                        .payload = example[i].payload,
                                        .time = S3_TIME};
        buf_addf(&want,
                 "AWS4-HMAC-SHA256 "
                 "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                 "SignedHeaders=%s, Signature=%s",
                 example[i].names, example[i].signature);
        kit_ok(sigv4_sign(&got, &r, &key));
        ck_assert_str_eq(buf_text(&got), buf_text(&want));
        sigv4_target(&target, &r);
        ck_assert_str_eq(buf_text(&target), example[i].target);
        buf_drop(&got);
        buf_drop(&want);
        buf_drop(&target);
    }
}
END_TEST

/* ---- S3's own ---- */

START_TEST(keys_that_look_like_paths)
{
    static const char *const path[][2] = {
        {"/b/a//b/../c/./d", "/b/a//b/../c/./d"},
        {"//", "//"},
        {"/b/a b+c%2F=:#?&@,\n\x7f", "/b/a%20b%2Bc%252F%3D%3A%23%3F%26%40%2C%0A%7F"},
        {"/b/\xc3\xa9\xff", "/b/%C3%A9%FF"},
    };
    const struct sigv4_pair query[] = {{"a-b", "1"}, {"a", "2"}, {"a", "1 /"}};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        struct buf target = {0}, canonical = {0}, names = {0}, want = {0};
        const struct sigv4_request r = {.method = "GET",
                                        .path = path[i][0],
                                        .query = query,
                                        .queries = 3,
                                        .payload = SIGV4_UNSIGNED};
        sigv4_target(&target, &r);
        buf_addf(&want, "%s?a=1%%20%%2F&a=2&a-b=1", path[i][1]);
        ck_assert_str_eq(buf_text(&target), buf_text(&want));
        sigv4_canonical(&canonical, &names, &r); // the same, cut at the question mark
        buf_clear(&want);
        buf_addf(&want, "GET\n%s\na=1%%20%%2F&a=2&a-b=1\n\n\n\nUNSIGNED-PAYLOAD",
                 path[i][1]);
        ck_assert_str_eq(buf_text(&canonical), buf_text(&want));
        buf_drop(&target);
        buf_drop(&canonical);
        buf_drop(&names);
        buf_drop(&want);
    }
}
END_TEST

START_TEST(a_key_is_good_for_its_day)
{
    struct sigv4_key key = {0};
    ck_assert(!sigv4_key_fits(&key, 0));
    kit_ok(sigv4_key_init(&key, "a", "s", S3_TIME, "r", "s3"));
    ck_assert_str_eq(key.scope, "20130524/r/s3/aws4_request");
    ck_assert(sigv4_key_fits(&key, S3_TIME));
    ck_assert(sigv4_key_fits(&key, S3_TIME + 86399));
    ck_assert(!sigv4_key_fits(&key, S3_TIME + 86400));
    ck_assert(!sigv4_key_fits(&key, S3_TIME - 1));
    sigv4_key_drop(&key);
    for (size_t i = 0; i < sizeof key; i++)
        ck_assert_int_eq(((const char *)&key)[i], 0);
    char longer[sizeof key.access + 1];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    kit_fails(sigv4_key_init(&key, longer, "s", 0, "r", "s3"), E_CONFIG, "too long");
    kit_fails(sigv4_key_init(&key, "a", "s", 0, longer, "s3"), E_CONFIG, "too long");
}
END_TEST

KIT_MAIN("sigv4", suite_of_aws, examples_of_s3, keys_that_look_like_paths,
         a_key_is_good_for_its_day)
