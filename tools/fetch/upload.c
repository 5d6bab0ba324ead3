/* SPDX-License-Identifier: MIT */
/* upload.c - the requests of an upload.
 *
 *     PUT KEY                             a small file, with its sums
 *     POST KEY?uploads                    or: begin,
 *     PUT KEY?partNumber=N&uploadId=ID    the parts, in any order,
 *     POST KEY?uploadId=ID                the end: a list of the parts,
 *     DELETE KEY?uploadId=ID              or, after a failure, none of it */
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
#include "sign.h"
#include "url.h"
#include "xml.h"

enum { TEXT_MAX = 1 << 20, PARTS_MAX = 10000, ID_MAX = 2048 };
static const double ABORT_SECONDS = 5;

/* ---- one request ---- */

/* What a request is; `ask` makes every attempt of it anew. */
struct request {
    const char *method, *key, *query;
    const void *body;
    size_t size;
    const char *sum;   // CRC of the body, or of the whole object; NULL: none
    const char *extra; // one more line "Name: value"; NULL: none
    char payload[SIGV4_HEX];
};

static void add_extra(struct http_call *c, const char *line)
{
    char name[64];
    size_t n = strcspn(line, ":");
    snprintf(name, sizeof name, "%.*s", (int)n, line);
    http_add(&c->lines, name, line + n + 2);
}

static int ask(struct source *s, void *user, struct http_call *c)
{
    const struct request *r = user;
    s3_begin(s, c, r->method, r->key, r->query);
    c->send = r->body;
    c->send_size = r->size;
    c->limit = TEXT_MAX;
    if (r->sum)
        http_add(&c->lines, "x-amz-checksum-crc64nvme", r->sum);
    if (r->extra)
        add_extra(c, r->extra);
    return s3_end(s, c, r->payload);
}

static bool is_about_sums(void)
{
    return strstr(err_text(), "hecksum") || strstr(err_text(), "InvalidRequest") ||
           strstr(err_text(), "InvalidArgument");
}

static int run(struct upload *u, struct request *r, struct upload_worker *w)
{
    sigv4_hash(r->payload, r->body ? r->body : "", r->size);
    int rc = scheme_run(u->to, w->http, &w->call, ask, r);
    int status = w->call.head.status;
    if (rc < 0 && r->sum && (status == 501 || (status == 400 && is_about_sums())))
        return err_wrap(rc, "%s: is CRC64NVME not known (--no-checksum)?", r->key);
    return rc < 0 ? err_wrap(rc, "%s", r->key) : 0;
}

/* What the server says that it keeps. */
static int compare(const struct upload_worker *w, const char *sum, const char *key,
                   bool *kept)
{
    const char *said = w->call.head.crc64nvme;
    *kept = said[0] != 0;
    if (*kept && strcmp(said, sum) != 0)
        return err_set(E_REMOTE, "%s: the server keeps CRC %s, but %s was sent", key,
                       said, sum);
    return 0;
}

static int read_part(const struct upload_item *it, char *to, int64_t at, size_t n)
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
    struct request r = {.method = "HEAD", .key = it->key, .query = ""};
    if (u->sums)
        r.extra = "x-amz-checksum-mode: ENABLED";
    int rc = run(u, &r, w);
    if (rc == E_MISSING)
        return 0;
    TRY(rc);
    if (w->call.head.length != it->size)
        return 0;
    bool whole = strcmp(w->call.head.checksum_type, "COMPOSITE") != 0;
    snprintf(it->sum, sizeof it->sum, "%s", whole ? w->call.head.crc64nvme : "");
    return 1;
}

int upload_sum(const struct upload *u, char sum[SET_SUM], const struct upload_item *it,
               int worker)
{
    uint64_t crc = 0;
    for (int64_t at = 0; at < it->size; at += u->part) {
        size_t n = (size_t)(it->size - at < u->part ? it->size - at : u->part);
        TRY(read_part(it, u->worker[worker].buffer, at, n));
        crc = crc_add(CRC64NVME, crc, u->worker[worker].buffer, n);
    }
    set_sum(sum, crc);
    return 0;
}

