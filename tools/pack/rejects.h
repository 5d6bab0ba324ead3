/* SPDX-License-Identifier: MIT */
/* rejects.h - the records that were refused, one JSON object a line, in input order:
 * file, record, kind, reason.  The file appears when it is complete. */
#ifndef REJECTS_H
#define REJECTS_H

#include "buf.h"
#include "document.h"
#include "file.h"

struct rejects {
    struct file_new file;
    struct buf text; /* not yet written */
    bool open;
};

/* rejects_open begins the file at `path`; NULL: nothing is kept. */
int rejects_open(struct rejects *r, const char *path);
int rejects_add(struct rejects *r, const char *file, int64_t record, enum reject kind,
                const char *why);
int rejects_finish(struct rejects *r);
void rejects_abandon(struct rejects *r); /* a zero struct is fine */

#endif
