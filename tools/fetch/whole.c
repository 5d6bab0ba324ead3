/* SPDX-License-Identifier: MIT */
/* whole.c - two comparisons: the source with the manifest, the manifest with the file.
 */
#include "whole.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc.h"
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
        *out = !verify || reads_well(path, (*found)->sum, buffer) ? WHOLE_YES
                                                                  : WHOLE_DAMAGED;
    mem_free(path);
    return 0;
}
