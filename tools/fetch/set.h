/* SPDX-License-Identifier: MIT */
/* set.h - draft-manifest.json: what belongs together under a prefix of a bucket.
 *
 *     {"format": 1, "complete": true, "objects": [
 *     {"key": "a/b", "size": 3, "crc64nvme": "BASE64", "etag": "\"...\""}, ...]}
 *
 * An upload writes it twice: before it changes anything, with "complete": false, and
 * when everything is there.  So whoever finds it complete, and its objects as it says,
 * has the whole of one upload.  Keys are relative to the manifest's own place. */
#ifndef SET_H
#define SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "object.h"

#define SET_NAME "draft-manifest.json"

enum { SET_SUM = 16 }; /* bytes of a CRC-64 in base64, NUL included */

struct set_entry {
    char *key, *etag; /* owned; etag with its quotes */
    int64_t size;
    char sum[SET_SUM]; /* CRC-64/NVME as S3 writes it */
};

struct set {
    bool complete;
    struct set_entry *at; /* sorted by key after set_parse and set_sort */
    int64_t n, cap;
};

/* set_parse reads a manifest into an empty set; E_FORMAT.  set_write appends one. */
int set_parse(struct set *s, const char *text, size_t n);
void set_write(struct buf *out, const struct set *s);

/* set_add appends an entry with copies; E_MEMORY.  set_sort sorts by key; set_find
 * wants them sorted, NULL: there is none. */
int set_add(struct set *s, const char *key, int64_t size, const char *sum,
            const char *etag);
void set_sort(struct set *s);
const struct set_entry *set_find(const struct set *s, const char *key);
void set_drop(struct set *s);

/* Objects of a listing by where they are (object.from), for looking up; the list is
 * borrowed, `at` is freed by the user with mem_free. */
struct set_index {
    const struct object **at;
    int64_t n;
};
int set_index(struct set_index *x, const struct objects *list, int64_t first);
const struct object *set_lookup(const struct set_index *x, const char *from);

/* set_check holds objects [first, n) of a list, which were found under `prefix`,
 * against the manifest that lay there: E_AGAIN when it is not complete, or when an
 * object is missing or another one than it says. */
int set_check(const struct set *s, const struct objects *list, int64_t first,
              const char *prefix);

/* set_folder: if a key is that of a manifest, the length of the folder before it, with
 * its slash; else the key's own length. */
size_t set_folder(const char *key);

/* set_sum writes a CRC-64/NVME as S3 does, in base64; returns out. */
char *set_sum(char out[SET_SUM], uint64_t crc);

#endif
