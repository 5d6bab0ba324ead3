/* SPDX-License-Identifier: MIT */
/* fuzz_fetch.c - any bytes as what a server says: pages of listings and errors, heads
 * of replies, URLs.  The first byte chooses; what is accepted keeps its promises. */
#include "../tools/fetch/head.h"
#include "../tools/fetch/object.h"
#include "../tools/fetch/s3_list.h"
#include "../tools/fetch/url.h"

#include <string.h>

#include "err.h"
#include "fuzz.h"

/* ---- listings ---- */

static int on_item(void *user, const struct s3_item *item)
{
    struct objects *list = user;
    must(item->size >= 0 && item->key && item->etag);
    struct object *o = object_add(list, item->key, item->key);
    must(o != NULL);
    o->size = item->size;
    return 0;
}

/* A listing that is read gives keys which are refused or stay below the destination. */
static void read_listing(const char *text, size_t n)
{
    struct objects list = {0};
    struct s3_page page = {0};
    struct s3_error e;
    int rc = s3_list_page(&page, text, n, on_item, &list);
    must(rc == 0 || rc == E_FORMAT);
    must(rc < 0 || page.items == list.n);
    must(rc < 0 || !page.more || page.token.len > 0);
    must(object_arrange(&list) == 0);
    for (int64_t i = 0; i < list.n; i++) {
        const struct object *o = &list.at[i];
        must(o->code < 0 || (*o->key && *o->key != '/' && !strstr(o->key, "/../") &&
                             strncmp(o->key, "../", 3) != 0));
    }
    buf_drop(&page.token);
    object_drop(&list);
    must(!s3_list_error(&e, text, n) || e.code[0]);
}

/* ---- heads ---- */

static void read_head(const char *text, size_t n)
{
    struct head h;
    head_start(&h);
    for (const char *end = text + n, *next; text < end; text = next) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        next = line ? line + 1 : end;
        head_line(&h, text, (size_t)(next - text));
        must(h.length >= -1 && h.total >= -1 && h.begin >= -1 && h.end >= -1);
        must(h.begin <= h.end || h.end < 0);
        must(h.total < 0 || h.end <= h.total);
        must(h.retry_after >= -1 && h.date >= 0 && h.modified >= 0);
        must(memchr(h.etag, 0, sizeof h.etag) && memchr(h.location, 0, HEAD_URL));
    }
}

/* ---- URLs ---- */

/* What was escaped is itself again, and a split lies within the text. */
static void read_url(const char *text)
{
    struct buf escaped = {0}, back = {0}, joined = {0};
    struct url u;
    url_escape(&escaped, text, "/");
    must(url_unescape(&back, buf_text(&escaped), false) == 0);
    must(strcmp(buf_text(&back), text) == 0);
    buf_clear(&back);
    int rc = url_unescape(&back, text, true);
    must(rc == 0 || rc == E_FORMAT);
    if (url_split(&u, text) == 0) {
        const char *end = text + strlen(text);
        must(u.host_n > 0 && u.host + u.host_n <= end);
        must(u.path_n == 0 || (*u.path == '/' && u.path + u.path_n <= end));
        must(u.query_n == 0 || u.query + u.query_n <= end);
        must(url_same_host(text, text));
    }
    if (url_join(&joined, "https://a.example:1/b?c", text) == 0) {
        must(url_split(&u, buf_text(&joined)) == 0);
        must(u.scheme_n == 5); // never from https to http
    }
    buf_drop(&escaped);
    buf_drop(&back);
    buf_drop(&joined);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0};
    if (size == 0)
        return 0;
    buf_add(&text, data + 1, size - 1);
    must(!text.failed);
    const char *p = buf_text(&text);
    switch (data[0] % 3) {
    case 0:
        read_listing(p, size - 1);
        break;
    case 1:
        read_head(p, size - 1);
        break;
    default:
        read_url(p);
    }
    buf_drop(&text);
    return 0;
}
