/* SPDX-License-Identifier: MIT */
/* head.c - headers are few and looked at once: a table of names, told apart by their
 * lengths first. */
#include "head.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "err.h"

enum kind { TEXT, LIST, NUMBER, TIME, RANGE };

static const struct field {
    const char *name;
    size_t length;
    enum kind kind;
    size_t at, size;
} fields[] = {
#define FIELD(name, kind, member)                                                      \
    {                                                                                  \
        name, sizeof name - 1, kind, offsetof(struct head, member),                    \
            sizeof((struct head *)0)->member                                           \
    }
    FIELD("Content-Length", NUMBER, length),
    FIELD("Content-Range", RANGE, total),
    FIELD("Date", TIME, date),
    FIELD("ETag", TEXT, etag),
    FIELD("Last-Modified", TIME, modified),
    FIELD("Link", LIST, link),
    FIELD("Location", TEXT, location),
    FIELD("Retry-After", NUMBER, retry_after),
    FIELD("Transfer-Encoding", TEXT, coding),
    FIELD("X-Linked-Etag", TEXT, linked_etag),
    FIELD("X-Linked-Size", NUMBER, linked_size),
    FIELD("X-Repo-Commit", TEXT, commit),
    FIELD("x-amz-bucket-region", TEXT, region),
    FIELD("x-amz-checksum-crc32", TEXT, crc32),
    FIELD("x-amz-checksum-crc32c", TEXT, crc32c),
    FIELD("x-amz-checksum-crc64nvme", TEXT, crc64nvme),
    FIELD("x-amz-checksum-sha256", TEXT, sha256),
    FIELD("x-amz-checksum-type", TEXT, checksum_type),
    FIELD("x-amz-mp-parts-count", NUMBER, parts),
    FIELD("x-amz-request-id", TEXT, request_id),
    FIELD("x-amz-server-side-encryption", TEXT, encryption),
#undef FIELD
};

void head_start(struct head *h)
{
    h->status = 0;
    h->length = h->begin = h->end = h->total = h->retry_after = h->linked_size = -1;
    h->date = h->modified = h->parts = 0;
    h->broken = h->link_long = false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].kind == TEXT || fields[i].kind == LIST)
            ((char *)h)[fields[i].at] = 0;
}

/* Digits only, up to 18 of them; -1 for anything else. */
static int64_t number(const char *s, size_t n)
{
    int64_t value = 0;
    if (n == 0 || n > 18)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        value = value * 10 + (s[i] - '0');
    }
    return value;
}

int head_range(struct head *h, const char *value)
{
    if (strncasecmp(value, "bytes ", 6) != 0)
        return err_set(E_FORMAT, "Content-Range \"%s\" is not of bytes", value);
    const char *s = value + 6;
    size_t n = strcspn(s, "/"), first = strcspn(s, "-/");
    int64_t begin = 0, end = 0, total = -1;
    bool fine = s[n] == '/';
    if (n != 1 || s[0] != '*') {
        begin = number(s, first);
        end = first < n ? number(s + first + 1, n - first - 1) : -1;
        fine = fine && begin >= 0 && end >= begin;
        end++;
    }
    if (fine && strcmp(s + n + 1, "*") != 0) {
        total = number(s + n + 1, strlen(s + n + 1));
        fine = total >= end;
    }
    if (!fine || (end == 0 && total < 0))
        return err_set(E_FORMAT, "Content-Range \"%s\" is not a range", value);
    h->begin = begin;
    h->end = end;
    h->total = total;
    return 0;
}

int64_t head_time(const char *value)
{
    struct tm t = {0};
    const char *end = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &t);
    time_t seconds = end && !*end ? timegm(&t) : 0;
    return seconds > 0 ? seconds : 0;
}

/* A header that comes several times is one, with commas. */
static void take_link(struct head *h, const char *value, size_t n)
{
    size_t have = strlen(h->link), between = have > 0 ? 2 : 0;
    if (have + between + n >= sizeof h->link) {
        h->link_long = true;
        return;
    }
    memcpy(h->link + have, ", ", between);
    memcpy(h->link + have + between, value, n);
    h->link[have + between + n] = 0;
}

static void take(struct head *h, const struct field *f, const char *value, size_t n)
{
    int64_t *to = (int64_t *)(void *)((char *)h + f->at);
    switch (f->kind) {
    case TEXT:
        if (n < f->size) {
            memcpy((char *)h + f->at, value, n);
            ((char *)h)[f->at + n] = 0;
        }
        break;
    case LIST:
        take_link(h, value, n);
        break;
    case NUMBER:
        *to = number(value, n);
        h->broken |= *to < 0 && to != &h->retry_after; // that may be a date
        break;
    case TIME:
        *to = head_time(value);
        break;
    case RANGE:
        h->broken |= head_range(h, value) < 0;
    }
}

/* "HTTP/1.1 200 OK"; what has no status there is none of ours. */
static void take_status(struct head *h, const char *line, size_t n)
{
    const char *space = memchr(line, ' ', n);
    head_start(h);
    if (space && line + n - space >= 4)
        h->status = (int)number(space + 1, 3);
}

void head_line(struct head *h, const char *line, size_t n)
{
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' '))
        n--;
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        take_status(h, line, n);
        return;
    }
    const char *colon = memchr(line, ':', n);
    size_t name = colon ? (size_t)(colon - line) : 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        if (f->length != name || strncasecmp(line, f->name, name) != 0)
            continue;
        char value[HEAD_URL];
        const char *from = colon + 1;
        while (from < line + n && *from == ' ')
            from++;
        size_t size = (size_t)(line + n - from);
        if (size < sizeof value) {
            memcpy(value, from, size);
            value[size] = 0;
            take(h, f, value, size);
        } else if (f->kind == LIST) {
            h->link_long = true;
        }
        return;
    }
}
