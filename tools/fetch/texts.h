/* SPDX-License-Identifier: MIT */
/* texts.h - many short strings that live and die together.
 *
 * A hundred thousand keys cost their bytes and little more. */
#ifndef TEXTS_H
#define TEXTS_H

#include <stddef.h>

struct texts {
    char *block; /* the newest; each begins with the one before it */
    size_t used, size;
};

/* texts_add returns a copy that lives until texts_drop; NULL: E_MEMORY. */
char *texts_add(struct texts *t, const char *s);
void texts_drop(struct texts *t);

#endif
