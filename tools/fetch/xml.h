/* SPDX-License-Identifier: MIT */
/* xml.h - small XML documents as a run of (path, text); the only file that knows expat.
 *
 * A path is made of the names of the elements from the root,
 * "ListBucketResult/Contents/ Key", without name spaces.  No entity but XML's own five
 * is ever expanded, a document type is refused, depth and texts are bounded. */
#ifndef XML_H
#define XML_H

#include <stddef.h>

enum { XML_TEXT_MAX = 8192 };

/* xml_read calls `end` when an element ends, with its path and the text in it (of an
 * element that has others, only what stands behind the last of them), both borrowed
 * during the call; a failure of `end` ends the reading and is passed on.  E_FORMAT with
 * the line for what is no XML. */
typedef int xml_end(void *user, const char *path, const char *text);
int xml_read(const char *text, size_t n, xml_end *end, void *user);

#endif
