/* SPDX-License-Identifier: MIT */
/* upload_large.c - files in parts, all of them in one row of parts.
 *
 *     POST KEY?uploads                    begin,
 *     PUT KEY?partNumber=N&uploadId=ID    the parts, in any order,
 *     POST KEY?uploadId=ID                the end: a list of the parts,
 *     DELETE KEY?uploadId=ID              or, after a failure that stays, none of it
 *
 * Whoever takes a file's first part begins it, and whoever ends its last one ends it,
 * so the end of one file overlaps with the beginning of the next.
 *
 * The server remembers what has begun.  An upload that a killed run has left is gone on
 * with: each of its parts is held against the bytes of the file, and sent anew where
 * they differ.  So nothing is kept here, and another machine may go on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc.h"
#include "digest.h"
#include "err.h"
#include "etag.h"
#include "mem.h"
#include "tool.h"
#include "upload_request.h"
#include "url.h"
#include "xml.h"

enum { PARTS_MAX = 10000, ID_MAX = 2048, QUERY_MAX = 3 * ID_MAX + 64 };

struct part {
    char sum[SET_SUM], etag[HEAD_TEXT];
    uint64_t crc;
    bool there; /* as an earlier run has sent it: held against the file first */
};

/* A file on its way. */
struct large {
    struct upload_item *it;
    struct upload *u;
    int64_t n;            /* parts */
    int64_t first;        /* of them, in the row of all parts */
    pthread_mutex_t lock; /* over what follows */
    bool begun, resumed;
    int64_t left; /* parts that have not ended */
    char *id;     /* escaped */
    struct part *at;
    int code;
    char why[ERR_TEXT_MAX];
};

struct row {
    struct upload *u;
    struct large *file;
    int64_t files;
    upload_ended *ended;
};

static int64_t part_bytes(const struct large *f, int64_t i)
{
    int64_t left = f->it->size - i * f->u->part;
    return left < f->u->part ? left : f->u->part;
}

/* ---- beginning ---- */

static int take_id(void *user, const char *path, const char *text)
{
    const char *slash = strchr(path, '/'); // servers name the root differently
    if (slash && strcmp(slash, "/UploadId") == 0)
        buf_adds(user, text);
    return 0;
}

static int keep_id(struct large *f, const char *id)
{
    struct buf escaped = {0};
    if (*id == 0 || strlen(id) > ID_MAX)
        return err_set(E_REMOTE, "%s: the server gives no upload id", f->it->key);
    url_escape(&escaped, id, "");
    mem_free(f->id);
    f->id = mem_text(buf_text(&escaped));
    int rc = f->id ? buf_check(&escaped) : E_MEMORY;
    buf_drop(&escaped);
    return rc;
}

static int begin(struct large *f, struct upload_worker *w)
{
    struct buf id = {0};
    struct upload_request r = {
        .method = "POST", .key = f->it->key, .query = "uploads="};
    if (f->u->sums)
        r.extra = "x-amz-checksum-algorithm: CRC64NVME";
    TRY(upload_run(f->u, &r, w));
    int rc = xml_read(buf_text(&w->call.text), w->call.text.len, take_id, &id);
    if (rc == 0)
        rc = keep_id(f, buf_text(&id));
    buf_drop(&id);
    return rc;
}

/* ---- what a killed run has left ---- */

struct left {
    const char *key;
    struct buf item_key, item_id, ids; // each id with its NUL
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
        buf_add(&l->ids, buf_text(&l->item_id), l->item_id.len + 1);
        l->n++;
    }
    return 0;
}

static void abort_upload(struct large *f, struct upload_worker *w)
{
    char query[QUERY_MAX];
    snprintf(query, sizeof query, "uploadId=%s", f->id);
    struct upload_request r = {.method = "DELETE", .key = f->it->key, .query = query};
    upload_once(f->u, &r, w);
}

/* Of several the last is gone on with, and the others are aborted. */
static int choose(struct large *f, const struct left *l, struct upload_worker *w)
{
    const char *id = buf_text(&l->ids);
    for (int i = 0; i < l->n; i++, id += strlen(id) + 1) {
        TRY(keep_id(f, id));
        if (i + 1 < l->n)
            abort_upload(f, w);
    }
    return l->n;
}

