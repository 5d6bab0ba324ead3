/* SPDX-License-Identifier: MIT */
/* scheme.h - where objects come from: a table of URL schemes.
 *
 * A backend is three functions.  Every other part of fetch sees keys, sizes and bytes,
 * so a new scheme is a row in scheme.c and a file of its own. */
#ifndef SCHEME_H
#define SCHEME_H

#include <stddef.h>

#include "object.h"

struct scheme {
    const char *name; /* "file" for file://; a plain path is one too */

    /* apart refuses (E_CONFIG) a destination that is part of the source. */
    int (*apart)(const char *url, const char *dest);

    /* list appends the objects behind `url`.  Objects that cannot be fetched are
     * appended and refused; a failure means that the source as a whole is unusable. */
    int (*list)(struct objects *out, const char *url);

    /* get writes an object's bytes to fd, which is empty, and gives their xxh3.  It
     * fails when the source is no longer what was listed (E_AGAIN).  `buffer` of `size`
     * bytes is scratch.  Called by several threads for different objects. */
    int (*get)(const struct object *o, int fd, uint64_t *xxh3, void *buffer,
               size_t size);
};

/* scheme_find gives the backend of a source; E_USAGE names one that this build lacks.
 */
int scheme_find(const struct scheme **out, const char *source);

#endif
