/* SPDX-License-Identifier: MIT */
/* fuzz.h - what the fuzz targets share: a broken promise aborts, and bytes as a file.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool ok)
{
    if (!ok)
        abort();
}

/* A file without a folder that holds these bytes; the same one each time. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[40];
    static int fd = -1;
    if (fd < 0) {
        must((fd = memfd_create("fuzz", 0)) >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    must(ftruncate(fd, 0) == 0);
    must(pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

#endif
