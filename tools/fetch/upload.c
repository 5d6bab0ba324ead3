/* SPDX-License-Identifier: MIT */
/* upload.c - one request: a small file with its sums, a look at what is there. */
#include "upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc.h"
#include "err.h"
#include "file.h"
#include "log.h"
#include "mem.h"
#include "s3.h"
#include "upload_request.h"

enum { TEXT_MAX = 1 << 20 };
static const double ONCE_SECONDS = 5;

/* ---- one request ---- */

static void add_extra(struct http_call *c, const char *line)
{
    char name[64];
    size_t n = strcspn(line, ":");
    snprintf(name, sizeof name, "%.*s", (int)n, line);
    http_add(&c->lines, name, line + n + 2);
}

static int ask(struct source *s, void *user, struct http_call *c)
{
    const struct upload_request *r = user;
    const struct known known = s3_begin(s, c, r->method, r->key, r->query);
    c->send = r->body;
    c->send_size = r->size;
    c->limit = TEXT_MAX;
    c->patience = r->patience;
    if (r->sum)
        http_add(&c->lines, "x-amz-checksum-crc64nvme", r->sum);
    if (r->extra)
        add_extra(c, r->extra);
    return s3_end(s, c, &known, r->payload);
}

static bool is_about_sums(void)
{
    return strstr(err_text(), "hecksum") || strstr(err_text(), "InvalidRequest") ||
           strstr(err_text(), "InvalidArgument");
}

int upload_run(struct upload *u, struct upload_request *r, struct upload_worker *w)
{
    sigv4_hash(r->payload, r->body ? r->body : "", r->size);
    u->starts(u->user, (int64_t)r->size);
    int rc = scheme_run(u->to, w->http, &w->call, ask, r);
    int status = w->call.head.status;
    if (rc < 0 && r->sum && (status == 501 || (status == 400 && is_about_sums())))
        return err_wrap(rc, "%s: is CRC64NVME not known (--no-checksum)?", r->key);
    return rc < 0 ? err_wrap(rc, "%s", r->key) : 0;
}

void upload_once(struct upload *u, struct upload_request *r, struct upload_worker *w)
{
    struct http_call *c = &w->call;
    char why[ERR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", err_text());
    sigv4_hash(r->payload, r->body ? r->body : "", r->size);
    double until = log_now() + ONCE_SECONDS;
    http_call_clear(c);
    if (ask(u->to, r, c) == 0 && http_start(w->http, c) == 0)
        while (c->slot && log_now() < until && http_turn(w->http, 0.1) == 0)
            ;
    http_drop(w->http, c);
    err_copy(E_AGAIN, why);
}

int upload_compare(const struct upload_worker *w, const char *sum, const char *key,
                   bool *kept)
{
    const char *said = w->call.head.crc64nvme;
    *kept = said[0] != 0;
    if (*kept && strcmp(said, sum) != 0)
        return err_set(E_REMOTE, "%s: the server keeps CRC %s, but %s was sent", key,
                       said, sum);
    return 0;
}

int upload_read(const struct upload_item *it, char *to, int64_t at, size_t n)
{
    int fd = open(it->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "cannot open %s", it->path);
    struct stat st;
    int rc = fstat(fd, &st) == 0 && st.st_size == it->size
                 ? file_pread(fd, to, n, at, it->path)
                 : err_set(E_AGAIN, "%s changed while it was uploaded", it->path);
    close(fd);
    return rc;
}

/* ---- is it there? ---- */

int upload_look(struct upload *u, struct upload_item *it, int worker)
{
    struct upload_worker *w = &u->worker[worker];
    struct upload_request r = {.method = "HEAD", .key = it->key, .query = ""};
    if (u->sums)
        r.extra = "x-amz-checksum-mode: ENABLED";
    int rc = upload_run(u, &r, w);
    if (rc == E_MISSING)
        return 0;
    TRY(rc);
    if (w->call.head.length != it->size)
        return 0;
    bool whole = strcmp(w->call.head.checksum_type, "COMPOSITE") != 0;
    snprintf(it->sum, sizeof it->sum, "%s", whole ? w->call.head.crc64nvme : "");
    return 1;
}

int upload_sum(const struct upload *u, char sum[SET_SUM], struct want_run *run,
               const struct upload_item *it, int worker)
{
    uint64_t crc = 0;
    for (int64_t at = 0; at < it->size; at += u->part) {
        size_t n = (size_t)(it->size - at < u->part ? it->size - at : u->part);
        TRY(upload_read(it, u->worker[worker].buffer, at, n));
        crc = crc_add(CRC64NVME, crc, u->worker[worker].buffer, n);
        if (run)
            want_add(run, u->worker[worker].buffer, n);
    }
    set_sum(sum, crc);
    return 0;
}

/* ---- in one request ---- */

int upload_small(struct upload *u, struct upload_item *it, int worker)
{
    struct upload_worker *w = &u->worker[worker];
    TRY(upload_read(it, w->buffer, 0, (size_t)it->size));
    set_sum(it->sum, crc_add(CRC64NVME, 0, w->buffer, (size_t)it->size));
    struct upload_request r = {.method = "PUT",
                               .key = it->key,
                               .query = "",
                               .body = w->buffer,
                               .size = (size_t)it->size,
                               .sum = u->sums ? it->sum : NULL};
    TRY(upload_run(u, &r, w));
    TRY(upload_compare(w, it->sum, it->key, &it->kept));
    u->sent(u->user, it->size, false);
    return 0;
}

int upload_text(struct upload *u, const char *key, const struct buf *text)
{
    char sum[SET_SUM];
    bool kept;
    set_sum(sum, crc_add(CRC64NVME, 0, text->p, text->len));
    struct upload_request r = {.method = "PUT",
                               .key = key,
                               .query = "",
                               .body = text->p,
                               .size = text->len,
                               .sum = u->sums ? sum : NULL,
                               .extra = "Content-Type: application/json"};
    TRY(buf_check(text));
    TRY(upload_run(u, &r, &u->worker[0]));
    return upload_compare(&u->worker[0], sum, key, &kept);
}

int upload_get(struct upload *u, const char *key, size_t limit)
{
    struct upload_request r = {.method = "GET", .key = key, .query = ""};
    TRY(upload_run(u, &r, &u->worker[0]));
    if (u->worker[0].call.text.len > limit)
        return err_set(E_FORMAT, "%s: over %zu bytes", key, limit);
    return 0;
}
