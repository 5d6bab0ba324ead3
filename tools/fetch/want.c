/* SPDX-License-Identifier: MIT */
/* want.c - the choice is the same for all servers: what is not offered is not wanted.
 */
#include "want.h"

#include <string.h>

#include "err.h"
#include "file.h"
#include "mem.h"

enum { READ = 1 << 20 };

static const char *const names[] = {"CRC-64/NVME", "CRC-32C", "CRC-32"};

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

int want_of(struct want *out, const struct object *o, const struct head *h)
{
    *out = (struct want){.kind = WANT_NOTHING};
    if (o->sha256) { // its form was checked when it was read
        out->kind = WANT_SHA256;
        digest_from_hex(out->sha256, 32, o->sha256);
        return 0;
    }
    if (strcmp(h->checksum_type, "COMPOSITE") == 0)
        return 0;
    const char *const crc[] = {h->crc64nvme, h->crc32c, h->crc32};
    for (int i = CRC64NVME; i <= CRC32; i++)
        if (crc[i][0] && !strchr(crc[i], '-'))
            return take_crc(out, o, crc[i], (enum crc)i);
    if (!h->sha256[0] || strchr(h->sha256, '-'))
        return 0;
    out->kind = WANT_SHA256;
    return digest_from_base64(out->sha256, 32, h->sha256)
               ? 0
               : err_set(E_REMOTE, "%s: \"%s\" is no SHA-256", o->key, h->sha256);
}

int want_crc(const struct want *w, const struct object *o, uint64_t got)
{
    if (w->kind != WANT_CRC || got == w->value)
        return 0;
    int digits = w->crc == CRC64NVME ? 16 : 8;
    return err_set(E_FORMAT, "%s: damaged: %s is %0*llx, not %0*llx", o->key,
                   names[w->crc], digits, (unsigned long long)got, digits,
                   (unsigned long long)w->value);
}

int want_sha256(const struct want *w, const struct object *o,
                const uint8_t got[DIGEST_MAX])
{
    if (w->kind != WANT_SHA256 || memcmp(got, w->sha256, 32) == 0)
        return 0;
    return err_set(E_FORMAT, "%s: damaged: its SHA-256 is another one", o->key);
}

int want_file(const struct want *w, const struct object *o, int fd, int64_t size)
{
    uint8_t got[DIGEST_MAX];
    uint64_t sum = 0;
    int rc = 0;
    struct digest *d = digest_open(DIGEST_SHA256);
    void *buffer = d ? mem_alloc(READ) : NULL;
    for (int64_t at = 0; buffer && rc == 0 && at < size; at += READ) {
        size_t n = (size_t)(size - at < READ ? size - at : READ);
        rc = file_pread(fd, buffer, n, at, o->key);
        if (rc == 0 && w->kind == WANT_SHA256)
            digest_add(d, buffer, n);
        else if (rc == 0)
            sum = crc_add(w->crc, sum, buffer, n);
    }
    if (d)
        digest_end(d, got);
    if (!buffer)
        return E_MEMORY;
    mem_free(buffer);
    TRY(rc);
    return w->kind == WANT_SHA256 ? want_sha256(w, o, got) : want_crc(w, o, sum);
}
