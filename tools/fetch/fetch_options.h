/* SPDX-License-Identifier: MIT */
/* fetch_options.h - the options of draft-fetch: their table, and what they say
 * together. */
#ifndef FETCH_OPTIONS_H
#define FETCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "opt.h"
#include "scheme.h"

struct fetch_options {
    const char *output, *urls, *include, *exclude, *part;
    bool verify, dry_run, json, put;
    const char *endpoint, *addressing, *region, *profile, *credentials, *ca;
    bool no_sign, requester_pays, no_checksum, check_etag;
    int64_t connections, piece, memory, rate, retries;
    double stall;
};
extern struct fetch_options cfg;

extern const struct opt fetch_options[];

/* fetch_options_check refuses (E_USAGE) numbers out of their ranges, empty texts, and
 * options that do not go with each other or with the n operands. */
int fetch_options_check(char **operand, int n);

/* fetch_options_rules gives what sources must know.  Keys of S3 are looked for when an
 * operand is an s3:// URL; creds_close(out->creds) ends them.  `url` ends with NULL. */
int fetch_options_rules(struct scheme_rules *out, char **url, struct log *log);

#endif
