/* SPDX-License-Identifier: MIT */
/* url.h - percent escapes, and the parts of an http URL. */
#ifndef URL_H
#define URL_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

/* url_escape appends text with all bytes but A-Z a-z 0-9 - . _ ~ as %XX, the form that
 * S3 signs; `keep` names further bytes that stay ("/" for paths). */
void url_escape(struct buf *out, const char *text, const char *keep);

/* url_unescape appends text with %XX decoded, and '+' as a space when `plus` says so;
 * E_FORMAT on a broken escape and on an escaped NUL. */
int url_unescape(struct buf *out, const char *text, bool plus);

/* The parts of scheme://host[:port][/path][?query][#fragment], as runs of the text. */
struct url {
    const char *scheme, *host, *path, *query;
    size_t scheme_n, host_n, path_n, query_n; /* host with its port; path from '/' */
};

/* url_split is E_USAGE when the text is not of this form, or has a user name (which
 * would end up in logs), a port that is none, a space or a control character. */
int url_split(struct url *out, const char *text);

/* url_is_web: http or https. */
bool url_is_web(const struct url *u);

/* url_shown is how many bytes of a URL may stand in a message: what grants access
 * stands in its query. */
int url_shown(const char *text);

/* url_join makes the URL that a Location header means when it answered `base`: as it
 * is, or with scheme and host of the base.  Relative paths are E_FORMAT; so is a scheme
 * other than http and https, and http after https. */
int url_join(struct buf *out, const char *base, const char *location);

/* url_same_host: may what is secret for one URL be sent to the other?  Scheme, host and
 * port are equal. */
bool url_same_host(const char *a, const char *b);

#endif
