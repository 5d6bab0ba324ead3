/* SPDX-License-Identifier: MIT */
/* err.c - one message slot per thread, fixed in size so that running out of memory can
 * be reported too.  A message that does not fit is cut. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char slot[ERR_TEXT_MAX];

/* File names and data end up in messages; a terminal must not obey them. */
static void clean(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static void store(const char *fmt, va_list args)
{
    char text[ERR_TEXT_MAX]; // the arguments may point into the slot
    vsnprintf(text, sizeof text, fmt, args);
    clean(text);
    memcpy(slot, text, sizeof slot);
}

static void append(const char *text)
{
    size_t len = strlen(slot);
    snprintf(slot + len, sizeof slot - len, "%s", text);
}

static int code_of(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return E_MISSING;
    case EACCES:
    case EPERM:
    case EROFS:
        return E_ACCESS;
    case ENOMEM:
        return E_MEMORY;
    default:
        return E_IO;
    }
}

int err_set(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    store(fmt, args);
    va_end(args);
    return code;
}

int err_errno(int errnum, const char *fmt, ...)
{
    char why[256];
    const char *text = strerror_r(errnum, why, sizeof why); // the GNU form
    va_list args;
    va_start(args, fmt);
    store(fmt, args);
    va_end(args);
    append(": ");
    append(text);
    return code_of(errnum);
}

int err_wrap(int code, const char *fmt, ...)
{
    char inner[ERR_TEXT_MAX];
    memcpy(inner, slot, sizeof inner);
    va_list args;
    va_start(args, fmt);
    store(fmt, args);
    va_end(args);
    append(": ");
    append(inner);
    return code;
}

const char *err_text(void)
{
    return slot;
}

int err_copy(int code, const char *text)
{
    return err_set(code, "%s", text);
}

_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    clean(text);
    fflush(stdout);
    fprintf(stderr, "bug: %s:%d: %s\n", file, line, text);
    exit(-E_DEVICE);
}
