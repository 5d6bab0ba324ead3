/* SPDX-License-Identifier: MIT */
/* test_models.c - what draft-eval finds out of two checkpoints before it opens a
 * device.
 */
#include <string.h>

#include "err.h"
#include "eval/models.h"
#include "kit.h"

static const char *const untied = "tests/golden/target-qwen3/model";
static const char *const tied = "tests/golden/target-qwen3-tied/model";

START_TEST(a_target_must_fit_whole)
{
    struct models m;
    kit_ok(models_find(&m, "cuda", untied, TARGET_LOGITS, NULL));
    struct target_sizes s = target_sizes(m.shape);
    kit_ok(models_fit(&m, SIZE_MAX));
    kit_ok(models_fit(&m, s.whole + s.loading));
    kit_fails(models_fit(&m, s.whole + s.loading - 1), E_CONFIG,
              "a target is decoded whole");
    kit_fails(models_fit(&m, s.whole - 1), E_CONFIG, "memory: the target takes ");
    kit_fails(models_fit(&m, 0), E_CONFIG, "the device has 0 ");
    ck_assert_uint_eq(m.card.held, 0);
    models_drop(&m);
}
END_TEST

START_TEST(models_are_known_by_their_digests)
{
    struct models m, n;
    kit_ok(models_find(&m, "cpu", untied, TARGET_LOGITS, ""));
    kit_ok(models_find(&n, "cuda:7", untied, TARGET_VOCABULARY, NULL));
    ck_assert_str_eq(m.target, n.target);
    ck_assert_str_eq(m.drafter, "");
    models_drop(&n);
    kit_ok(models_find(&n, "cpu", tied, TARGET_LOGITS, NULL));
    ck_assert_str_ne(m.target, n.target);
    models_drop(&n);
    models_drop(&m);
    kit_fails(models_find(&m, "gpu", untied, TARGET_LOGITS, NULL), E_CONFIG,
              "device gpu: unknown");
    models_drop(&m);
    kit_fails(models_find(&m, "cpu", "/nowhere", TARGET_LOGITS, NULL), E_MISSING,
              "/nowhere");
    models_drop(&m);
}
END_TEST

KIT_MAIN("models", a_target_must_fit_whole, models_are_known_by_their_digests)
