/* SPDX-License-Identifier: MIT */
/* upload_end.c - the end of an upload: a list of its parts goes out, and what the
 * server has made of them is looked at. */
#include <stdio.h>
#include <string.h>

#include "crc.h"
#include "err.h"
#include "upload_parts.h"
#include "xml.h"

/* Putting parts together may take a server minutes, in which some say nothing. */
static const double PATIENCE = 300; // seconds

/* ---- the list ---- */

static void add_escaped(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>')
            buf_addf(out, "&#%d;", *text);
        else
            buf_addc(out, *text);
    }
}

static void write_list(struct buf *out, const struct upload_file *f)
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

static int finish(struct upload_file *f, const char *sum, struct upload_worker *w)
{
    char query[UPLOAD_QUERY];
    struct buf list = {0};
    bool ended = false;
    snprintf(query, sizeof query, "uploadId=%s", f->id);
    write_list(&list, f);
    struct upload_request r = {.method = "POST",
                               .key = f->it->key,
                               .query = query,
                               .body = list.p,
                               .size = list.len,
                               .patience = PATIENCE,
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

/* ---- what has become of them ---- */

/* The ETag of an object in parts: the MD5 over the MD5s of its parts, and their number.
 * Empty when a part's ETag is no MD5, or without memory. */
static void make_etag(char out[HEAD_TEXT], const struct upload_file *f)
{
    uint8_t md5[DIGEST_MAX];
    char hex[2 * DIGEST_MAX + 1];
    size_t size = digest_size(DIGEST_MD5);
    struct digest *d = digest_open(DIGEST_MD5);
    bool known = d;
    for (int64_t i = 0; known && i < f->n; i++)
        if ((known = upload_md5(md5, f->at[i].etag)))
            digest_add(d, md5, size);
    out[0] = 0;
    if (known) {
        digest_take(d, md5);
        digest_to_hex(hex, md5, size);
        snprintf(out, HEAD_TEXT, "\"%s-%lld\"", hex, (long long)f->n);
    }
    digest_drop(d);
}

/* Is the object that lies there made of these parts?  By its CRC, else by its ETag. */
static bool is_same(const struct upload_file *f, const char *sum,
                    const struct upload_worker *w)
{
    char etag[HEAD_TEXT];
    if (f->it->sum[0])
        return strcmp(f->it->sum, sum) == 0;
    make_etag(etag, f);
    return etag[0] && strcmp(etag, w->call.head.etag) == 0;
}

/* An answer that was lost may have been good: then the upload is gone and the object is
 * there. */
int upload_complete(struct upload_file *f, int worker)
{
    struct upload_item *it = f->it;
    char sum[SET_SUM], why[ERR_TEXT_MAX];
    uint64_t crc = 0;
    for (int64_t i = 0; i < f->n; i++)
        crc = crc_join(CRC64NVME, crc, f->at[i].crc, (uint64_t)upload_part_bytes(f, i));
    int rc = finish(f, set_sum(sum, crc), &f->u->worker[worker]);
    snprintf(why, sizeof why, "%s", err_text());
    if (rc < 0 && rc != E_MISSING && rc != E_REMOTE)
        return rc;
    int there = upload_look(f->u, it, worker);
    bool same = there > 0 && is_same(f, sum, &f->u->worker[worker]);
    bool other = there == 0 || (there > 0 && it->sum[0] && !same);
    it->kept = same && it->sum[0];
    memcpy(it->sum, sum, sizeof sum);
    if (rc < 0)
        return same ? 0 : err_copy(rc, why);
    TRY(there);
    return other ? err_set(E_REMOTE,
                           "%s: the server keeps something else than was sent", it->key)
                 : 0;
}
