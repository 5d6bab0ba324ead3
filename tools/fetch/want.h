/* SPDX-License-Identifier: MIT */
/* want.h - what the bytes of an object should add up to, by the strongest that is
 * known.
 *
 * CRCs are computed for each piece and joined; a SHA-256 goes over the whole, in order.
 */
#ifndef WANT_H
#define WANT_H

#include <stdbool.h>
#include <stdint.h>

#include "crc.h"
#include "digest.h"
#include "head.h"
#include "object.h"

enum want_kind { WANT_NOTHING, WANT_CRC, WANT_SHA256 };

struct want {
    enum want_kind kind;
    enum crc crc; /* of WANT_CRC */
    uint64_t value;
    uint8_t sha256[DIGEST_MAX];
};

/* want_of chooses: the SHA-256 that the user or a listing names, else what the reply to
 * a whole object or its head offers: CRC-64/NVME, CRC-32C, CRC-32, SHA-256.  Checksums
 * of checksums (COMPOSITE) are passed over; E_REMOTE for what is no checksum. */
int want_of(struct want *out, const struct object *o, const struct head *h);

/* want_crc and want_sha256 compare; E_FORMAT names object and checksum. */
int want_crc(const struct want *w, const struct object *o, uint64_t got);
int want_sha256(const struct want *w, const struct object *o,
                const uint8_t got[DIGEST_MAX]);

/* want_file reads a file from its beginning for what the CRCs of pieces cannot tell: a
 * SHA-256, or a CRC when those of some pieces are missing. */
int want_file(const struct want *w, const struct object *o, int fd, int64_t size);

#endif
