/* SPDX-License-Identifier: MIT */
/* plant_malloc.c - a library to preload that takes 4 MiB of the card behind a tool's
 * back.
 *
 *   LD_PRELOAD=plant.so PLANT_AT=150 draft-train ...
 *
 * The allocation comes with the 150th matrix product, inside a step when the number is
 * beyond the warm-up's: what a library or a path that was thought to be unused may do.
 * draft-train must end with 70 and both numbers (guard.h). */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLANTED = 4 << 20 };

typedef int product(void *, void *, const void *, const void *, void *, const void *,
                    void *, const void *, const void *, void *, void *, void *,
                    const void *, void *, size_t, void *);

static void plant(void)
{
    unsigned long long at = 0;
    int (*take)(unsigned long long *, size_t) =
        (int (*)(unsigned long long *, size_t))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    void *driver = take ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
    if (!take && driver)
        take = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
    fprintf(stderr, "plant: %d bytes: %s\n", PLANTED,
            take && take(&at, PLANTED) == 0 ? "taken" : "refused");
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a,
                   void *a_is, const void *b, void *b_is, const void *beta,
                   const void *c, void *c_is, void *d, void *d_is, const void *algo,
                   void *space, size_t bytes, void *stream)
{
    static atomic_long calls;
    const char *at = getenv("PLANT_AT");
    product *real = (product *)dlsym(RTLD_NEXT, "cublasLtMatmul");
    if (at && atomic_fetch_add(&calls, 1) + 1 == strtol(at, NULL, 10))
        plant();
    return real(handle, desc, alpha, a, a_is, b, b_is, beta, c, c_is, d, d_is, algo,
                space, bytes, stream);
}
