/* SPDX-License-Identifier: MIT */
/* kit.h - what the Check programs share: a main in one line, temporary folders,
 * expected failures, comparison of numbers.
 *
 *     START_TEST(adds) { ck_assert_int_eq(1 + 1, 2); }
 *     END_TEST
 *     KIT_MAIN("sums", adds)
 *
 * Each test runs in a process of its own (CK_FORK=no keeps them in one).  Programs run
 * from the root of the tree.  The functions below fail the test that calls them. */
#ifndef KIT_H
#define KIT_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* kit_suite makes a suite of one case from a NULL-terminated list; kit_run runs it,
 * removes the temporary folders, and returns main's status. */
Suite *kit_suite(const char *name, const TTest *const test[]);
int kit_run(Suite *s);

#define KIT_MAIN(name, ...)                                                            \
    int main(void)                                                                     \
    {                                                                                  \
        return kit_run(kit_suite(name, (const TTest *const[]){__VA_ARGS__, NULL}));    \
    }

/* kit_tmp_dir makes a new, empty folder; the text lives until the test ends. */
const char *kit_tmp_dir(void);

/* kit_path formats a path; one of 64 buffers used in turn. */
const char *kit_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Whole files; what kit_read returns is freed with mem_free. */
void kit_write(const char *path, const void *data, size_t n);
void kit_write_text(const char *path, const char *text);
char *kit_read(const char *path, size_t *n);

/* kit_ok passes on 0 and above; kit_fails expects a code and a message that contains
 * `text`. */
void kit_ok(int rc);
void kit_fails(int rc, int code, const char *text);

/* How two runs of numbers differ: worst = max |got - want|; excess = the largest
 * |got - want| / (abs + rel * |want|), at its index: up to 1 is within the bounds; nse
 * = sum (got - want)^2 / sum want^2; largest = max |want|.  A NaN anywhere, or an
 * infinity on one side only, makes excess infinite. */
struct kit_diff {
    double worst, excess, nse, largest;
    int64_t at;
};
struct kit_diff kit_diff_f32(const float *got, const float *want, int64_t n, double abs,
                             double rel);
struct kit_diff kit_diff_f64(const double *got, const double *want, int64_t n,
                             double abs, double rel);

/* kit_close_* print the difference, also when it is small, and fail beyond the bounds:
 * every element within abs + rel * |want|.  kit_close_max measures against the tensor's
 * largest element: |got - want| <= share * max |want|. */
void kit_close_f32(const char *what, const float *got, const float *want, int64_t n,
                   double abs, double rel);
void kit_close_f64(const char *what, const double *got, const double *want, int64_t n,
                   double abs, double rel);
void kit_close_max(const char *what, const float *got, const float *want, int64_t n,
                   double share);

/* kit_same demands equal bytes and names the first that differs. */
void kit_same(const char *what, const void *got, const void *want, size_t bytes);

#endif
