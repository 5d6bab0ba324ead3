/* SPDX-License-Identifier: MIT */
/* web.h - https:// URLs, one or a list of them: one file each, its name the last part
 * of the path.
 *
 * Every URL is asked for its first byte to learn its size, its ETag and whether it can
 * be read in pieces. */
#ifndef WEB_H
#define WEB_H

#include "scheme.h"

/* The functions of struct scheme: of a URL, and of a file with URLs, one a line, each
 * perhaps with its SHA-256 before or behind it ("-" is stdin).  Empty lines and lines
 * that begin with '#' are passed over. */
int web_list(struct source *s, struct objects *out);
int web_list_file(struct source *s, struct objects *out);
int web_ask(struct source *s, const struct piece *p, struct http_call *c);
int web_judge(struct source *s, const struct piece *p, const struct http_call *c,
              enum verdict *verdict);

#endif
