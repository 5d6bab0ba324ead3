/* SPDX-License-Identifier: MIT */
/* test_fetch_list.c - what S3 answers with: pages of listings, errors, heads of
 * replies, and the limits of all three. */
#include <stdio.h>
#include <string.h>

#include "../tools/fetch/head.h"
#include "../tools/fetch/s3_list.h"
#include "buf.h"
#include "err.h"
#include "kit.h"

static int note(void *user, const struct s3_item *item)
{
    buf_addf(user, "%s %lld %s %lld\n", item->key, (long long)item->size, item->etag,
             (long long)(item->mtime_ns / 1000000000));
    return strcmp(item->key, "stop") == 0 ? err_set(E_IO, "as told") : 0;
}

static int read_page(struct s3_page *page, struct buf *seen, const char *text)
{
    buf_clear(seen);
    return s3_list_page(page, text, strlen(text), note, seen);
}

#define ROOT(text)                                                                     \
    "<?xml version=\"1.0\"?><ListBucketResult>" text "</ListBucketResult>"
#define ITEM(key, size) "<Contents><Key>" key "</Key><Size>" size "</Size></Contents>"

START_TEST(reads_a_page)
{
    struct s3_page page = {0};
    struct buf seen = {0};
    static const char text[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        "<Name>b</Name><Prefix/><IsTruncated>true</IsTruncated>"
        "<Contents><Key>a%2Bb+c%25</Key><LastModified>2009-10-12T17:50:30.000Z"
        "</LastModified><ETag>&quot;abc-2&quot;</ETag><Size>434234</Size>"
        "<Owner><ID>x</ID></Owner></Contents>"
        "<Contents><Size>0</Size><ETag>x</ETag><Key>%C3%A9</Key></Contents>"
        "<NextContinuationToken>1+/=&amp;</NextContinuationToken>"
        "<EncodingType>url</EncodingType></ListBucketResult>";
    kit_ok(read_page(&page, &seen, text));
    ck_assert_str_eq(buf_text(&seen), "a+b c% 434234 \"abc-2\" 1255369830\n"
                                      "\xc3\xa9 0 \"x\" 0\n");
    ck_assert(page.more && page.items == 2);
    ck_assert_str_eq(page.token.p, "1+/=&");
    kit_ok(read_page(&page, &seen, ROOT(ITEM("a+b%2B", "1"))));
    ck_assert_str_eq(buf_text(&seen), "a+b%2B 1  0\n"); // nobody said it was encoded
    ck_assert(!page.more && page.token.len == 0);
    kit_ok(read_page(&page, &seen, ROOT("")));
    ck_assert_int_eq(page.items, 0);
    buf_drop(&page.token);
    buf_drop(&seen);
}
END_TEST

START_TEST(refuses_what_is_no_page)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "no element found"},
        {"<ListBucketResult>", "no element found"},
        {"<Error><Code>SlowDown</Code></Error>", "not a ListBucketResult"},
        {ROOT("<Contents><Key>a</Size></Contents>"), "mismatched tag"},
        {ROOT("<Contents><Key>a</Key></Contents>"), "without size"},
        {ROOT("<Contents><Size>1</Size></Contents>"), "without key"},
        {ROOT(ITEM("a", "-1")), "size \"-1\""},
        {ROOT(ITEM("a", "1234567890123456789")), "size \"1234567890123456789\""},
        {ROOT(ITEM("a", "")), "size \"\""},
        {ROOT("<IsTruncated>true</IsTruncated>"), "no continuation token"},
        {ROOT("<EncodingType>url</EncodingType>" ITEM("a%zz", "1")), "percent escape"},
        {ROOT("<EncodingType>url</EncodingType>" ITEM("a%00", "1")), "percent escape"},
        {ROOT(ITEM("\x01", "1")), "invalid token"},
        {ROOT(ITEM("\xff", "1")), "invalid token"},
        {"<!DOCTYPE a [<!ENTITY b \"c\">]>" ROOT(""), "document type"},
    };
    struct s3_page page = {0};
    struct buf seen = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(read_page(&page, &seen, bad[i].text), E_FORMAT, bad[i].why);
    kit_fails(read_page(&page, &seen, ROOT(ITEM("stop", "1") ITEM("b", "1"))), E_IO,
              "as told");
    ck_assert_int_eq(page.items, 1);
    buf_drop(&page.token);
    buf_drop(&seen);
}
END_TEST

START_TEST(refuses_what_is_too_deep_or_long)
{
    struct s3_page page = {0};
    struct buf seen = {0}, text = {0};
    for (int i = 0; i < 40; i++)
        buf_adds(&text, "<a>");
    kit_fails(read_page(&page, &seen, text.p), E_FORMAT, "too deep");
    buf_clear(&text);
    buf_adds(&text, "<ListBucketResult><Name>");
    buf_fill(&text, 'x', 9000);
    kit_fails(read_page(&page, &seen, text.p), E_FORMAT, "over 8192 bytes");
    buf_drop(&text);
    buf_drop(&page.token);
    buf_drop(&seen);
}
END_TEST

