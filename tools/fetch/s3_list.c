/* SPDX-License-Identifier: MIT */
/* s3_list.c - a path of element names decides what text means: "ListBucketResult",
 * "ListBucketResult/Contents/Key" and so on.  Names of other elements are passed over,
 * so that a server may say more. */
#include "s3_list.h"

#include <expat.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "url.h"

enum { DEPTH = 32, TEXT_MAX = 8192 };

/* What the two kinds of document share: where the parser is, and the text there. */
struct reader {
    XML_Parser parser;
    char path[TEXT_MAX]; // of element names, '/' between them
    size_t at[DEPTH];    // lengths of the path above
    int depth, rc;
    struct buf text;
    void (*end)(struct reader *r); // an element ends: path and text are its own
    void *user;
};

static void stop(struct reader *r, int rc)
{
    if (r->rc == 0)
        r->rc = rc;
    XML_StopParser(r->parser, XML_FALSE);
}

/* A name space stands before its name, with a '|' between (XML_ParserCreateNS). */
static const char *local_name(const char *name)
{
    const char *bar = strrchr(name, '|');
    return bar ? bar + 1 : name;
}

static void on_begin(void *user, const char *name, const char **attributes)
{
    struct reader *r = user;
    (void)attributes;
    name = local_name(name);
    size_t len = r->depth ? strlen(r->path) : 0, n = strlen(name);
    if (r->depth == DEPTH || len + n + 2 > sizeof r->path) {
        stop(r, err_set(E_FORMAT, "XML that is too deep"));
        return;
    }
    r->at[r->depth++] = len;
    if (len > 0)
        r->path[len++] = '/';
    memcpy(r->path + len, name, n + 1);
    buf_clear(&r->text);
}

static void on_text(void *user, const char *text, int n)
{
    struct reader *r = user;
    if (r->text.len + (size_t)n > TEXT_MAX)
        stop(r, err_set(E_FORMAT, "XML with a text of over %d bytes", TEXT_MAX));
    else
        buf_add(&r->text, text, (size_t)n);
}

static void on_end(void *user, const char *name)
{
    struct reader *r = user;
    (void)name;
    if (r->text.failed)
        stop(r, err_set(E_MEMORY, "out of memory for a listing"));
    if (r->rc == 0)
        r->end(r);
    r->path[r->at[--r->depth]] = 0;
    buf_clear(&r->text);
}

/* A document type could define entities; nobody needs one here. */
static void on_doctype(void *user, const char *name, const char *sysid,
                       const char *pubid, int internal)
{
    (void)name;
    (void)sysid;
    (void)pubid;
    (void)internal;
    stop(user, err_set(E_FORMAT, "XML with a document type"));
}

static int read_all(struct reader *r, const char *text, size_t n)
{
    r->parser = XML_ParserCreateNS(NULL, '|');
    if (!r->parser)
        return err_set(E_MEMORY, "out of memory for a listing");
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_begin, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
    enum XML_Status status = XML_Parse(r->parser, text, (int)n, 1);
    if (status != XML_STATUS_OK && r->rc == 0)
        r->rc = err_set(E_FORMAT, "line %lu: %s",
                        (unsigned long)XML_GetCurrentLineNumber(r->parser),
                        XML_ErrorString(XML_GetErrorCode(r->parser)));
    XML_ParserFree(r->parser);
    buf_drop(&r->text);
    return r->rc;
}

static bool is(const struct reader *r, const char *path)
{
    return strcmp(r->path, path) == 0;
}

/* ---- a page of a listing ---- */

struct listing {
    struct s3_page *page;
    s3_item_fn *item;
    void *user;
    bool root, encoded, has_key, has_size;
    struct buf key, etag, raw_key;
    int64_t size, mtime_ns;
};

int64_t s3_list_time(const char *text)
{
    struct tm t = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
    if (!rest || t.tm_year < 70)
        return 0;
    int64_t ns = (int64_t)timegm(&t) * 1000000000, digit = 100000000;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, digit /= 10)
            ns += (*rest - '0') * digit;
    return strcmp(rest, "Z") == 0 || strcmp(rest, "+00:00") == 0 ? ns : 0;
}

static int parse_size(int64_t *out, const char *text)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18 || text[n])
        return err_set(E_FORMAT, "an object of size \"%s\"", text);
    for (*out = 0; *text; text++)
        *out = *out * 10 + (*text - '0');
    return 0;
}