/* ---- in one request ---- */

int upload_small(struct upload *u, struct upload_item *it, int worker)
{
    struct upload_worker *w = &u->worker[worker];
    TRY(read_part(it, w->buffer, 0, (size_t)it->size));
    set_sum(it->sum, crc_add(CRC64NVME, 0, w->buffer, (size_t)it->size));
    struct request r = {.method = "PUT",
                        .key = it->key,
                        .query = "",
                        .body = w->buffer,
                        .size = (size_t)it->size,
                        .sum = u->sums ? it->sum : NULL};
    TRY(run(u, &r, w));
    TRY(compare(w, it->sum, it->key, &it->kept));
    u->sent(u->user, it->size);
    return 0;
}

int upload_text(struct upload *u, const char *key, const struct buf *text)
{
    char sum[SET_SUM];
    bool kept;
    set_sum(sum, crc_add(CRC64NVME, 0, text->p, text->len));
    struct request r = {.method = "PUT",
                        .key = key,
                        .query = "",
                        .body = text->p,
                        .size = text->len,
                        .sum = u->sums ? sum : NULL,
                        .extra = "Content-Type: application/json"};
    TRY(buf_check(text));
    TRY(run(u, &r, &u->worker[0]));
    return compare(&u->worker[0], sum, key, &kept);
}

int upload_get(struct upload *u, const char *key, size_t limit)
{
    struct request r = {.method = "GET", .key = key, .query = ""};
    TRY(run(u, &r, &u->worker[0]));
    if (u->worker[0].call.text.len > limit)
        return err_set(E_FORMAT, "%s: over %zu bytes", key, limit);
    return 0;
}

/* ---- in parts ---- */

struct part {
    char sum[SET_SUM], etag[HEAD_TEXT];
    uint64_t crc;
};

/* An upload that has begun. */
struct parts {
    struct upload *u;
    struct upload_item *it;
    char *id; // escaped
    int64_t size, n;
    struct part *at;
};

static int take_id(void *user, const char *path, const char *text)
{
    const char *slash = strchr(path, '/'); // servers name the root differently
    if (slash && strcmp(slash, "/UploadId") == 0)
        buf_adds(user, text);
    return 0;
}

static int begin(struct parts *p)
{
    struct upload_worker *w = &p->u->worker[0];
    struct buf id = {0}, escaped = {0};
    struct request r = {.method = "POST", .key = p->it->key, .query = "uploads="};
    if (p->u->sums)
        r.extra = "x-amz-checksum-algorithm: CRC64NVME";
    TRY(run(p->u, &r, w));
    int rc = xml_read(buf_text(&w->call.text), w->call.text.len, take_id, &id);
    if (rc == 0 && (id.len == 0 || id.len > ID_MAX))
        rc = err_set(E_REMOTE, "%s: the server gives no upload id", p->it->key);
    url_escape(&escaped, buf_text(&id), "");
    p->id = rc == 0 ? mem_text(buf_text(&escaped)) : NULL;
    if (rc == 0 && !p->id)
        rc = E_MEMORY;
    buf_drop(&id);
    buf_drop(&escaped);
    return rc;
}

