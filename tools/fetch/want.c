/* SPDX-License-Identifier: MIT */
/* want.c - the choice is the same for all servers: what is not offered is not wanted.
 */
#include "want.h"

#include <stdio.h>
#include <string.h>

#include "err.h"
#include "etag.h"
#include "file.h"
#include "mem.h"
#include "url.h"

enum { READ = 1 << 20 };

static const char *const names[] = {"CRC-64/NVME", "CRC-32C", "CRC-32"};

/* ---- the choice ---- */

/* A CRC is sent with its most significant byte first. */
static int take_crc(struct want *out, const struct object *o, const char *text,
                    enum crc crc)
{
    uint8_t byte[8];
    size_t n = crc == CRC64NVME ? 8 : 4;
    if (!digest_from_base64(byte, n, text))
        return err_set(E_REMOTE, "%s: \"%s\" is no %s", o->key, text, names[crc]);
    *out = (struct want){.kind = WANT_CRC, .crc = crc};
    for (size_t i = 0; i < n; i++)
        out->value = out->value << 8 | byte[i];
    return 0;
}

int64_t want_parts(const struct object *o)
{
    uint8_t sum[ETAG_MD5];
    bool parts;
    return etag_md5(sum, o->etag, &parts);
}

/* An ETag is an MD5 when the bytes are stored as they are, or encrypted by S3 alone. */
static void take_etag(struct want *out, const struct object *o, const struct head *h,
                      int64_t part)
{
    bool parts;
    int64_t n = etag_md5(out->sum, o->etag, &parts);
    if (h->encryption[0] && strcmp(h->encryption, "AES256") != 0)
        out->missing = "it is encrypted with a key of KMS, so its ETag is no MD5";
    else if (n == 0)
        out->missing = "its ETag is no MD5";
    else if (n > 1 && part <= 0)
        out->missing = "the server does not say in which parts it was uploaded";
    else if (n > 1 && (o->size + part - 1) / part != n)
        out->missing = "it was uploaded in parts of different sizes";
    if (out->missing)
        return;
    out->kind = WANT_DIGEST;
    out->digest = DIGEST_MD5;
    out->part = !parts ? 0 : n > 1 ? part : INT64_MAX;
}

int want_of(struct want *out, const struct object *o, const struct head *h,
            int64_t part)
{
    *out = (struct want){.kind = WANT_NOTHING};
    if (o->sha256 || o->blob) { // their form was checked when they were read
        out->kind = WANT_DIGEST;
        out->digest = o->sha256 ? DIGEST_SHA256 : DIGEST_SHA1;
        out->blob = !o->sha256;
        digest_from_hex(out->sum, digest_size(out->digest),
                        o->sha256 ? o->sha256 : o->blob);
        return 0;
    }
    bool whole = strcmp(h->checksum_type, "COMPOSITE") != 0;
    const char *const crc[] = {h->crc64nvme, h->crc32c, h->crc32};
    for (int i = CRC64NVME; i <= CRC32 && whole; i++)
        if (crc[i][0] && !strchr(crc[i], '-'))
            return take_crc(out, o, crc[i], (enum crc)i);
    if (whole && h->sha256[0] && !strchr(h->sha256, '-')) {
        out->kind = WANT_DIGEST;
        out->digest = DIGEST_SHA256;
        return digest_from_base64(out->sum, 32, h->sha256)
                   ? 0
                   : err_set(E_REMOTE, "%s: \"%s\" is no SHA-256", o->key, h->sha256);
    }
    if (o->md5)
        take_etag(out, o, h, part);
    return 0;
}

/* ---- the comparison ---- */

/* Where an object came from, if its key does not say it: what is secret in a URL stands
 * behind its question mark. */
static int damaged(const struct object *o, const char *more, const char *what,
                   const char *got, const char *want)
{
    const char *from = o->from && strcmp(o->key, o->from) != 0 ? o->from : "";
    return err_set(E_FORMAT, "%s: damaged%s: %s is %s, not %s%s%.*s", o->key, more,
                   what, got, want, *from ? ", from " : "", url_shown(from), from);
}

