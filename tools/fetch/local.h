/* SPDX-License-Identifier: MIT */
/* local.h - folders and files of this machine as a source.
 *
 * A folder gives every file below it, its name relative to the folder; a file gives
 * itself.  Names that begin with a dot or end in ".tmp" are not input.  A link to a
 * file is followed wherever it points (caches of the Hugging Face hub are made of
 * such); a link to a folder is refused by name, because it may lead in a circle; so are
 * devices, sockets and pipes. */
#ifndef LOCAL_H
#define LOCAL_H

#include <stddef.h>

#include "object.h"

/* The functions of struct scheme (scheme.h).  `url` is a path or file:///path with
 * percent escapes. */
int local_apart(const char *url, const char *dest);
int local_list(struct source *s, struct objects *out);
int local_get(const struct object *o, int fd, uint64_t *sum, void *buffer, size_t size);

#endif