static int send_part(struct parts *p, int64_t i, struct upload_worker *w)
{
    struct part *part = &p->at[i];
    int64_t at = i * p->size;
    size_t n = (size_t)(p->it->size - at < p->size ? p->it->size - at : p->size);
    char query[ID_MAX * 3 + 64];
    bool kept;
    snprintf(query, sizeof query, "partNumber=%lld&uploadId=%s", (long long)i + 1,
             p->id);
    TRY(read_part(p->it, w->buffer, at, n));
    part->crc = crc_add(CRC64NVME, 0, w->buffer, n);
    set_sum(part->sum, part->crc);
    struct request r = {.method = "PUT",
                        .key = p->it->key,
                        .query = query,
                        .body = w->buffer,
                        .size = n,
                        .sum = p->u->sums ? part->sum : NULL};
    TRY(run(p->u, &r, w));
    TRY(compare(w, part->sum, p->it->key, &kept));
    snprintf(part->etag, sizeof part->etag, "%s", w->call.head.etag);
    p->u->sent(p->u->user, (int64_t)n);
    return 0;
}

static int send_parts(void *ctx, int64_t first, int64_t last, int worker)
{
    struct parts *p = ctx;
    for (int64_t i = first; i < last; i++)
        TRY(send_part(p, i, &p->u->worker[worker]));
    return 0;
}

static void add_escaped(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>')
            buf_addf(out, "&#%d;", *text);
        else
            buf_addc(out, *text);
    }
}

static void write_list(struct buf *out, const struct parts *p)
{
    buf_adds(out, "<CompleteMultipartUpload "
                  "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (int64_t i = 0; i < p->n; i++) {
        buf_addf(out, "<Part><PartNumber>%lld</PartNumber><ETag>", (long long)i + 1);
        add_escaped(out, p->at[i].etag);
        buf_adds(out, "</ETag>");
        if (p->u->sums)
            buf_addf(out, "<ChecksumCRC64NVME>%s</ChecksumCRC64NVME>", p->at[i].sum);
        buf_adds(out, "</Part>");
    }
    buf_adds(out, "</CompleteMultipartUpload>");
}

/* Status 200 is sent before the server knows how it ends. */
static int take_end(void *user, const char *path, const char *text)
{
    (void)text;
    const char *slash = strchr(path, '/');
    *(bool *)user |= slash && strcmp(slash, "/ETag") == 0;
    return 0;
}

static int finish(struct parts *p, const char *query)
{
    struct upload_worker *w = &p->u->worker[0];
    struct buf list = {0};
    bool ended = false;
    write_list(&list, p);
    struct request r = {.method = "POST",
                        .key = p->it->key,
                        .query = query,
                        .body = list.p,
                        .size = list.len,
                        .sum = p->u->sums ? p->it->sum : NULL,
                        .extra =
                            p->u->sums ? "x-amz-checksum-type: FULL_OBJECT" : NULL};
    int rc = buf_check(&list);
    if (rc == 0)
        rc = run(p->u, &r, w);
    if (rc == 0 &&
        (xml_read(buf_text(&w->call.text), w->call.text.len, take_end, &ended) < 0 ||
         !ended))
        rc = err_set(E_REMOTE, "%s: the server cannot put the parts together",
                     p->it->key);
    buf_drop(&list);
    return rc;
}

/* The end of an upload, and a look at what it has become.  An answer that was lost may
 * have been good: then the upload is gone and the object is there. */
static int complete(struct parts *p)
{
    char query[ID_MAX * 3 + 64], sum[SET_SUM], why[ERR_TEXT_MAX];
    uint64_t crc = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t left = p->it->size - i * p->size;
        crc = crc_join(CRC64NVME, crc, p->at[i].crc,
                       (uint64_t)(left < p->size ? left : p->size));
    }
    set_sum(p->it->sum, crc);
    memcpy(sum, p->it->sum, sizeof sum);
    snprintf(query, sizeof query, "uploadId=%s", p->id);
    int rc = finish(p, query);
    snprintf(why, sizeof why, "%s", err_text());
    if (rc < 0 && rc != E_MISSING && rc != E_REMOTE)
        return rc;
    int there = upload_look(p->u, p->it, 0);
    bool same = there > 0 && strcmp(p->it->sum, sum) == 0;
    p->it->kept = same;
    bool other = there == 0 || (there > 0 && p->it->sum[0] && !same);
    memcpy(p->it->sum, sum, sizeof sum);
    if (rc < 0)
        return same ? 0 : err_copy(rc, why);
    TRY(there);
    return other
               ? err_set(E_REMOTE, "%s: the server keeps something else than was sent",
                         p->it->key)
               : 0;
}

