/* SPDX-License-Identifier: MIT */
/* scheme.c - the table; what has no list function yet is known by name only. */
#include "scheme.h"

#include <string.h>

#include "err.h"
#include "local.h"

static const struct scheme schemes[] = {
    {"file", local_apart, local_list, local_get},
    {"s3", NULL, NULL, NULL},
    {"https", NULL, NULL, NULL},
    {"hf", NULL, NULL, NULL},
};

/* The length of a leading "name://", 0 when there is none. */
static size_t scheme_length(const char *source)
{
    size_t n = strspn(source, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    return n > 0 && strncmp(source + n, "://", 3) == 0 ? n : 0;
}

int scheme_find(const struct scheme **out, const char *source)
{
    size_t n = scheme_length(source);
    if (n == 0) {
        *out = &schemes[0];
        return 0;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const struct scheme *s = &schemes[i];
        if (s->list && strlen(s->name) == n && memcmp(s->name, source, n) == 0) {
            *out = s;
            return 0;
        }
    }
    return err_set(E_USAGE, "%s: this build does not know the scheme %.*s://", source,
                   (int)n, source);
}
