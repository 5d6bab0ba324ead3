/* SPDX-License-Identifier: MIT */
/* object.h - what there is to fetch: a list of objects, each with its name below the
 * destination.
 *
 * A key is a relative path with '/' between its parts.  What cannot be fetched stays in
 * the list with the reason, so that the others proceed and every refusal is reported by
 * name. */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "texts.h"

struct source;

/* The texts of an object are owned by its list. */
struct object {
    const char *key;
    const char *from; /* where its scheme reads it */
    struct source *source;
    int64_t size, mtime_ns; /* of the source, when it was listed; size -1: not known */
    const char *etag;       /* with its quotes; NULL: the source has none */
    const char *sha256;     /* what it shall be, 64 hex digits; NULL: not known */
    bool pinned;            /* the caller says so, not the source */
    const char *blob;       /* the same as a SHA-1 of git's, 40 hex digits; NULL */
    bool md5;               /* its ETag shall be an MD5, and is to be checked */
    bool unranged;          /* cannot be read in pieces */
    bool undated; /* the source has no time: mtime_ns is that of the listing */
    int code;     /* not 0: refused, an E_ code, and why */
    const char *why;
};

struct objects {
    struct object *at;
    int64_t n, cap;
    struct texts texts;
};

/* object_add appends an object with copies of key and from, and returns it, NULL:
 * E_MEMORY.  object_refuse keeps `code` and err_text() as the reason; object_text
 * copies a text for etag, sha256 or blob, NULL: E_MEMORY. */
struct object *object_add(struct objects *list, const char *key, const char *from);
int object_refuse(struct objects *list, struct object *o, int code);
const char *object_text(struct objects *list, const char *text);

/* object_check_key: E_FORMAT unless a key stays below the destination and can be
 * written into a manifest: not empty, no part that is empty, "." or "..", no control
 * characters, UTF-8, none of fetch's own folder, parts up to 255 bytes. */
int object_check_key(const char *key);

/* object_choose keeps what matches `include` (NULL: all) and not `exclude` (NULL:
 * none): comma-separated globs of fnmatch(3) over the whole key, in which '*' also
 * matches '/'.  E_MISSING when that is nothing. */
int object_choose(struct objects *list, const char *include, const char *exclude);

/* object_arrange sorts by key, checks the keys, and refuses (E_CONFIG) what cannot lie
 * beside others: a key met twice, and "a/b" where "a" is a file. */
int object_arrange(struct objects *list);

/* object_share keeps part i of n, by the key's hash. */
void object_share(struct objects *list, int part, int parts);

void object_drop(struct objects *list);

#endif
