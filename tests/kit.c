/* SPDX-License-Identifier: MIT */
/* kit.c - the temporary root is made by the parent of all tests and removed by it, so
 * that a test that crashed leaves nothing behind. */
#include "kit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "mem.h"

static char root[256]; // "" outside kit_run
enum { TIMEOUT_S = 300 };

Suite *kit_suite(const char *name, const TTest *const test[])
{
    Suite *s = suite_create(name);
    TCase *c = tcase_create(name);
    tcase_set_timeout(c, TIMEOUT_S);
    for (; *test; test++)
        tcase_add_test(c, *test);
    suite_add_tcase(s, c);
    return s;
}

int kit_run(Suite *s)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/draft-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    if (file_remove_tree(root) < 0)
        fprintf(stderr, "%s\n", err_text());
    return failed > 0;
}

const char *kit_path(const char *fmt, ...)
{
    static char path[64][1024];
    static int turn;
    char *out = path[turn++ % 64];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(out, sizeof path[0], fmt, args);
    va_end(args);
    ck_assert_int_lt(n, (int)sizeof path[0]);
    return out;
}

const char *kit_tmp_dir(void)
{
    static char dir[sizeof root + 16];
    snprintf(dir, sizeof dir, "%s/XXXXXX", root);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    return dir;
}

void kit_write(const char *path, const void *data, size_t n)
{
    kit_ok(file_write(path, data, n));
}

void kit_write_text(const char *path, const char *text)
{
    kit_write(path, text, strlen(text));
}

char *kit_read(const char *path, size_t *n)
{
    char *data;
    kit_ok(file_read(path, &data, n));
    return data;
}

void kit_ok(int rc)
{
    if (rc < 0) // Check notes every assertion in a file, which loops cannot afford
        ck_abort_msg("failed with %d: %s", rc, err_text());
}

void kit_fails(int rc, int code, const char *text)
{
    ck_assert_msg(rc == code, "returned %d, expected %d; message: %s", rc, code,
                  err_text());
    ck_assert_msg(strstr(err_text(), text) != NULL, "message \"%s\" lacks \"%s\"",
                  err_text(), text);
}

static void diff_one(struct kit_diff *d, double got, double want, int64_t i,
                     double bound)
{
    double off = got == want ? 0 : fabs(got - want); // equal infinities are equal
    double excess = off == 0 ? 0 : isfinite(off) && bound > 0 ? off / bound : INFINITY;
    if (excess > d->excess || i == 0) {
        d->excess = excess;
        d->at = i;
    }
    if (off > d->worst || isnan(off))
        d->worst = off;
    if (fabs(want) > d->largest)
        d->largest = fabs(want);
}

/* nse holds the sum of squared errors until here. */
static void diff_end(struct kit_diff *d, double squares)
{
    if (d->nse > 0)
        d->nse /= squares;
}

struct kit_diff kit_diff_f32(const float *got, const float *want, int64_t n, double abs,
                             double rel)
{
    struct kit_diff d = {0};
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double g = got[i], w = want[i];
        diff_one(&d, g, w, i, abs + rel * fabs(w));
        d.nse += g == w ? 0 : (g - w) * (g - w);
        squares += w * w;
    }
    diff_end(&d, squares);
    return d;
}

struct kit_diff kit_diff_f64(const double *got, const double *want, int64_t n,
                             double abs, double rel)
{
    struct kit_diff d = {0};
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double g = got[i], w = want[i];
        diff_one(&d, g, w, i, abs + rel * fabs(w));
        d.nse += g == w ? 0 : (g - w) * (g - w);
        squares += w * w;
    }
    diff_end(&d, squares);
    return d;
}

static void report(const char *what, const struct kit_diff *d, double got, double want)
{
    printf("%s: worst %.3g at %lld, %.3g of the bound, nse %.3g\n", what, d->worst,
           (long long)d->at, d->excess, d->nse);
    fflush(stdout);
    ck_assert_msg(d->excess <= 1,
                  "%s[%lld]: got %.9g, expected %.9g: %.3g of the bound", what,
                  (long long)d->at, got, want, d->excess);
}

void kit_close_f32(const char *what, const float *got, const float *want, int64_t n,
                   double abs, double rel)
{
    struct kit_diff d = kit_diff_f32(got, want, n, abs, rel);
    if (n > 0)
        report(what, &d, got[d.at], want[d.at]);
}

void kit_close_f64(const char *what, const double *got, const double *want, int64_t n,
                   double abs, double rel)
{
    struct kit_diff d = kit_diff_f64(got, want, n, abs, rel);
    if (n > 0)
        report(what, &d, got[d.at], want[d.at]);
}

void kit_close_max(const char *what, const float *got, const float *want, int64_t n,
                   double share)
{
    struct kit_diff d = kit_diff_f32(got, want, n, 1, 0);
    kit_close_f32(what, got, want, n, share * d.largest, 0);
}

void kit_same(const char *what, const void *got, const void *want, size_t bytes)
{
    const unsigned char *g = got, *w = want;
    size_t i = 0;
    while (i < bytes && g[i] == w[i])
        i++;
    /* One assertion for all: Check writes a mark to a file for each. */
    ck_assert_msg(i == bytes, "%s: byte %zu of %zu is %02x, expected %02x", what, i,
                  bytes, i < bytes ? g[i] : 0, i < bytes ? w[i] : 0);
}
