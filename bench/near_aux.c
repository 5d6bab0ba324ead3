/* SPDX-License-Identifier: MIT */
/* near_aux.c - how far hidden states of two devices lie apart.
 *
 *     near_aux WANT GOT [LIMIT]
 *
 * Prints sqrt(sum (got - want)^2 / sum want^2) of each tap over all rows; ends with 1
 * when a tap exceeds LIMIT (0.02), and with an error when the texts differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "num.h"
#include "row.h"
#include "shard.h"

enum { TAPS = 64 };

struct apart {
    int64_t taps, rows;
    double off[TAPS], all[TAPS];
};

static int64_t count_of(const char *list)
{
    int64_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static int compare(struct apart *a, const struct row *want, const struct row *got)
{
    const int64_t s = want->text.length, width = want->width, h = width / a->taps;
    const uint16_t *x = want->aux, *y = got->aux;
    if (!x || !y || want->scale || got->scale)
        return err_set(E_CONFIG, "row %lld: not states in bf16",
                       (long long)want->index);
    if (got->text.length != s || got->width != width ||
        memcmp(want->text.ids, got->text.ids, (size_t)s * sizeof(int32_t)) != 0)
        return err_set(E_FORMAT, "row %lld: another text", (long long)want->index);
    for (int64_t i = 0; i < s * width; i++) {
        double v = (double)num_bf16_f32(x[i]), d = (double)num_bf16_f32(y[i]) - v;
        a->off[i % width / h] += d * d;
        a->all[i % width / h] += v * v;
    }
    a->rows++;
    return 0;
}

static int compare_all(struct apart *a, struct shard_reader *want,
                       struct shard_reader *got)
{
    struct shard_view x, y;
    int more;
    while ((more = shard_next(want, &x)) == 1) {
        TRY(shard_next(got, &y));
        if (x.rows != y.rows)
            return err_set(E_FORMAT, "%s has %lld rows, %s %lld", x.name,
                           (long long)x.rows, y.name, (long long)y.rows);
        for (int64_t i = 0; i < x.rows; i++) {
            struct row r, s;
            TRY(row_view(&r, &x, i));
            TRY(row_view(&s, &y, i));
            TRY(compare(a, &r, &s));
        }
    }
    return more;
}

static int run(char **argv, double limit)
{
    struct shard_reader *want = NULL, *got = NULL;
    struct apart a = {0};
    int rc, far = 0;
    TRY_GOTO(rc, shard_open(&want, argv + 1, 1), out);
    TRY_GOTO(rc, shard_open(&got, argv + 2, 1), out);
    const char *taps = shard_meta(want, "taps");
    a.taps = taps ? count_of(taps) : 1;
    if (a.taps > TAPS) {
        rc = err_set(E_CONFIG, "%lld taps", (long long)a.taps);
        goto out;
    }
    TRY_GOTO(rc, compare_all(&a, want, got), out);
    for (int64_t k = 0; k < a.taps; k++) {
        double error = sqrt(a.off[k] / a.all[k]);
        far |= !(error <= limit);
        printf("tap %lld of %s: %.2e of %.0e\n", (long long)k, taps, error, limit);
    }
    rc = far;
out:
    shard_close(want);
    shard_close(got);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: near_aux WANT GOT [LIMIT]\n");
        return -E_USAGE;
    }
    int rc = run(argv, argc == 4 ? strtod(argv[3], NULL) : 0.02);
    if (rc < 0)
        fprintf(stderr, "near_aux: %s\n", err_text());
    return rc < 0 ? -rc : rc;
}
