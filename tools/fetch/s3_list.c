/* SPDX-License-Identifier: MIT */
/* s3_list.c - a path of element names decides what text means: "ListBucketResult",
 * "ListBucketResult/Contents/Key" and so on.  Names of other elements are passed over,
 * so that a server may say more. */
#include "s3_list.h"

#include <string.h>
#include <time.h>

#include "err.h"
#include "url.h"
#include "xml.h"

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
    if (!rest || t.tm_year < 70 || t.tm_year > 300) // 64 bits end in 2262
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

static int end_of_item(struct listing *l, const char *name, const char *text)
{
    if (strcmp(name, "Key") == 0) {
        buf_clear(&l->raw_key);
        buf_adds(&l->raw_key, text);
        l->has_key = true;
    } else if (strcmp(name, "ETag") == 0) {
        bool bare = *text && !strchr(text, '"'); // some servers list them so
        buf_clear(&l->etag);
        buf_addf(&l->etag, bare ? "\"%s\"" : "%s", text);
    } else if (strcmp(name, "Size") == 0) {
        TRY(parse_size(&l->size, text));
        l->has_size = true;
    } else if (strcmp(name, "LastModified") == 0) {
        l->mtime_ns = s3_list_time(text);
    }
    return 0;
}

static int on_listed(void *user, const char *path, const char *text)
{
    static const char root[] = "ListBucketResult", contents[] = "Contents/";
    struct listing *l = user;
    size_t n = strlen(root);
    if (strncmp(path, root, n) != 0)
        return 0;
    if (path[n] == 0)
        l->root = true;
    if (path[n] != '/')
        return 0;
    const char *name = path + n + 1;
    if (strcmp(name, "IsTruncated") == 0)
        l->page->more = strcmp(text, "true") == 0;
    else if (strcmp(name, "Contents") == 0)
        return give_item(l);
    else if (strncmp(name, contents, strlen(contents)) == 0)
        return end_of_item(l, name + strlen(contents), text);
    if (strcmp(name, "NextContinuationToken") == 0) {
        buf_clear(&l->page->token);
        buf_adds(&l->page->token, text);
    }
    return 0;
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
    buf_clear(&page->token);
    page->more = false;
    page->items = 0;
    l.encoded = says_encoded(text, n);
    int rc = xml_read(text, n, on_listed, &l);
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

static int on_error(void *user, const char *path, const char *text)
{
    struct s3_error *e = user;
    if (strcmp(path, "Error/Code") == 0)
        keep(e->code, sizeof e->code, text);
    else if (strcmp(path, "Error/Message") == 0)
        keep(e->message, sizeof e->message, text);
    else if (strcmp(path, "Error/Region") == 0)
        keep(e->region, sizeof e->region, text);
    return 0;
}

bool s3_list_error(struct s3_error *out, const char *text, size_t n)
{
    *out = (struct s3_error){0};
    if (n > 0 && xml_read(text, n, on_error, out) == 0 && out->code[0])
        return true;
    *out = (struct s3_error){0};
    return false;
}
