/* SPDX-License-Identifier: MIT */
/* fuzz_list.c - any bytes as a page of an S3 listing or as an error document. */
#include <string.h>

#include "../tools/fetch/object.h"
#include "../tools/fetch/s3_list.h"
#include "err.h"
#include "fuzz.h"

static int on_item(void *user, const struct s3_item *item)
{
    struct objects *list = user;
    must(item->size >= 0 && item->key && item->etag);
    struct object *o = object_add(list, item->key, item->key);
    must(o != NULL);
    o->size = item->size;
    return 0;
}

/* A listing that is read gives keys which are refused or stay below the destination. */
static void read_page(const char *text, size_t n)
{
    struct objects list = {0};
    struct s3_page page = {0};
    int rc = s3_list_page(&page, text, n, on_item, &list);
    must(rc == 0 || rc == E_FORMAT);
    must(rc < 0 || page.items == list.n);
    must(rc < 0 || !page.more || page.token.len > 0);
    must(object_arrange(&list) == 0);
    for (int64_t i = 0; i < list.n; i++) {
        const struct object *o = &list.at[i];
        must(o->code < 0 || (*o->key && *o->key != '/' && !strstr(o->key, "/../") &&
                             strncmp(o->key, "../", 3) != 0));
    }
    buf_drop(&page.token);
    object_drop(&list);
}

static void read_error(const char *text, size_t n)
{
    struct s3_error e;
    bool is_one = s3_list_error(&e, text, n);
    must(memchr(e.code, 0, sizeof e.code) && memchr(e.region, 0, sizeof e.region));
    must(memchr(e.message, 0, sizeof e.message));
    must(is_one || (!e.code[0] && !e.message[0] && !e.region[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    read_page(text, size);
    read_error(text, size);
    return 0;
}