/* 1: there is one, and f->id is it. */
static int find_left(struct large *f, struct upload_worker *w)
{
    struct left l = {.key = f->it->key};
    struct buf query = {0};
    buf_adds(&query, "prefix=");
    url_escape(&query, f->it->key, "");
    buf_adds(&query, "&uploads=");
    struct upload_request r = {.method = "GET", .key = "", .query = buf_text(&query)};
    int rc = upload_run(f->u, &r, w);
    if (rc == 0)
        rc = xml_read(buf_text(&w->call.text), w->call.text.len, take_upload, &l);
    if (rc == 0)
        rc = choose(f, &l, w);
    buf_drop(&query);
    buf_drop(&l.item_key);
    buf_drop(&l.item_id);
    buf_drop(&l.ids);
    return rc < 0 ? rc : rc > 0;
}

/* One page of parts. */
struct parts {
    struct large *file;
    int64_t number, size, marker;
    char etag[HEAD_TEXT], sum[SET_SUM];
    bool more, other; // other: a part that this file does not have
};

static void end_of_part(struct parts *p)
{
    struct large *f = p->file;
    p->other |=
        p->number < 1 || p->number > f->n || p->size != part_bytes(f, p->number - 1);
    if (!p->other) {
        struct part *part = &f->at[p->number - 1];
        part->there = true;
        memcpy(part->etag, p->etag, sizeof part->etag);
        memcpy(part->sum, p->sum, sizeof part->sum);
    }
    p->number = p->size = 0;
    p->etag[0] = p->sum[0] = 0;
}

static int take_part(void *user, const char *path, const char *text)
{
    struct parts *p = user;
    static const char part[] = "ListPartsResult/Part";
    size_t n = strlen(part);
    const char *name = strncmp(path, part, n) == 0 ? path + n : "";
    if (strcmp(path, "ListPartsResult/IsTruncated") == 0)
        p->more = strcmp(text, "true") == 0;
    else if (strcmp(path, "ListPartsResult/NextPartNumberMarker") == 0)
        p->marker = strtoll(text, NULL, 10);
    else if (strcmp(path, part) == 0)
        end_of_part(p);
    else if (strcmp(name, "/PartNumber") == 0)
        p->number = strtoll(text, NULL, 10);
    else if (strcmp(name, "/Size") == 0)
        p->size = strtoll(text, NULL, 10);
    else if (strcmp(name, "/ETag") == 0)
        snprintf(p->etag, sizeof p->etag, "%s", text);
    else if (strcmp(name, "/ChecksumCRC64NVME") == 0)
        snprintf(p->sum, sizeof p->sum, "%s", text);
    return 0;
}

/* 1: the parts that are there are parts of this file, as long as it is now. */
static int list_parts(struct large *f, struct upload_worker *w)
{
    char query[QUERY_MAX];
    struct parts p = {.file = f};
    int64_t before;
    do {
        before = p.marker;
        p.more = false;
        snprintf(query, sizeof query, "part-number-marker=%lld&uploadId=%s",
                 (long long)before, f->id);
        struct upload_request r = {.method = "GET", .key = f->it->key, .query = query};
        TRY(upload_run(f->u, &r, w));
        TRY(xml_read(buf_text(&w->call.text), w->call.text.len, take_part, &p));
    } while (p.more && p.marker > before && !p.other);
    return !p.other;
}

static void forget_parts(struct large *f)
{
    for (int64_t i = 0; i < f->n; i++)
        f->at[i].there = false;
    f->resumed = false;
}

/* 1: the file goes on in an upload of an earlier run.  Not every server, or user, can
 * look for those. */
static int resume(struct large *f, struct upload_worker *w)
{
    int rc = find_left(f, w);
    int same = rc > 0 ? list_parts(f, w) : rc;
    if (same < 0 && tool_stopped())
        return same;
    if (same < 0)
        f->u->told(f->u->user, err_text());
    if (rc > 0 && same == 0) // one that could not be looked at is left as it is
        abort_upload(f, w);
    return same > 0;
}

/* Under the file's lock. */
static int open_file(struct large *f, struct upload_worker *w)
{
    if (f->n > PARTS_MAX)
        return err_set(E_CONFIG,
                       "%s: %lld parts, but S3 allows %d; use a larger --part-size",
                       f->it->path, (long long)f->n, PARTS_MAX);
    if (!(f->at = mem_zero((size_t)f->n, sizeof *f->at)))
        return E_MEMORY;
    int rc = resume(f, w);
    TRY(rc);
    f->resumed = rc > 0;
    if (f->resumed)
        return 0;
    forget_parts(f);
    return begin(f, w);
}