int want_crc(const struct want *w, const struct object *o, uint64_t got)
{
    char is[17], due[17];
    int digits = w->crc == CRC64NVME ? 16 : 8;
    if (w->kind != WANT_CRC || got == w->value)
        return 0;
    snprintf(is, sizeof is, "%0*llx", digits, (unsigned long long)got);
    snprintf(due, sizeof due, "%0*llx", digits, (unsigned long long)w->value);
    return damaged(o, "", names[w->crc], is, due);
}

struct want_run {
    struct want want;
    struct digest *whole, *part; // part: of the bytes since the last part's end
    int64_t left;                // bytes of that part to come
};

struct want_run *want_begin(const struct want *w, int64_t size)
{
    char head[32];
    struct want_run *r = mem_zero(1, sizeof *r);
    if (!r)
        return NULL;
    r->want = *w;
    r->left = w->part;
    r->whole = digest_open(w->digest);
    r->part = r->whole && w->part > 0 ? digest_open(w->digest) : NULL;
    if (!r->whole || (w->part > 0 && !r->part)) {
        want_drop(r);
        return NULL;
    }
    int n = snprintf(head, sizeof head, "blob %lld", (long long)size);
    if (w->blob)
        digest_add(r->whole, head, (size_t)n + 1); // git ends it with a NUL
    return r;
}

static void end_part(struct want_run *r)
{
    uint8_t got[DIGEST_MAX];
    digest_take(r->part, got);
    digest_add(r->whole, got, digest_size(r->want.digest));
    r->left = r->want.part;
}

void want_add(struct want_run *r, const void *p, size_t n)
{
    const char *at = p;
    if (!r->part) {
        digest_add(r->whole, p, n);
        return;
    }
    while (n > 0) {
        if (r->left == 0)
            end_part(r);
        size_t now = (int64_t)n < r->left ? n : (size_t)r->left;
        digest_add(r->part, at, now);
        r->left -= (int64_t)now;
        at += now;
        n -= now;
    }
}

int want_end(struct want_run *r, const struct object *o)
{
    static const char *const what[] = {"its SHA-256", "its MD5 (ETag)", "its SHA-1"};
    uint8_t got[DIGEST_MAX], want[DIGEST_MAX];
    char is[2 * DIGEST_MAX + 1], due[2 * DIGEST_MAX + 1];
    if (r->part)
        end_part(r);
    digest_take(r->whole, got);
    enum digest_kind kind = r->want.digest;
    bool guess = r->want.part > 0 && r->want.part < INT64_MAX; // all are as the first
    size_t n = digest_size(kind);
    memcpy(want, r->want.sum, n);
    want_drop(r);
    if (memcmp(got, want, n) == 0)
        return 0;
    digest_to_hex(is, got, n);
    digest_to_hex(due, want, n);
    return damaged(o, guess ? ", or uploaded in parts of different sizes" : "",
                   what[kind], is, due);
}

void want_drop(struct want_run *r)
{
    if (!r)
        return;
    digest_drop(r->part);
    digest_drop(r->whole);
    mem_free(r);
}

int want_file(const struct want *w, const struct object *o, int fd, int64_t size)
{
    struct want_run *r = w->kind == WANT_DIGEST ? want_begin(w, size) : NULL;
    char *buffer = mem_alloc(READ);
    uint64_t crc = 0;
    int rc = buffer && (r || w->kind != WANT_DIGEST) ? 0 : E_MEMORY;
    for (int64_t at = 0; rc == 0 && at < size; at += READ) {
        size_t n = (size_t)(size - at < READ ? size - at : READ);
        rc = file_pread(fd, buffer, n, at, o->key);
        if (rc == 0 && r)
            want_add(r, buffer, n);
        else if (rc == 0)
            crc = crc_add(w->crc, crc, buffer, n);
    }
    mem_free(buffer);
    if (rc < 0)
        want_drop(r);
    TRY(rc);
    return r ? want_end(r, o) : want_crc(w, o, crc);
}
