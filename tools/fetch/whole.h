/* SPDX-License-Identifier: MIT */
/* whole.h - is an object already here, as its source has it? */
#ifndef WHOLE_H
#define WHOLE_H

#include <stdbool.h>

#include "manifest.h"
#include "object.h"

enum { WHOLE_BUFFER = 1 << 20 };

enum whole {
    WHOLE_NO,
    WHOLE_YES,
    WHOLE_DAMAGED /* was, but reads back differently */
};

/* whole_check holds an object against what the manifest claims and against the file.
 * The claim is about this object when size and ETag are equal, or size and time where
 * the source has no ETag; the file is what was claimed when size and time are, and with
 * `verify` when its content has the claimed checksum; a SHA-256 that the caller pinned
 * it to is held against the content always.  *found is the entry of a file
 * that is whole; *entries how many know it.  `buffer` of WHOLE_BUFFER bytes is scratch.
 * E_MEMORY. */
int whole_check(enum whole *out, const struct manifest *m, const char *dest,
                const struct object *o, bool verify, void *buffer,
                const struct entry **found, int64_t *entries);

/* whole_way refuses (E_CONFIG) a key whose way below the destination leads over a
 * symbolic link: that may end outside of it. */
int whole_way(const char *dest, const char *key);

/* whole_sum reads the rest of a file and gives its CRC-64/NVME. */
int whole_sum(uint64_t *out, int fd, void *buffer, const char *name);

#endif