/* ---- parts ---- */

/* Does the server have these bytes?  By its CRC, else by the MD5 that is a part's ETag
 * where nothing is encrypted. */
static bool is_there(const struct part *part, const char *bytes, size_t n)
{
    char sum[SET_SUM];
    uint8_t got[DIGEST_MAX], want[ETAG_MD5];
    bool parts;
    if (!part->there)
        return false;
    if (part->sum[0])
        return strcmp(set_sum(sum, part->crc), part->sum) == 0;
    if (etag_md5(want, part->etag, &parts) != 1 || parts)
        return false;
    struct digest *d = digest_open(DIGEST_MD5);
    if (!d)
        return false;
    digest_add(d, bytes, n);
    digest_take(d, got);
    digest_drop(d);
    return memcmp(got, want, ETAG_MD5) == 0;
}

static int send_bytes(struct large *f, int64_t i, struct upload_worker *w, size_t n)
{
    struct part *part = &f->at[i];
    char query[QUERY_MAX];
    bool kept;
    snprintf(query, sizeof query, "partNumber=%lld&uploadId=%s", (long long)i + 1,
             f->id);
    set_sum(part->sum, part->crc);
    struct upload_request r = {.method = "PUT",
                               .key = f->it->key,
                               .query = query,
                               .body = w->buffer,
                               .size = n,
                               .sum = f->u->sums ? part->sum : NULL};
    TRY(upload_run(f->u, &r, w));
    TRY(upload_compare(w, part->sum, f->it->key, &kept));
    snprintf(part->etag, sizeof part->etag, "%s", w->call.head.etag);
    return 0;
}

static int send_part(struct large *f, int64_t i, struct upload_worker *w)
{
    struct part *part = &f->at[i];
    size_t n = (size_t)part_bytes(f, i);
    TRY(upload_read(f->it, w->buffer, i * f->u->part, n));
    part->crc = crc_add(CRC64NVME, 0, w->buffer, n);
    bool there = is_there(part, w->buffer, n);
    if (there)
        set_sum(part->sum, part->crc);
    else
        TRY(send_bytes(f, i, w, n));
    f->u->sent(f->u->user, (int64_t)n, there);
    return 0;
}

/* ---- the end ---- */

static void add_escaped(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>')
            buf_addf(out, "&#%d;", *text);
        else
            buf_addc(out, *text);
    }
}

