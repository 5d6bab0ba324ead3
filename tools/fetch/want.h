/* SPDX-License-Identifier: MIT */
/* want.h - what the bytes of an object should add up to, by the strongest that is
 * known.
 *
 * CRCs are computed for each piece and joined; a digest goes over the whole, in order.
 */
#ifndef WANT_H
#define WANT_H

#include <stdbool.h>
#include <stdint.h>

#include "crc.h"
#include "digest.h"
#include "head.h"
#include "object.h"

enum want_kind { WANT_NOTHING, WANT_CRC, WANT_DIGEST };

struct want {
    enum want_kind kind;
    enum crc crc; /* of WANT_CRC */
    uint64_t value;
    enum digest_kind digest; /* of WANT_DIGEST */
    bool blob;               /* over the head of git's blobs and the bytes */
    int64_t part;            /* not 0: over the digests of parts of so many bytes */
    uint8_t sum[DIGEST_MAX];
    const char *missing; /* why it cannot be checked, where that was to be; or NULL */
};

/* want_of chooses: the SHA-256 or the git blob that the user or a listing names, else
 * what the reply to a whole object or its head offers: CRC-64/NVME, CRC-32C, CRC-32,
 * SHA-256; else, for an object that is `md5`, its ETag.  `part` is the size of the
 * first part of its upload, 0: not known.  Checksums of checksums (COMPOSITE) are
 * passed over; E_REMOTE for what is no checksum. */
int want_of(struct want *out, const struct object *o, const struct head *h,
            int64_t part);

/* want_parts is how many parts an object was uploaded in, by its ETag: 0 when that is
 * no MD5, 1 also when it was not uploaded in parts. */
int64_t want_parts(const struct object *o);

/* want_crc compares, E_FORMAT names the object, both sums and where it came from;
 * want_file reads a file for what CRCs of pieces cannot tell. */
int want_crc(const struct want *w, const struct object *o, uint64_t got);
int want_file(const struct want *w, const struct object *o, int fd, int64_t size);

/* A digest that runs over the bytes of an object of `size` bytes as they come:
 * want_begin (NULL: E_MEMORY) of a WANT_DIGEST, want_add any number of times, want_end,
 * which compares.  want_end and want_drop free; NULL is fine for want_drop. */
struct want_run;
struct want_run *want_begin(const struct want *w, int64_t size);
void want_add(struct want_run *r, const void *p, size_t n);
int want_end(struct want_run *r, const struct object *o);
void want_drop(struct want_run *r);

#endif