static int give_item(struct listing *l)
{
    if (!l->has_key || !l->has_size)
        return err_set(E_FORMAT, "an object without %s", l->has_key ? "size" : "key");
    buf_clear(&l->key);
    if (l->encoded)
        TRY(url_unescape(&l->key, buf_text(&l->raw_key), true));
    else
        buf_adds(&l->key, buf_text(&l->raw_key));
    TRY(buf_check(&l->key));
    TRY(buf_check(&l->etag));
    struct s3_item item = {buf_text(&l->key), buf_text(&l->etag), l->size, l->mtime_ns};
    l->page->items++;
    TRY(l->item(l->user, &item));
    l->has_key = l->has_size = false;
    l->mtime_ns = 0;
    buf_clear(&l->etag);
    return 0;
}

static int end_listed(struct listing *l, struct reader *r)
{
    static const char contents[] = "ListBucketResult/Contents/";
    const char *text = buf_text(&r->text);
    if (is(r, "ListBucketResult")) {
        l->root = true;
    } else if (is(r, "ListBucketResult/IsTruncated")) {
        l->page->more = strcmp(text, "true") == 0;
    } else if (is(r, "ListBucketResult/NextContinuationToken")) {
        buf_clear(&l->page->token);
        buf_adds(&l->page->token, text);
    } else if (is(r, "ListBucketResult/Contents")) {
        return give_item(l);
    } else if (strncmp(r->path, contents, strlen(contents)) == 0) {
        const char *name = r->path + strlen(contents);
        struct buf *to = strcmp(name, "Key") == 0    ? &l->raw_key
                         : strcmp(name, "ETag") == 0 ? &l->etag
                                                     : NULL;
        if (to) {
            bool bare = to == &l->etag && *text && !strchr(text, '"');
            buf_clear(to);
            buf_addf(to, bare ? "\"%s\"" : "%s", text); // some servers list bare ETags
            l->has_key |= to == &l->raw_key;
        } else if (strcmp(name, "Size") == 0) {
            TRY(parse_size(&l->size, text));
            l->has_size = true;
        } else if (strcmp(name, "LastModified") == 0) {
            l->mtime_ns = s3_list_time(text);
        }
    }
    return 0;
}

static void on_listed(struct reader *r)
{
    int rc = end_listed(r->user, r);
    if (rc < 0)
        stop(r, rc);
}

/* That keys are encoded is said once a page, and not always before the first of them.
 */
static bool says_encoded(const char *text, size_t n)
{
    static const char tag[] = "<EncodingType>url<";
    return memmem(text, n, tag, strlen(tag)) != NULL;
}

int s3_list_page(struct s3_page *page, const char *text, size_t n, s3_item_fn *item,
                 void *user)
{
    struct listing l = {.page = page, .item = item, .user = user};
    struct reader r = {.end = on_listed, .user = &l};
    buf_clear(&page->token);
    page->more = false;
    page->items = 0;
    l.encoded = says_encoded(text, n);
    int rc = read_all(&r, text, n);
    buf_drop(&l.key);
    buf_drop(&l.raw_key);
    buf_drop(&l.etag);
    TRY(rc);
    if (!l.root)
        return err_set(E_FORMAT, "not a ListBucketResult");
    if (page->more && page->token.len == 0)
        return err_set(E_FORMAT, "there is more, but no continuation token");
    return buf_check(&page->token);
}

/* ---- errors ---- */

static void keep(char *to, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);
    memcpy(to, text, n);
    to[n] = 0;
}

static void on_error(struct reader *r)
{
    struct s3_error *e = r->user;
    const char *text = buf_text(&r->text);
    if (is(r, "Error/Code") || is(r, "ErrorResponse/Error/Code"))
        keep(e->code, sizeof e->code, text);
    else if (is(r, "Error/Message") || is(r, "ErrorResponse/Error/Message"))
        keep(e->message, sizeof e->message, text);
    else if (is(r, "Error/Region"))
        keep(e->region, sizeof e->region, text);
}

bool s3_list_error(struct s3_error *out, const char *text, size_t n)
{
    struct reader r = {.end = on_error, .user = out};
    *out = (struct s3_error){0};
    if (n == 0 || read_all(&r, text, n) < 0 || !out->code[0]) {
        *out = (struct s3_error){0};
        return false;
    }
    return true;
}