static void write_list(struct buf *out, const struct large *f)
{
    buf_adds(out, "<CompleteMultipartUpload "
                  "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (int64_t i = 0; i < f->n; i++) {
        buf_addf(out, "<Part><PartNumber>%lld</PartNumber><ETag>", (long long)i + 1);
        add_escaped(out, f->at[i].etag);
        buf_adds(out, "</ETag>");
        if (f->u->sums)
            buf_addf(out, "<ChecksumCRC64NVME>%s</ChecksumCRC64NVME>", f->at[i].sum);
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

static int finish(struct large *f, const char *sum, struct upload_worker *w)
{
    char query[QUERY_MAX];
    struct buf list = {0};
    bool ended = false;
    snprintf(query, sizeof query, "uploadId=%s", f->id);
    write_list(&list, f);
    struct upload_request r = {.method = "POST",
                               .key = f->it->key,
                               .query = query,
                               .body = list.p,
                               .size = list.len,
                               .sum = f->u->sums ? sum : NULL,
                               .extra = f->u->sums ? "x-amz-checksum-type: FULL_OBJECT"
                                                   : NULL};
    int rc = buf_check(&list);
    if (rc == 0)
        rc = upload_run(f->u, &r, w);
    if (rc == 0 &&
        (xml_read(buf_text(&w->call.text), w->call.text.len, take_end, &ended) < 0 ||
         !ended))
        rc = err_set(E_REMOTE, "%s: the server cannot put the parts together",
                     f->it->key);
    buf_drop(&list);
    return rc;
}

/* The end of an upload, and a look at what it has become.  An answer that was lost may
 * have been good: then the upload is gone and the object is there. */
static int complete(struct large *f, int worker)
{
    struct upload_item *it = f->it;
    char sum[SET_SUM], why[ERR_TEXT_MAX];
    uint64_t crc = 0;
    for (int64_t i = 0; i < f->n; i++)
        crc = crc_join(CRC64NVME, crc, f->at[i].crc, (uint64_t)part_bytes(f, i));
    int rc = finish(f, set_sum(sum, crc), &f->u->worker[worker]);
    snprintf(why, sizeof why, "%s", err_text());
    if (rc < 0 && rc != E_MISSING && rc != E_REMOTE)
        return rc;
    int there = upload_look(f->u, it, worker);
    bool same = there > 0 && strcmp(it->sum, sum) == 0;
    bool other = there == 0 || (there > 0 && it->sum[0] && !same);
    it->kept = same;
    memcpy(it->sum, sum, sizeof sum);
    if (rc < 0)
        return same ? 0 : err_copy(rc, why);
    TRY(there);
    return other ? err_set(E_REMOTE,
                           "%s: the server keeps something else than was sent", it->key)
                 : 0;
}

/* What trying again, or other keys, may mend is left to the next run. */
static bool may_mend(int code)
{
    return tool_stopped() || code == E_REMOTE || code == E_ACCESS;
}

/* An upload of another run may have begun in a way that does not go with this one's. */
static int begin_anew(struct large *f, int worker)
{
    struct upload_worker *w = &f->u->worker[worker];
    abort_upload(f, w);
    forget_parts(f);
    TRY(begin(f, w));
    for (int64_t i = 0; i < f->n; i++)
        TRY(send_part(f, i, w));
    return complete(f, worker);
}

static int end_file(struct large *f, int worker)
{
    int rc = f->code < 0 ? err_copy(f->code, f->why) : complete(f, worker);
    if (rc < 0 && f->resumed && f->code == 0 && !may_mend(rc))
        rc = begin_anew(f, worker);
    if (rc < 0 && f->id && !may_mend(rc))
        abort_upload(f, &f->u->worker[worker]);
    mem_free(f->id);
    mem_free(f->at);
    f->id = NULL;
    f->at = NULL;
    return rc;
}

/* ---- the row of all parts ---- */

static void fail(struct large *f, int rc)
{
    if (f->code == 0) {
        f->code = rc;
        memcpy(f->why, err_text(), strlen(err_text()) + 1);
    }
}

/* Begins the file if nobody has; false: it has failed. */
static bool enter(struct large *f, struct upload_worker *w)
{
    pthread_mutex_lock(&f->lock);
    if (!f->begun) {
        int rc = open_file(f, w);
        f->begun = true;
        if (rc < 0)
            fail(f, rc);
    }
    bool good = f->code == 0;
    pthread_mutex_unlock(&f->lock);
    return good;
}

/* True: that was its last part. */
static bool leave(struct large *f, int rc)
{
    pthread_mutex_lock(&f->lock);
    if (rc < 0)
        fail(f, rc);
    bool last = --f->left == 0;
    pthread_mutex_unlock(&f->lock);
    return last;
}

static struct large *file_of(const struct row *row, int64_t part)
{
    int64_t low = 0, high = row->files - 1;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (row->file[mid].first <= part)
            low = mid;
        else
            high = mid - 1;
    }
    return &row->file[low];
}

static int do_parts(void *ctx, int64_t first, int64_t last, int worker)
{
    struct row *row = ctx;
    for (int64_t i = first; i < last; i++) {
        struct large *f = file_of(row, i);
        struct upload_worker *w = &row->u->worker[worker];
        int rc = enter(f, w) ? send_part(f, i - f->first, w) : 0;
        if (tool_stopped())
            return err_set(E_AGAIN, "stopped by a signal");
        if (leave(f, rc))
            TRY(row->ended(row->u->user, f->it, end_file(f, worker)));
    }
    return 0;
}

int upload_large(struct upload *u, struct upload_item *const *item, int64_t n,
                 upload_ended *ended)
{
    struct row row = {.u = u, .ended = ended};
    int64_t parts = 0;
    if (n == 0)
        return 0;
    if (!(row.file = mem_zero((size_t)n, sizeof *row.file)))
        return E_MEMORY;
    for (; row.files < n; row.files++) {
        struct large *f = &row.file[row.files];
        *f = (struct large){.it = item[row.files], .u = u, .first = parts};
        f->n = f->left = (f->it->size + u->part - 1) / u->part;
        parts += f->n;
        pthread_mutex_init(&f->lock, NULL);
    }
    int rc = par_for(u->par, parts, 1, do_parts, &row);
    for (int64_t i = 0; i < n; i++) {
        mem_free(row.file[i].id);
        mem_free(row.file[i].at);
        pthread_mutex_destroy(&row.file[i].lock);
    }
    mem_free(row.file);
    return rc;
}
