/* SPDX-License-Identifier: MIT */
/* hf.h - hf://owner/name[@revision][/glob] and hf://datasets/owner/name...:
 * repositories of the Hugging Face hub.
 *
 * The revision is resolved to a commit once, when the source is listed, and all files
 * are those of this commit.  Names are those in the repository; the glob is of
 * fnmatch(3) over the whole name, and a text without glob characters names a file or a
 * folder.  Large files lie in a store on another host, to which the hub redirects; the
 * token goes to the hub alone. */
#ifndef HF_H
#define HF_H

#include "scheme.h"

/* The functions of struct scheme. */
int hf_open(struct source *s);
void hf_close(struct source *s);
int hf_list(struct source *s, struct objects *out);
int hf_ask(struct source *s, const struct piece *p, struct http_call *c);
int hf_judge(struct source *s, const struct piece *p, const struct http_call *c,
             enum verdict *verdict);

/* hf_next finds the URL of rel="next" in a Link header: 1, or 0 when there is none.
 * E_FORMAT for what is no such header. */
int hf_next(struct buf *url, const char *link);

#endif
