/* SPDX-License-Identifier: MIT */
/* web.h - https:// URLs: one file each, its name the last part of the path.
 *
 * A source is asked for its first byte to learn its size, its ETag and whether it can
 * be read in pieces. */
#ifndef WEB_H
#define WEB_H

#include "scheme.h"

/* The functions of struct scheme. */
int web_list(struct source *s, struct objects *out);
int web_ask(struct source *s, const struct piece *p, struct http_call *c);
int web_judge(struct source *s, const struct piece *p, const struct http_call *c,
              enum verdict *verdict);

#endif
