/* SPDX-License-Identifier: MIT */
/* test_outline.c - a checkpoint is judged by its headers: at any size, at once, without
 * a device, and what it will take is known to the byte. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "err.h"
#include "kit.h"
#include "kit_large.h"
#include "kit_time.h"
#include "mem.h"
#include "target.h"

/* ---- what it takes ---- */

static const char *const models[] = {
    "tests/golden/target-qwen3/model", "tests/golden/target-qwen3-tied/model",
    "tests/golden/target-qwen2/model", "tests/golden/target-llama/model",
    "tests/golden/target-qwen3_5/model"};
enum { MODELS = sizeof models / sizeof models[0] };

static struct target_sizes sizes_of(const char *dir, const char *device, int64_t last,
                                    enum target_head head)
{
    struct dev card;
    struct target *t;
    kit_ok(dev_outline(&card, device));
    kit_ok(target_outline(&t, &card, dir, last, head));
    struct target_sizes s = target_sizes(t);
    ck_assert_uint_eq(card.held, 0);
    target_close(t);
    return s;
}

static void check_sizes(struct dev *d, const char *dir)
{
    struct target *t;
    for (int64_t last = -1; last < 3; last++) {
        struct target_sizes s = sizes_of(dir, "cpu", last, TARGET_HEADLESS);
        kit_ok(target_open(&t, d, dir, last, false));
        ck_assert_uint_eq(d->held, s.whole);
        target_close(t);
        if (s.parts >= s.whole) // of a layer or two, all of it is less
            continue;
        kit_ok(target_open_within(&t, d, dir, last, s.parts));
        ck_assert(target_streams(t));
        ck_assert_uint_eq(d->held, s.parts);
        target_close(t);
        kit_fails(target_open_within(&t, d, dir, last, s.parts - 1), E_CONFIG,
                  "embedding and two layers");
    }
    kit_ok(target_open(&t, d, dir, -1, true));
    ck_assert_uint_eq(d->held, sizes_of(dir, "cpu", -1, TARGET_LOGITS).whole);
    target_close(t);
    kit_ok(target_vocabulary(&t, d, dir));
    ck_assert_uint_eq(d->held, sizes_of(dir, "cpu", 0, TARGET_VOCABULARY).whole);
    target_close(t);
    ck_assert_uint_eq(d->held, 0);
}

START_TEST(sizes_are_what_is_taken)
{
    struct dev *d;
    kit_ok(dev_open(&d, "cpu", NULL));
    for (int i = 0; i < MODELS; i++)
        check_sizes(d, models[i]);
    dev_close(d);
}
END_TEST

/* An outline answers what a pass needs as the target itself does. */
START_TEST(passes_are_measured)
{
    for (int i = 0; i < MODELS; i++) {
        struct dev *d, card;
        struct target *t, *shape;
        kit_ok(dev_open(&d, "cpu", NULL));
        kit_ok(dev_outline(&card, "cpu"));
        kit_ok(target_open(&t, d, models[i], 2, false));
        kit_ok(target_outline(&shape, &card, models[i], 2, TARGET_HEADLESS));
        ck_assert_uint_eq(target_bytes(shape, 96, 7), target_bytes(t, 96, 7));
        ck_assert_uint_eq(target_group_bytes(shape, 96, 5),
                          target_group_bytes(t, 96, 5));
        struct cache_form a = target_cache_form(shape, 96, 7);
        struct cache_form b = target_cache_form(t, 96, 7);
        ck_assert_uint_eq(cache_bytes(&card, &a), cache_bytes(d, &b));
        ck_assert_uint_eq(target_digest(shape), target_digest(t));
        target_close(shape);
        target_close(t);
        dev_close(d);
    }
}
END_TEST

/* ---- a large one ---- */

enum { H = 4096, INTER = 12288, V = 151936, Q = 4096, KV = 1024 };

/* look outlines a checkpoint for a card; what is wrong is found within a second.  What
 * is not is read for its digest, at the ends of each tensor. */
static int look(const char *dir)
{
    struct dev card;
    struct target *t = NULL;
    kit_ok(dev_outline(&card, "cuda"));
    double begun = kit_now();
    int rc = target_outline(&t, &card, dir, 33, TARGET_HEADLESS);
    double took = kit_now() - begun;
    printf("%.0f ms: %s\n", 1e3 * took, rc < 0 ? err_text() : "well");
    ck_assert(rc == 0 || took < 1);
    target_close(t);
    return rc;
}

/* Sixteen gigabytes, of which 34 layers of 36 and the embedding are wanted; where
 * layers come one by one, two of them. */
START_TEST(a_large_one_at_once)
{
    size_t n;
    kit_fails(look(kit_large(KIT_QWEN3_8B, 1)), E_FORMAT,
              "tensor model.layers.35.mlp.down_proj.weight is [4096, 12287], "
              "config.json makes it [4096, 12288]");
    const char *dir = kit_large(KIT_QWEN3_8B, 0);
    kit_ok(look(dir));
    struct target_sizes s = sizes_of(dir, "cuda", 33, TARGET_HEADLESS);
    double layer = 2.0 * (2.0 * H * Q + 2.0 * H * KV + 3.0 * H * INTER);
    ck_assert_double_eq_tol((double)s.whole, 34 * layer + 2.0 * V * H, 4e6);
    ck_assert_double_eq_tol((double)s.parts, 2 * layer + 2.0 * V * H, 4e6);
    ck_assert_uint_eq(s.loading, (size_t)2 * H * INTER);

    const char *b = kit_path("%s/b.safetensors", dir);
    const char *index = kit_path("%s/model.safetensors.index.json", dir);
    int fd = open(b, O_WRONLY);
    off_t size = lseek(fd, 0, SEEK_END);
    ck_assert_int_eq(ftruncate(fd, size - 1), 0);
    kit_fails(look(dir), E_FORMAT, "b.safetensors");
    ck_assert_int_eq(ftruncate(fd, size + 1), 0);
    kit_fails(look(dir), E_FORMAT, "b.safetensors");
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    kit_fails(look(dir), E_FORMAT, "b.safetensors");
    close(fd);
    ck_assert_int_eq(unlink(b), 0);
    kit_fails(look(dir), E_MISSING, "b.safetensors");
    char *text = kit_read(index, &n);
    kit_write(index, text, n / 2);
    kit_fails(look(dir), E_FORMAT, "index.json");
    mem_free(text);
}
END_TEST

KIT_MAIN("outline", sizes_are_what_is_taken, passes_are_measured, a_large_one_at_once)
