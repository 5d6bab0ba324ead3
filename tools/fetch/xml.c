/* SPDX-License-Identifier: MIT */
/* xml.c - expat's events, with the path of the element that they are in. */
#include "xml.h"

#include <expat.h>
#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "err.h"

enum { DEPTH = 32, PATH_MAX_BYTES = 1024 };

struct reader {
    XML_Parser parser;
    char path[PATH_MAX_BYTES];
    size_t at[DEPTH]; // length of the path above each element that is open
    int depth, rc;
    struct buf text;
    xml_end *end;
    void *user;
};

static void stop(struct reader *r, int rc)
{
    if (r->rc == 0)
        r->rc = rc;
    XML_StopParser(r->parser, XML_FALSE);
}

static void on_begin(void *user, const char *name, const char **attributes)
{
    struct reader *r = user;
    const char *bar = strrchr(name, '|'); // a name space stands before it
    (void)attributes;
    name = bar ? bar + 1 : name;
    size_t length = r->depth > 0 ? strlen(r->path) : 0, n = strlen(name);
    if (r->depth == DEPTH || length + n + 2 > sizeof r->path) {
        stop(r, err_set(E_FORMAT, "XML that is too deep"));
        return;
    }
    r->at[r->depth++] = length;
    if (length > 0)
        r->path[length++] = '/';
    memcpy(r->path + length, name, n + 1);
    buf_clear(&r->text);
}

static void on_text(void *user, const char *text, int n)
{
    struct reader *r = user;
    if (r->text.len + (size_t)n > XML_TEXT_MAX)
        stop(r, err_set(E_FORMAT, "XML with a text of over %d bytes", XML_TEXT_MAX));
    else
        buf_add(&r->text, text, (size_t)n);
}

static void on_end(void *user, const char *name)
{
    struct reader *r = user;
    (void)name;
    if (r->rc < 0) // expat still ends the empty element in which it was stopped
        return;
    int rc = buf_check(&r->text);
    if (rc == 0)
        rc = r->end(r->user, r->path, buf_text(&r->text));
    if (rc < 0)
        stop(r, rc);
    r->path[r->at[--r->depth]] = 0;
    buf_clear(&r->text);
}

/* It could define entities, and nobody here needs one. */
static void on_doctype(void *user, const char *name, const char *system,
                       const char *public, int internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)internal;
    stop(user, err_set(E_FORMAT, "XML with a document type"));
}

int xml_read(const char *text, size_t n, xml_end *end, void *user)
{
    struct reader r = {.end = end, .user = user};
    r.parser = XML_ParserCreateNS(NULL, '|');
    if (!r.parser)
        return err_set(E_MEMORY, "out of memory for XML");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_begin, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (n > INT32_MAX)
        r.rc = err_set(E_FORMAT, "XML of over 2 GiB");
    else if (XML_Parse(r.parser, text, (int)n, 1) != XML_STATUS_OK && r.rc == 0)
        r.rc = err_set(E_FORMAT, "line %lu: %s",
                       (unsigned long)XML_GetCurrentLineNumber(r.parser),
                       XML_ErrorString(XML_GetErrorCode(r.parser)));
    XML_ParserFree(r.parser);
    if (r.text.p) // it may have been a secret
        explicit_bzero(r.text.p, r.text.cap);
    buf_drop(&r.text);
    return r.rc;
}