/* Also when a signal has stopped us, and then not for long. */
static void abort_upload(struct parts *p)
{
    struct upload_worker *w = &p->u->worker[0];
    struct http_call *c = &w->call;
    char query[ID_MAX * 3 + 64], why[ERR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", err_text());
    snprintf(query, sizeof query, "uploadId=%s", p->id);
    struct request r = {.method = "DELETE", .key = p->it->key, .query = query};
    sigv4_hash(r.payload, "", 0);
    double until = log_now() + ABORT_SECONDS;
    http_call_clear(c);
    if (ask(p->u->to, &r, c) == 0 && http_start(w->http, c) == 0)
        while (c->slot && log_now() < until && http_turn(w->http, 0.1) == 0)
            ;
    http_drop(w->http, c);
    err_copy(E_AGAIN, why);
}

int upload_large(struct upload *u, struct upload_item *it)
{
    struct parts p = {.u = u, .it = it, .size = u->part};
    p.n = (it->size + p.size - 1) / p.size;
    if (p.n > PARTS_MAX)
        return err_set(E_CONFIG,
                       "%s: %lld parts, but S3 allows %d; use a larger "
                       "--part-size",
                       it->path, (long long)p.n, PARTS_MAX);
    p.at = mem_zero((size_t)p.n, sizeof *p.at);
    if (!p.at)
        return E_MEMORY;
    int rc = begin(&p);
    if (rc == 0) {
        rc = par_for(u->par, p.n, 1, send_parts, &p);
        if (rc == 0)
            rc = complete(&p);
        if (rc < 0)
            abort_upload(&p);
    }
    mem_free(p.id);
    mem_free(p.at);
    return rc;
}

/* ---- what a killed run has left ---- */

struct left {
    const char *key;
    struct buf item_key, item_id, ids; // escaped ids, each with its NUL
    int n;
};

static int take_upload(void *user, const char *path, const char *text)
{
    struct left *l = user;
    static const char upload[] = "ListMultipartUploadsResult/Upload";
    size_t n = strlen(upload);
    if (strncmp(path, upload, n) != 0)
        return 0;
    struct buf *to = strcmp(path + n, "/Key") == 0        ? &l->item_key
                     : strcmp(path + n, "/UploadId") == 0 ? &l->item_id
                                                          : NULL;
    if (to) {
        buf_clear(to);
        buf_adds(to, text);
    } else if (path[n] == 0 && strcmp(buf_text(&l->item_key), l->key) == 0) {
        url_escape(&l->ids, buf_text(&l->item_id), "");
        buf_addc(&l->ids, 0);
        l->n++;
    }
    return 0;
}

int upload_clear(struct upload *u, const char *key)
{
    struct upload_worker *w = &u->worker[0];
    struct left l = {.key = key};
    struct buf query = {0};
    buf_adds(&query, "prefix=");
    url_escape(&query, key, "");
    buf_adds(&query, "&uploads=");
    struct request r = {.method = "GET", .key = "", .query = buf_text(&query)};
    int rc = run(u, &r, w);
    if (rc == 0)
        rc = xml_read(buf_text(&w->call.text), w->call.text.len, take_upload, &l);
    const char *id = buf_text(&l.ids);
    for (int i = 0; rc == 0 && i < l.n; i++, id += strlen(id) + 1) {
        struct upload_item it = {.key = key};
        struct parts p = {.u = u, .it = &it, .id = (char *)id};
        abort_upload(&p);
    }
    buf_drop(&query);
    buf_drop(&l.item_key);
    buf_drop(&l.item_id);
    buf_drop(&l.ids);
    return rc;
}
