/* SPDX-License-Identifier: MIT */
/* etag.c - some servers say an ETag without its quotes. */
#include "etag.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"

enum { HEX = 2 * ETAG_MD5, PARTS_DIGITS = 5 };

int64_t etag_md5(uint8_t sum[ETAG_MD5], const char *etag, bool *parts)
{
    char hex[HEX + 1] = "";
    *parts = false;
    bool quoted = etag && *etag == '"';
    const char *rest = etag ? etag + quoted : "", *end = quoted ? "\"" : "";
    if (strnlen(rest, HEX) < HEX)
        return 0;
    memcpy(hex, rest, HEX);
    if (!digest_from_hex(sum, ETAG_MD5, hex))
        return 0;
    rest += HEX;
    if (strcmp(rest, end) == 0)
        return 1;
    *parts = *rest == '-';
    size_t digits = *parts ? strspn(rest + 1, "0123456789") : 0;
    bool whole =
        digits > 0 && digits <= PARTS_DIGITS && strcmp(rest + 1 + digits, end) == 0;
    return whole ? strtol(rest + 1, NULL, 10) : 0;
}
