/* SPDX-License-Identifier: MIT */
/* whole.c - two comparisons: the source with the manifest, the manifest with the file.
 */
#include "whole.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc.h"
#include "digest.h"
#include "err.h"
#include "file.h"
#include "mem.h"

static bool is_about(const struct entry *e, const struct object *o)
{
    if (o->size >= 0 && e->size != o->size)
        return false;
    if (o->etag)
        return e->etag && strcmp(e->etag, o->etag) == 0;
    return !o->undated && e->mtime_ns == o->mtime_ns;
}

/* A file system may keep times to a coarser grain than the source's. */
static bool same_time(int64_t local, int64_t source)
{
    for (int64_t grain = 1; grain <= 1000000000; grain *= 10)
        if (source - source % grain == local)
            return true;
    return false;
}

static bool is_file(const struct entry *e, const struct stat *st)
{
    int64_t mtime = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    return S_ISREG(st->st_mode) && st->st_size == e->size &&
           same_time(mtime, e->mtime_ns);
}

int whole_sum(uint64_t *out, int fd, void *buffer, const char *name)
{
    int64_t got;
    *out = 0;
    while ((got = file_get(fd, buffer, WHOLE_BUFFER, name)) > 0)
        *out = crc_add(CRC64NVME, *out, buffer, (size_t)got);
    return (int)got;
}

static bool reads_well(const char *path, uint64_t want, void *buffer)
{
    uint64_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool well = fd >= 0 && whole_sum(&got, fd, buffer, path) == 0 && got == want;
    if (fd >= 0)
        close(fd);
    return well;
}

static int add_file(struct digest *d, const char *path, void *buffer)
{
    int64_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "cannot open %s", path);
    while ((got = file_get(fd, buffer, WHOLE_BUFFER, path)) > 0)
        digest_add(d, buffer, (size_t)got);
    close(fd);
    return (int)got;
}

/* The manifest keeps no SHA-256, so the file itself is asked. */
static bool has_sha256(const char *path, const char *sha256, void *buffer)
{
    uint8_t got[DIGEST_MAX] = {0}, want[DIGEST_MAX];
    struct digest *d = digest_open(DIGEST_SHA256);
    bool well =
        d && digest_from_hex(want, 32, sha256) && add_file(d, path, buffer) == 0;
    if (well)
        digest_take(d, got);
    digest_drop(d);
    return well && memcmp(got, want, 32) == 0;
}

/* Does what is there read as it shall? */
static bool is_well(const struct entry *e, const struct object *o, const char *path,
                    bool verify, void *buffer)
{
    if (verify && !reads_well(path, e->sum, buffer))
        return false;
    return !o->sha256 || !(verify || o->pinned) || has_sha256(path, o->sha256, buffer);
}

int whole_way(const char *dest, const char *key)
{
    struct stat st;
    char *path = file_path(dest, key);
    int rc = path ? 0 : E_MEMORY;
    char *slash = path ? path + strlen(path) - strlen(key) : NULL;
    while (rc == 0 && (slash = strchr(slash, '/'))) {
        *slash = 0;
        bool there = lstat(path, &st) == 0;
        if (there && S_ISLNK(st.st_mode))
            rc = err_set(E_CONFIG,
                         "%s: refused: %s is a link, which may lead out of the "
                         "destination",
                         key, path);
        *slash++ = '/';
        if (!there)
            break;
    }
    mem_free(path);
    return rc;
}

int whole_check(enum whole *out, const struct manifest *m, const char *dest,
                const struct object *o, bool verify, void *buffer,
                const struct entry **found, int64_t *entries)
{
    struct stat st;
    const struct entry *e;
    *out = WHOLE_NO;
    *found = NULL;
    if ((*entries = manifest_find(m, o->key, &e)) == 0)
        return 0;
    char *path = file_path(dest, o->key);
    if (!path)
        return E_MEMORY;
    bool there = lstat(path, &st) == 0;
    for (int64_t i = 0; there && i < *entries && !*found; i++)
        if (is_about(&e[i], o) && is_file(&e[i], &st))
            *found = &e[i];
    if (*found)
        *out = is_well(*found, o, path, verify, buffer) ? WHOLE_YES : WHOLE_DAMAGED;
    mem_free(path);
    return 0;
}
