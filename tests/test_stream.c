/* SPDX-License-Identifier: MIT */
/* test_stream.c - targets whose layers are brought one by one: the same bits as whole
 * ones, within the memory that they were given. */
#include <string.h>

#include "err.h"
#include "kit.h"
#include "kit_target.h"
#include "mem.h"

static const char *const models[] = {
    "tests/golden/target-qwen3", "tests/golden/target-qwen2",
    "tests/golden/target-llama", "tests/golden/target-qwen3_5",
    "tests/golden/target-hybrid-3"};
enum { MODELS = sizeof models / sizeof models[0], LAYERS_MAX = 16 };

struct group {
    struct target_pass pass[KIT_DOCS];
    struct arena work;
    int64_t tap[LAYERS_MAX];
};

/* group_new makes a pass of every document of the text, with all layers kept. */
static void group_new(struct group *s, struct target *t, const struct kit_text *g)
{
    const struct target_config *c = target_config(t);
    for (int64_t l = 0; l < c->layers; l++)
        s->tap[l] = l;
    for (int d = 0; d < KIT_DOCS; d++) {
        int64_t at = g->cu[d], n = g->cu[d + 1] - at;
        struct target_pass *p = &s->pass[d];
        *p = (struct target_pass){.rows = n,
                                  .ids = g->ids + at,
                                  .pos = g->pos + at,
                                  .tap = s->tap,
                                  .taps = (int)c->layers};
        int32_t *span = mem_zero(2 * (size_t)n, sizeof *span);
        for (int32_t i = 0; i < n; i++)
            span[n + i] = i + 1;
        p->lo = span;
        p->hi = span + n;
        p->aux = kit_tensor_new(DT_F32, T2(n, c->layers * c->hidden));
        p->last = kit_tensor_new(DT_F32, T2(n, c->hidden));
    }
}

static void group_free(struct group *s)
{
    for (int d = 0; d < KIT_DOCS; d++) {
        kit_tensor_free(&s->pass[d].aux);
        kit_tensor_free(&s->pass[d].last);
        mem_free((void *)(uintptr_t)s->pass[d].lo);
    }
}

static void same(struct group *whole, struct group *parts)
{
    for (int d = 0; d < KIT_DOCS; d++) {
        struct target_pass *a = &whole->pass[d], *b = &parts->pass[d];
        kit_same("aux", b->aux.data, a->aux.data, tensor_bytes(&a->aux));
        kit_same("last", b->last.data, a->last.data, tensor_bytes(&a->last));
        memset(b->aux.data, 0x55, tensor_bytes(&b->aux));
        memset(b->last.data, 0x55, tensor_bytes(&b->last));
    }
}

/* stream runs the text in groups of n documents. */
static void stream(struct target *t, struct group *s, struct dev *d, int n)
{
    kit_arena(&s->work, d, target_group_bytes(t, 130, n));
    for (int i = 0; i < KIT_DOCS; i += n)
        kit_ok(target_group(t, &s->pass[i], KIT_DOCS - i < n ? KIT_DOCS - i : n,
                            &s->work));
    arena_close(&s->work);
}

static void check(const char *dir)
{
    struct dev *d;
    struct target *whole, *parts;
    struct kit_text g;
    struct group a, b;
    const char *model = kit_path("%s/model", dir);
    int streams = 0;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_text_open(&g, kit_path("%s/golden.safetensors", dir));
    kit_ok(target_open(&whole, d, model, -1, false));
    group_new(&a, whole, &g);
    group_new(&b, whole, &g);
    size_t held = d->held;
    stream(whole, &a, d, 1);
    ck_assert_uint_eq(d->held, held);
    for (size_t memory = held;; memory -= held / 12) {
        int rc = target_open_within(&parts, d, model, -1, memory);
        if (rc == E_CONFIG)
            break;
        kit_ok(rc);
        ck_assert_uint_le(d->held - held, memory);
        ck_assert(target_streams(parts) == (memory < held));
        streams += target_streams(parts);
        for (int n = 1; n <= KIT_DOCS; n += 4) {
            stream(parts, &b, d, n);
            same(&a, &b);
        }
        target_close(parts);
        ck_assert_uint_eq(d->held, held);
    }
    ck_assert_int_ge(streams, 2);
    group_free(&a);
    group_free(&b);
    target_close(whole);
    kit_text_close(&g);
    dev_close(d);
}

START_TEST(whole_and_by_layers)
{
    for (int i = 0; i < MODELS; i++)
        check(models[i]);
}
END_TEST

START_TEST(too_little_is_refused)
{
    struct dev *d;
    struct target *t;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_fails(target_open_within(&t, d, "tests/golden/target-qwen3/model", -1, 1000),
              E_CONFIG, "embedding and two layers of the target take");
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
}
END_TEST

KIT_MAIN("stream", whole_and_by_layers, too_little_is_refused)
