/* SPDX-License-Identifier: MIT */
/* fuzz_url.c - any text as a URL, as the end of one, and as what must be escaped. */
#include <string.h>

#include "../tools/fetch/url.h"
#include "err.h"
#include "fuzz.h"

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
    buf_add(&text, data, size);
    must(!text.failed);
    read_url(buf_text(&text));
    buf_drop(&text);
    return 0;
}
