/* SPDX-License-Identifier: MIT */
/* upload_part.c - an upload in parts: begun, a part sent or found there, given up. */
#include <stdio.h>
#include <string.h>

#include "crc.h"
#include "err.h"
#include "mem.h"
#include "upload_parts.h"
#include "url.h"
#include "xml.h"

int64_t upload_part_bytes(const struct upload_file *f, int64_t i)
{
    int64_t left = f->it->size - i * f->u->part;
    return left < f->u->part ? left : f->u->part;
}

/* ---- beginning, and giving up ---- */

static int take_id(void *user, const char *path, const char *text)
{
    const char *slash = strchr(path, '/'); // servers name the root differently
    if (slash && strcmp(slash, "/UploadId") == 0)
        buf_adds(user, text);
    return 0;
}

int upload_keep_id(struct upload_file *f, const char *id)
{
    struct buf escaped = {0};
    if (*id == 0 || strlen(id) > UPLOAD_ID)
        return err_set(E_REMOTE, "%s: the server gives no upload id", f->it->key);
    url_escape(&escaped, id, "");
    mem_free(f->id);
    f->id = mem_text(buf_text(&escaped));
    int rc = f->id ? buf_check(&escaped) : E_MEMORY;
    buf_drop(&escaped);
    return rc;
}

int upload_begin(struct upload_file *f, struct upload_worker *w)
{
    struct buf id = {0};
    struct upload_request r = {
        .method = "POST", .key = f->it->key, .query = "uploads="};
    if (f->u->sums)
        r.extra = "x-amz-checksum-algorithm: CRC64NVME";
    TRY(upload_run(f->u, &r, w));
    int rc = xml_read(buf_text(&w->call.text), w->call.text.len, take_id, &id);
    if (rc == 0)
        rc = upload_keep_id(f, buf_text(&id));
    buf_drop(&id);
    return rc;
}

void upload_abort(struct upload_file *f, struct upload_worker *w)
{
    char query[UPLOAD_QUERY];
    snprintf(query, sizeof query, "uploadId=%s", f->id);
    struct upload_request r = {.method = "DELETE", .key = f->it->key, .query = query};
    upload_once(f->u, &r, w);
}

/* ---- parts ---- */

bool upload_md5(uint8_t out[DIGEST_MAX], const char *etag)
{
    char hex[33] = "";
    if (sscanf(etag, "%*[\"]%32[0-9a-f]", hex) != 1 &&
        sscanf(etag, "%32[0-9a-f]", hex) != 1)
        return false;
    return digest_from_hex(out, digest_size(DIGEST_MD5), hex);
}

/* Does the server have these bytes?  By its CRC, else by their MD5. */
static bool is_there(const struct upload_part *part, const char *bytes, size_t n)
{
    char sum[SET_SUM];
    uint8_t got[DIGEST_MAX], want[DIGEST_MAX];
    if (!part->there)
        return false;
    if (part->sum[0])
        return strcmp(set_sum(sum, part->crc), part->sum) == 0;
    struct digest *d = upload_md5(want, part->etag) ? digest_open(DIGEST_MD5) : NULL;
    if (!d)
        return false;
    digest_add(d, bytes, n);
    digest_take(d, got);
    digest_drop(d);
    return memcmp(got, want, digest_size(DIGEST_MD5)) == 0;
}

static int send_bytes(struct upload_file *f, int64_t i, struct upload_worker *w,
                      size_t n)
{
    struct upload_part *part = &f->at[i];
    char query[UPLOAD_QUERY];
    bool kept;
    snprintf(query, sizeof query, "partNumber=%lld&uploadId=%s", (long long)i + 1,
             f->id);
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

int upload_send_part(struct upload_file *f, int64_t i, struct upload_worker *w)
{
    struct upload_part *part = &f->at[i];
    size_t n = (size_t)upload_part_bytes(f, i);
    TRY(upload_read(f->it, w->buffer, i * f->u->part, n));
    part->crc = crc_add(CRC64NVME, 0, w->buffer, n);
    bool there = is_there(part, w->buffer, n);
    set_sum(part->sum, part->crc);
    if (!there)
        TRY(send_bytes(f, i, w, n));
    f->u->sent(f->u->user, (int64_t)n, there);
    return there;
}
