/* SPDX-License-Identifier: MIT */
/* upload_left.c - what a killed run has left.
 *
 * The server remembers the uploads that have begun.  One of this key is gone on with:
 * each of its parts is held against the bytes of the file, and sent anew where they
 * differ (upload_part.c).  So nothing is kept here, and another machine may go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "tool.h"
#include "upload_parts.h"
#include "url.h"
#include "xml.h"

/* ---- which upload ---- */

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

/* Of several the last is gone on with, and the others are aborted. */
static int choose(struct upload_file *f, const struct left *l, struct upload_worker *w)
{
    const char *id = buf_text(&l->ids);
    for (int i = 0; i < l->n; i++, id += strlen(id) + 1) {
        TRY(upload_keep_id(f, id));
        if (i + 1 < l->n)
            upload_abort(f, w);
    }
    return l->n;
}

/* 1: there is one, and f->id is it. */
static int find_left(struct upload_file *f, struct upload_worker *w)
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

/* ---- which parts ---- */

/* One page of parts. */
struct parts {
    struct upload_file *file;
    int64_t number, size, marker;
    char etag[HEAD_TEXT], sum[SET_SUM];
    bool more, other; // other: a part that this file does not have
};

static void end_of_part(struct parts *p)
{
    struct upload_file *f = p->file;
    p->other |= p->number < 1 || p->number > f->n ||
                p->size != upload_part_bytes(f, p->number - 1);
    if (!p->other) {
        struct upload_part *part = &f->at[p->number - 1];
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
static int list_parts(struct upload_file *f, struct upload_worker *w)
{
    char query[UPLOAD_QUERY];
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

/* Not every server, or user, can look for uploads. */
int upload_resume(struct upload_file *f, struct upload_worker *w)
{
    int rc = find_left(f, w);
    int same = rc > 0 ? list_parts(f, w) : rc;
    if (same < 0 && tool_stopped())
        return same;
    if (same < 0)
        f->u->told(f->u->user, err_text());
    if (rc > 0 && same == 0) // one that could not be looked at is left as it is
        upload_abort(f, w);
    return same > 0;
}
