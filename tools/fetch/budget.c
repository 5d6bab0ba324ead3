/* SPDX-License-Identifier: MIT */
/* budget.c - what is used is asked of the kernel, because lists and libraries do not
 * count themselves. */
#include "budget.h"

#include <stdio.h>
#include <unistd.h>

#include "err.h"

enum {
    OBJECT = 200,           // by which the manifest will grow, for each
    CONNECTION = 128 << 10, // in libcurl and OpenSSL
    REST = 8 << 20
};

/* Memory of this process; 0 where /proc does not say. */
static int64_t used_now(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

int budget_left(int64_t *out, int64_t memory, int64_t objects, int64_t connections,
                int64_t least)
{
    int64_t rest =
        memory - used_now() - OBJECT * objects - CONNECTION * connections - REST;
    *out = rest;
    if (rest >= least)
        return 0;
    return err_set(E_CONFIG,
                   "option --memory: %lld bytes are too few for %lld objects "
                   "and %lld connections: %lld would do",
                   (long long)memory, (long long)objects, (long long)connections,
                   (long long)(memory - rest + least));
}

int budget_listing(int64_t memory, int64_t objects, const char *url)
{
    if (used_now() + OBJECT * objects <= memory)
        return 0;
    return err_set(E_CONFIG,
                   "%s: the listing does not end before --memory does: %lld objects so "
                   "far in %lld bytes",
                   url, (long long)objects, (long long)memory);
}
