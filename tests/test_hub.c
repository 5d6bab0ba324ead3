/* SPDX-License-Identifier: MIT */
/* test_hub.c - what of the hub can be looked at without one: Link headers, routes. */
#include "../tools/fetch/hf.h"
#include "../tools/fetch/hf_route.h"

#include "err.h"
#include "kit.h"

START_TEST(links)
{
    static const struct {
        const char *link, *next; // NULL: there is none
    } good[] = {
        {"", NULL},
        {"<https://h/a?cursor=x%3D>; rel=\"next\"", "https://h/a?cursor=x%3D"},
        {"<https://h/1>; rel=\"prev\", <https://h/3>; rel=\"next\"", "https://h/3"},
        {"<https://h/1>; rel=\"next\" , <https://h/0>; rel=\"first\"", "https://h/1"},
        {"<https://h/1>; rel=\"last\"", NULL},
        {"<https://h/rel=\"next\">; rel=\"last\"", NULL},
    };
    struct buf url = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int rc = hf_next(&url, good[i].link);
        ck_assert_int_eq(rc, good[i].next != NULL);
        if (good[i].next)
            ck_assert_str_eq(buf_text(&url), good[i].next);
    }
    kit_fails(hf_next(&url, "https://h/a"), E_FORMAT, "Link header");
    kit_fails(hf_next(&url, "<https://h/a"), E_FORMAT, "Link header");
    buf_drop(&url);
}
END_TEST

START_TEST(routes)
{
    static char key[1000];
    struct routes r;
    struct buf url = {0};
    hf_route_open(&r);
    ck_assert(!hf_route_get(&r, key, &url));
    for (int i = 0; i < 1000; i++)
        kit_ok(hf_route_set(&r, &key[i], "https://hub/a/b", kit_path("/%d", i)));
    for (int i = 0; i < 1000; i++) {
        buf_clear(&url);
        ck_assert(hf_route_get(&r, &key[i], &url));
        ck_assert_str_eq(buf_text(&url), kit_path("https://hub/%d", i));
    }
    ck_assert(
        hf_route_drop(&r, key, "https://hub/other")); // newer than what was refused
    ck_assert(hf_route_get(&r, key, &url));
    ck_assert(hf_route_drop(&r, key, "https://hub/0"));
    ck_assert(!hf_route_get(&r, key, &url));
    ck_assert(!hf_route_drop(&r, key, "https://hub/0"));
    kit_fails(hf_route_set(&r, key, "https://hub/a", "http://hub/a"), E_FORMAT,
              "from https to http");
    kit_fails(hf_route_set(&r, key, "https://hub/a", "file:///etc/passwd"), E_FORMAT,
              "");
    hf_route_close(&r);
    buf_drop(&url);
}
END_TEST

KIT_MAIN("hub", links, routes)
