/* SPDX-License-Identifier: MIT */
/* test_sample.c - greedy ties, frequencies against softmax, the nucleus, bad logits. */
#include <math.h>
#include <stdio.h>

#include "err.h"
#include "kit.h"
#include "sample.h"

enum { V = 6, DRAWS = 20000 };

static const float logits[V] = {0.5f, 2.0f, -1.0f, 2.0f, 1.25f, -INFINITY};

static void frequencies(double f[V], struct sample s)
{
    struct rng rng = rng_new(9);
    for (int i = 0; i < V; i++)
        f[i] = 0;
    for (int i = 0; i < DRAWS; i++) {
        int32_t token;
        kit_ok(sample_token(&token, logits, V, s, &rng));
        f[token] += 1.0 / DRAWS;
    }
}

START_TEST(greedy)
{
    struct rng rng = rng_new(1);
    int32_t token = -1;
    kit_ok(sample_token(&token, logits, V, (struct sample){0, 1}, &rng));
    ck_assert_int_eq(token, 1); /* the first of two equals */
    ck_assert_int_eq((int)rng.next, 0);
}
END_TEST

/* Shares within four standard deviations of softmax(z / T). */
START_TEST(temperature)
{
    for (double t = 0.5; t <= 2; t *= 2) {
        double f[V], total = 0;
        frequencies(f, (struct sample){t, 1});
        for (int i = 0; i < V; i++)
            total += exp((double)logits[i] / t);
        for (int i = 0; i < V; i++) {
            double p = exp((double)logits[i] / t) / total;
            printf("T %.1f token %d: %.4f, expected %.4f\n", t, i, f[i], p);
            ck_assert_double_le(fabs(f[i] - p), 4 * sqrt(p * (1 - p) / DRAWS));
        }
    }
}
END_TEST

/* Probabilities .36 .36 .17 .08 .02: top_p .5 keeps both largest, .36 the first, .8
 * three. */
START_TEST(nucleus)
{
    const struct {
        double top_p;
        int kept;
    } list[] = {{0.5, 2}, {0.3, 1}, {0.8, 3}};
    const int order[] = {1, 3, 4};
    for (int i = 0; i < 3; i++) {
        double f[V], sum = 0, mass = 0;
        frequencies(f, (struct sample){1, list[i].top_p});
        for (int j = 0; j < list[i].kept; j++)
            mass += exp((double)logits[order[j]]);
        for (int j = 0; j < list[i].kept; j++) {
            double q = exp((double)logits[order[j]]) / mass;
            ck_assert_double_gt(f[order[j]], 0.1);
            ck_assert_double_le(fabs(f[order[j]] - q),
                                1e-9 + 4 * sqrt(q * (1 - q) / DRAWS));
            sum += f[order[j]];
        }
        ck_assert_double_gt(sum, 0.9999);
    }
}
END_TEST

START_TEST(same_key_same_tokens)
{
    struct rng a = rng_new(5), b = rng_new(5);
    for (int i = 0; i < 100; i++) {
        int32_t x, y;
        kit_ok(sample_token(&x, logits, V, (struct sample){1, 0.9}, &a));
        kit_ok(sample_token(&y, logits, V, (struct sample){1, 0.9}, &b));
        ck_assert_int_eq(x, y);
    }
}
END_TEST

START_TEST(bad_logits)
{
    struct rng rng = rng_new(1);
    int32_t token;
    const float nan[] = {1, NAN, 2}, inf[] = {1, INFINITY}, none[] = {-INFINITY};
    kit_fails(sample_token(&token, nan, 3, (struct sample){0, 1}, &rng), E_FORMAT,
              "entry 1");
    kit_fails(sample_token(&token, inf, 2, (struct sample){0, 1}, &rng), E_FORMAT,
              "infinite");
    kit_fails(sample_token(&token, none, 1, (struct sample){1, 1}, &rng), E_FORMAT,
              "infinite");
}
END_TEST

KIT_MAIN("sample", greedy, temperature, nucleus, same_key_same_tokens, bad_logits)
