/* SPDX-License-Identifier: MIT */
/* fuzz_head.c - any bytes as the head of a reply: what is understood keeps its
 * promises, and is held against what was asked for. */
#include <string.h>
#include <strings.h>

#include "../tools/fetch/head.h"
#include "../tools/fetch/http.h"
#include "../tools/fetch/piece.h"
#include "../tools/fetch/want.h"
#include "err.h"
#include "fuzz.h"

static void read_head(struct head *to, const char *text, size_t n)
{
    head_start(to);
    for (const char *end = text + n, *next; text < end; text = next) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        next = line ? line + 1 : end;
        head_line(to, text, (size_t)(next - text));
        must(to->length >= -1 && to->total >= -1 && to->begin >= -1 && to->end >= -1);
        must(to->begin <= to->end || to->end < 0);
        must(to->total < 0 || to->end <= to->total);
        must(to->retry_after >= -1 && to->date >= 0 && to->modified >= 0);
        must(memchr(to->etag, 0, sizeof to->etag) && memchr(to->location, 0, HEAD_URL));
    }
}

/* A reply that is taken for a piece says so itself. */
static void use_head(const struct head *h)
{
    static const struct object objects[] = {
        {.key = "k", .size = 100, .etag = "\"a\"", .md5 = true},
        {.key = "k", .size = 10}};
    for (int i = 0; i < 4; i++) {
        const struct object *o = &objects[i / 2];
        struct piece p = piece_of(o, i % 2 ? o->size : 10, 0);
        struct want w;
        int rc = piece_check(&p, h);
        must(rc == 0 || rc == E_REMOTE || rc == E_AGAIN);
        must(rc < 0 || h->status == (p.kind == PIECE_RANGE ? 206 : 200));
        must(rc < 0 || !o->etag || strcmp(o->etag, h->etag) == 0);
        must(rc < 0 || p.kind != PIECE_RANGE || (h->begin == 0 && h->end == p.end));
        rc = want_of(&w, o, h, i % 2 ? 10 : 0);
        must(rc == 0 || rc == E_REMOTE);
    }
}

/* A secret does not follow a call to another host. */
static void move(const struct head *h)
{
    struct http_call c = {0};
    buf_adds(&c.url, "https://a.example/x");
    http_add(&c.lines, "Authorization", h->etag);
    http_add(&c.lines, "Range", h->location);
    http_add(&c.lines, "x-amz-security-token", h->link);
    http_call_move(&c, h->location);
    must(!c.lines.text.failed && (c.lines.n == 1 || c.lines.n == 3));
    const char *first = c.lines.n == 1 ? "Range: " : "Authorization: ";
    must(strncmp(c.lines.text.p, first, strlen(first)) == 0);
    must(c.lines.n == 1 || strncasecmp(h->location, "https://a.example", 17) == 0);
    http_call_drop(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head h;
    read_head(&h, (const char *)data, size);
    use_head(&h);
    move(&h);
    return 0;
}
