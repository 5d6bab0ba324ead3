/* SPDX-License-Identifier: MIT */
/* test_param.c - the table's names, shapes and sizes; initial values; the cache. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cache.h"
#include "err.h"
#include "kit.h"
#include "mem.h"
#include "param.h"
#include "rope.h"

static struct drafter_config small(void)
{
    return (struct drafter_config){.hidden = 64,
                                   .inter = 160,
                                   .layers = 2,
                                   .heads = 8,
                                   .kv_heads = 2,
                                   .head_dim = 16,
                                   .taps = 3};
}

/* Parameter counts of published drafters (five layers, five taps, 32 and 8 heads). */
START_TEST(published_sizes)
{
    const struct {
        int64_t hidden, inter, trained;
    } list[] = {
        {2560, 9728, 537427200}, {4096, 12288, 1048626432}, {5120, 17408, 1730213120}};
    for (int i = 0; i < 3; i++) {
        struct drafter_config c = {.hidden = list[i].hidden,
                                   .inter = list[i].inter,
                                   .layers = 5,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .head_dim = 128,
                                   .taps = 5};
        struct param_table t;
        kit_ok(param_table(&t, &c));
        ck_assert_int_eq(t.params, 58);
        ck_assert_int_eq(t.trained, list[i].trained);
        param_drop(&t);
    }
}
END_TEST

START_TEST(table)
{
    struct drafter_config c = small();
    struct param_table t;
    kit_ok(param_table(&t, &c));
    ck_assert_int_eq(t.params, 25);
    ck_assert_str_eq(t.param[PARAM_FC].name, "fc.weight");
    ck_assert(t.param[PARAM_FC].dim[0] == 64 && t.param[PARAM_FC].dim[1] == 192);
    ck_assert_str_eq(t.param[param_layer(1) + PARAM_K].name,
                     "layers.1.self_attn.k_proj.weight");
    ck_assert_str_eq(t.param[param_layer(0) + PARAM_DOWN].name,
                     "layers.0.mlp.down_proj.weight");
    ck_assert_str_eq(t.param[24].name, "norm.weight");
    int64_t end = 0, trained = 0;
    for (int64_t i = 0; i < t.params; i++) { /* in order, aligned, apart */
        const struct param *p = &t.param[i];
        int64_t n = p->dim[0] * (p->rank == 2 ? p->dim[1] : 1);
        ck_assert(p->offset >= end && p->offset % 64 == 0);
        end = p->offset + n;
        trained += n;
    }
    ck_assert(end <= t.count && t.trained == trained);
    float *flat = mem_alloc((size_t)t.count * sizeof *flat);
    struct tensor v = param_view(&t, 3, tensor_of(flat, DT_F32, T1(t.count)));
    ck_assert(v.rank == 2 && v.dim[0] == 128 && v.dim[1] == 64);
    ck_assert_ptr_eq(v.data, flat + t.param[3].offset);
    mem_free(flat);
    param_drop(&t);
}
END_TEST

/* Matrices have mean 0 and deviation 0.02 within five standard errors, norms are 1,
 * gaps 0; a tensor's values do not depend on the others. */
START_TEST(initial_values)
{
    struct drafter_config c = small();
    struct param_table t, more;
    kit_ok(param_table(&t, &c));
    c.layers = 3;
    kit_ok(param_table(&more, &c));
    float *a = mem_alloc((size_t)t.count * sizeof *a);
    float *b = mem_alloc((size_t)more.count * sizeof *b);
    memset(a, 0xff, (size_t)t.count * sizeof *a);
    param_init(a, &t, 7, NULL);
    param_init(b, &more, 7, NULL);
    for (int64_t i = 0; i < t.params; i++) {
        const struct param *p = &t.param[i];
        double n = (double)(p->dim[0] * (p->rank == 2 ? p->dim[1] : 1));
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < (int64_t)n; k++) {
            sum += (double)a[p->offset + k];
            squares += (double)a[p->offset + k] * (double)a[p->offset + k];
        }
        if (p->rank == 1) {
            ck_assert(sum == n && squares == n);
            continue;
        }
        ck_assert_double_lt(fabs(sum / n), 5 * 0.02 / sqrt(n));
        ck_assert_double_lt(fabs(sqrt(squares / n) - 0.02), 5 * 0.02 / sqrt(2 * n));
    }
    int64_t l = t.param[param_layer(1)].offset; /* layer 1 begins at the same place */
    kit_same("layer 1", b + l, a + l,
             (size_t)(t.param[t.params - 1].offset - l) * sizeof *a);
    struct par *par;
    kit_ok(par_open(&par, 3));
    param_init(b, &t, 7, par);
    kit_same("by three threads", b, a, (size_t)t.count * sizeof *a);
    par_close(par);
    param_init(b, &t, 8, NULL);
    ck_assert(memcmp(a, b, 64 * sizeof *a) != 0);
    mem_free(a);
    mem_free(b);
    param_drop(&t);
    param_drop(&more);
}
END_TEST

START_TEST(cache_fills_and_cuts)
{
    struct dev *d;
    struct cache c;
    kit_ok(dev_open(&d, "cpu", NULL));
    size_t held = d->held;
    kit_ok(cache_open(&c, d,
                      &(struct cache_form){
                          .layers = 3, .capacity = 10, .kv_heads = 2, .head_dim = 16}));
    ck_assert_int_eq((int64_t)(d->held - held), 3 * 2 * 1280); /* 10 x 2 x 16 x f32 */
    ck_assert_uint_eq(c.arena.used, c.arena.size);
    kit_ok(cache_room(&c, 10));
    kit_fails(cache_room(&c, 11), E_CONFIG, "11 rows more do not fit, 0 of 10");
    c.len = 8;
    kit_fails(cache_room(&c, 3), E_CONFIG, "8 of 10 are used");
    cache_cut(&c, 5);
    ck_assert_int_eq(c.len, 5);
    kit_ok(cache_room(&c, 5));
    cache_close(&c);
    ck_assert_uint_eq(d->held, held);
    dev_close(d);
}
END_TEST

START_TEST(frequencies)
{
    struct dev *d;
    struct arena a;
    struct tensor freq;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_ok(arena_open(&a, d, "test", 256));
    struct rope r = {.theta = 10000, .head = 8, .turned = 8};
    kit_ok(rope_open(&freq, &a, d, &r));
    const float want[] = {1, 0.1f, 0.01f, 0.001f};
    kit_same("frequencies", freq.data, want, sizeof want);
    arena_reset(&a, 0);
    r.turned = 4; /* the other two pairs of channels stand still */
    kit_ok(rope_open(&freq, &a, d, &r));
    const float half[] = {1, 0.01f, 0, 0};
    kit_same("of half the channels", freq.data, half, sizeof half);
    arena_reset(&a, 0);
    r.turned = 8; /* 1304, 130, 13 and 1.304 turns within 8192 positions */
    r.scaling = (struct config_scaling){8, 1, 4, 8192};
    kit_ok(rope_open(&freq, &a, d, &r));
    const float slow[] = {1, 0.1f, 0.01f, 0.000213607544f};
    kit_close_f32("slowed", freq.data, slow, 4, 0, 1e-7);
    arena_reset(&a, 0);
    r.scaling.low = 2; /* 1.304 turns are below: the factor in full */
    kit_ok(rope_open(&freq, &a, d, &r));
    ck_assert_float_eq(((const float *)freq.data)[3], 0.001f / 8);
    arena_close(&a);
    dev_close(d);
}
END_TEST

KIT_MAIN("param", published_sizes, table, initial_values, cache_fills_and_cuts,
         frequencies)
