/* SPDX-License-Identifier: MIT */
/* put.h - the way back: files and folders under a prefix of a bucket.
 *
 *     list -> what is there already? -> manifest, not complete -> objects -> manifest,
 *     complete (set.h)
 *
 * So a reader sees the set of the last upload that ended, or is told to wait.  One
 * upload at a time goes to a prefix; what an earlier one brought there stays in the
 * set, unless it is replaced. */
#ifndef PUT_H
#define PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "scheme.h"

enum { PUT_PART_MIN = 5 << 20 }; /* bytes; S3 takes no smaller parts */

struct put_rules {
    const struct scheme_rules *scheme;
    const char *include, *exclude; /* as for fetching */
    int64_t part, memory;          /* bytes; part: PUT_PART_MIN or more */
    int connections;
    double rate; /* bytes a second, 0: any */
    bool dry_run, json;
    struct log *log;
};

/* put_run uploads `n` files and folders to an s3:// URL.  Objects that fail are
 * reported by name while the others go on; the code is that of the first failure that
 * trying again does not mend, else of the first, and the manifest then stays
 * incomplete. */
int put_run(char **path, int n, const char *url, const struct put_rules *rules);

#endif