START_TEST(reads_errors)
{
    static const char text[] = "<Error><Code>PermanentRedirect</Code><Message>m"
                               "</Message><Region>eu-west-1</Region></Error>";
    struct s3_error e;
    ck_assert(s3_list_error(&e, text, strlen(text)));
    ck_assert_str_eq(e.code, "PermanentRedirect");
    ck_assert_str_eq(e.message, "m");
    ck_assert_str_eq(e.region, "eu-west-1");
    ck_assert(!s3_list_error(&e, "<html/>", 7) && !e.code[0]);
    ck_assert(!s3_list_error(&e, text, 30) && !e.code[0]);
    ck_assert(!s3_list_error(&e, "", 0));
}
END_TEST

START_TEST(times)
{
    ck_assert_int_eq(s3_list_time("1970-01-01T00:00:01Z"), 1000000000);
    ck_assert_int_eq(s3_list_time("2009-10-12T17:50:30.25Z"), 1255369830250000000);
    ck_assert_int_eq(s3_list_time("2009-10-12T17:50:30+00:00"), 1255369830000000000);
    ck_assert_int_eq(s3_list_time("2009-10-12T17:50:30+02:00"), 0);
    ck_assert_int_eq(s3_list_time("2009-10-12"), 0);
    ck_assert_int_eq(head_time("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    ck_assert_int_eq(head_time("Sun Nov  6 08:49:37 1994"), 0);
    ck_assert_int_eq(head_time(""), 0);
}
END_TEST

static struct head head_of(const char *const line[])
{
    struct head h;
    head_start(&h);
    for (; *line; line++)
        head_line(&h, *line, strlen(*line));
    return h;
}

START_TEST(heads)
{
    struct head h = head_of((const char *const[]){
        "HTTP/1.1 100 Continue\r\n", "ETag: \"old\"\r\n", "\r\n",
        "HTTP/1.1 206 Partial Content\r\n", "content-length: 10\r\n",
        "Content-Range: bytes 5-14/20\r\n", "eTag:   \"x\"  \r\n",
        "x-amz-checksum-crc64nvme: rosUhgoXmIg=\r\n", "X-Unknown: 7\r\n", NULL});
    ck_assert(h.status == 206 && h.length == 10 && !h.broken);
    ck_assert(h.begin == 5 && h.end == 15 && h.total == 20);
    ck_assert_str_eq(h.etag, "\"x\"");
    ck_assert_str_eq(h.crc64nvme, "rosUhgoXmIg=");
    h = head_of((const char *const[]){"HTTP/2 200", "Retry-After: soon", NULL});
    ck_assert(h.status == 200 && h.length == -1 && h.retry_after == -1 && !h.broken);
    static const char *const broken[] = {"Content-Length: -1", "Content-Length: 1x",
                                         "Content-Length:", "Content-Range: 1-2/3",
                                         "Content-Length: 1234567890123456789"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        ck_assert(
            head_of((const char *const[]){"HTTP/1.1 200", broken[i], NULL}).broken);
}
END_TEST

START_TEST(ranges)
{
    struct head h;
    static const char *const bad[] = {"",
                                      "bytes",
                                      "bytes 0-9",
                                      "bytes 9-0/10",
                                      "bytes 0-9/9",
                                      "items 0-9/10",
                                      "bytes */*",
                                      "bytes -9/10",
                                      "bytes 0-/10",
                                      "bytes 0-9/",
                                      "bytes 0-9/x",
                                      "bytes a-9/10",
                                      "bytes 0-9/-1",
                                      "bytes 0--9/10",
                                      "bytes 0-9999999999999999999/*"};
    head_start(&h);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(head_range(&h, bad[i]), E_FORMAT, "Content-Range");
    kit_ok(head_range(&h, "bytes 0-9/*"));
    ck_assert(h.begin == 0 && h.end == 10 && h.total == -1);
    kit_ok(head_range(&h, "BYTES 0-0/1"));
    ck_assert(h.begin == 0 && h.end == 1 && h.total == 1);
    kit_ok(head_range(&h, "bytes */0"));
    ck_assert(h.begin == 0 && h.end == 0 && h.total == 0);
}
END_TEST

START_TEST(links_are_joined)
{
    struct head h;
    head_start(&h);
    head_line(&h, "Link: <a>; rel=\"first\"", 22);
    head_line(&h, "link: <b>; rel=\"next\"\r\n", 23);
    ck_assert_str_eq(h.link, "<a>; rel=\"first\", <b>; rel=\"next\"");
    ck_assert(!h.link_long);
    char line[HEAD_URL + 7] = "Link: ";
    memset(line + 6, 'x', HEAD_URL);
    head_start(&h);
    head_line(&h, line, HEAD_URL + 5); // one byte less than the field
    ck_assert(!h.link_long && strlen(h.link) == HEAD_URL - 1);
    head_start(&h);
    head_line(&h, line, HEAD_URL + 6);
    ck_assert(h.link_long);
    head_start(&h);
    head_line(&h, line, HEAD_URL);
    head_line(&h, "Link: abcdef", 12);
    ck_assert(h.link_long);
}
END_TEST

KIT_MAIN("fetch_list", links_are_joined, reads_a_page, refuses_what_is_no_page,
         refuses_what_is_too_deep_or_long, reads_errors, times, heads, ranges)
