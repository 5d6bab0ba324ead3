/* SPDX-License-Identifier: MIT */
/* test_target.c - the Qwen3 target against transformers, and against itself.
 *
 * The golden files (tests/golden/README.md) hold nine documents of 1 to 130 tokens,
 * each run alone in f32.  Values agree to a share of the largest; our own ways of
 * running the same token (packed, alone, cached in any pieces, any number of threads)
 * agree in every bit. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kit.h"
#include "kit_target.h"
#include "mem.h"
#include "num.h"

enum { LAYERS = 4, H = 64, V = 512, DOCS = KIT_DOCS, T = KIT_TOKENS };

static const char *const untied = "tests/golden/target-qwen3";
static const char *const tied = "tests/golden/target-qwen3-tied";
static const double share = 2e-5; // of the largest; the references differ by 2e-6

static void check_values(const char *dir)
{
    struct kit_text g;
    struct kit_bench b;
    kit_text_open(&g, kit_path("%s/golden.safetensors", dir));
    kit_bench_open(&b, kit_path("%s/model", dir), 1);
    printf("%s\n", dir);
    kit_values(&b, &g, share);
    kit_bench_close(&b);
    kit_text_close(&g);
}

START_TEST(values)
{
    check_values(untied);
}
END_TEST

START_TEST(values_tied)
{
    check_values(tied);
}
END_TEST

/* ---- faults that the values must show ---- */

/* far is how far layer 3 and the logits of a pass are from the golden ones, in shares
 * of the largest. */
static double far(const struct kit_bench *b, struct kit_outcome *o,
                  const struct kit_text *g)
{
    static float got[T * H];
    double worst = 0;
    kit_layer(got, b, o, LAYERS - 1);
    struct kit_diff h = kit_diff_f32(got, g->hidden + LAYERS * T * H, T * H, 1, 0);
    worst = h.worst / h.largest;
    for (int d = 0; d < DOCS; d++) {
        struct kit_diff z =
            kit_diff_f32((const float *)o->logits.data + (g->cu[d + 1] - 1) * V,
                         g->logits + d * V, V, 1, 0);
        if (z.worst / z.largest > worst)
            worst = z.worst / z.largest;
    }
    return worst;
}

/* changed_model copies the untied model with one text of config.json replaced. */
static const char *changed_model(const char *text, const char *by)
{
    char from[64];
    const char *dir = kit_tmp_dir();
    snprintf(from, sizeof from, "%s/model", untied);
    char **names;
    int64_t n;
    size_t size;
    kit_ok(file_list(from, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        char *data = kit_read(kit_path("%s/%s", from, names[i]), &size);
        char *at = strcmp(names[i], "config.json") == 0 ? strstr(data, text) : NULL;
        if (at) {
            const char *rest = at + strlen(text);
            *at = '\0';
            kit_write_text(kit_path("%s/config.json", dir),
                           kit_path("%s%s%s", data, by, rest));
        } else {
            kit_write(kit_path("%s/%s", dir, names[i]), data, size);
        }
        mem_free(data);
    }
    file_list_free(names, n);
    return dir;
}

static void fault(const char *what, struct kit_bench *b, const struct kit_text *g)
{
    struct kit_outcome o;
    kit_packed(b, &o, g);
    double off = far(b, &o, g);
    printf("%s: off by %.2g\n", what, off);
    ck_assert_msg(!(off <= share), "%s does not show", what);
    kit_outcome_free(&o);
}

START_TEST(faults_show)
{
    static const char *const config[][3] = {
        {"another theta", "\"rope_theta\": 1000000.0", "\"rope_theta\": 999000.0"},
        {"another epsilon", "1e-06", "2e-05"},
    };
    struct kit_text g;
    struct kit_bench b;
    kit_text_open(&g, kit_path("%s/golden.safetensors", untied));
    for (int i = 0; i < 2; i++) {
        kit_bench_open(&b, changed_model(config[i][1], config[i][2]), 1);
        fault(config[i][0], &b, &g);
        kit_bench_close(&b);
    }
    kit_bench_open(&b, kit_path("%s/model", untied), 1);
    g.lo[g.cu[4]]--;
    fault("a document that sees one token of the one before", &b, &g);
    g.lo[g.cu[4]]++;
    g.lo[g.cu[8] + 100]++;
    fault("a first token that one row does not see", &b, &g);
    g.lo[g.cu[8] + 100]--;
    g.hi[g.cu[8] + 50]++;
    fault("a row that sees the next token", &b, &g);
    g.hi[g.cu[8] + 50]--;
    for (int t = g.cu[5]; t < T; t++)
        g.pos[t] += g.pos[t] > 20;
    fault("positions that skip one", &b, &g);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

/* ---- the same token in every way ---- */

START_TEST(alone_equals_packed)
{
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome packed;
    kit_text_open(&g, kit_path("%s/golden.safetensors", untied));
    kit_bench_open(&b, kit_path("%s/model", untied), 1);
    kit_packed(&b, &packed, &g);
    for (int d = 0; d < DOCS; d++) {
        int64_t n = g.cu[d + 1] - g.cu[d];
        struct kit_outcome alone = kit_outcome_new(&b, n);
        kit_piece(&b, &alone, &g, d, 0, n, NULL);
        kit_same_rows(kit_path("document %d alone", d), &alone, &packed, &g, d);
        kit_outcome_free(&alone);
    }
    kit_outcome_free(&packed);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

START_TEST(threads_do_not_matter)
{
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome one, many;
    kit_text_open(&g, kit_path("%s/golden.safetensors", tied));
    kit_bench_open(&b, kit_path("%s/model", tied), 1);
    kit_packed(&b, &one, &g);
    kit_bench_close(&b);
    for (int threads = 2; threads <= 3; threads++) {
        kit_bench_open(&b, kit_path("%s/model", tied), threads);
        kit_packed(&b, &many, &g);
        kit_same("hidden", many.aux.data, one.aux.data, tensor_bytes(&one.aux));
        kit_same("logits", many.logits.data, one.logits.data,
                 tensor_bytes(&one.logits));
        kit_outcome_free(&many);
        kit_bench_close(&b);
    }
    kit_outcome_free(&one);
    kit_text_close(&g);
}
END_TEST

/* A second handle of the same weights, on a device of its own. */
START_TEST(shared_weights)
{
    struct kit_text g;
    struct kit_bench b, view;
    struct kit_outcome one, two;
    kit_text_open(&g, kit_path("%s/golden.safetensors", tied));
    kit_bench_open(&b, kit_path("%s/model", tied), 1);
    size_t held = b.dev->held;
    view = b;
    kit_ok(dev_open(&view.dev, "cpu", NULL));
    kit_ok(target_share(&view.target, b.target, view.dev));
    kit_packed(&view, &two, &g);
    kit_bench_close(&view);
    ck_assert_uint_eq(b.dev->held, held);
    kit_packed(&b, &one, &g);
    kit_same("logits", two.logits.data, one.logits.data, tensor_bytes(&one.logits));
    kit_outcome_free(&one);
    kit_outcome_free(&two);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

/* n tokens at once, then one by one; n, then the rest at once; the same after rows that
 * were wrong have been cut off again. */
START_TEST(cached_equals_packed)
{
    static const int64_t first[] = {1, 2, 63, 64, 65, 129};
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome packed, o;
    struct cache c;
    const int d = 8;
    kit_text_open(&g, kit_path("%s/golden.safetensors", untied));
    kit_bench_open(&b, kit_path("%s/model", untied), 1);
    kit_packed(&b, &packed, &g);
    o = kit_outcome_new(&b, T);
    int64_t n = g.cu[d + 1] - g.cu[d];
    kit_cache(&c, &b, n + 5, 0);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        kit_piece(&b, &o, &g, d, 0, first[i], &c);
        for (int64_t t = first[i]; t < n; t++)
            kit_piece(&b, &o, &g, d, t, t + 1, &c);
        kit_same_rows(kit_path("%d, then singly", (int)first[i]), &o, &packed, &g, d);
        cache_cut(&c, first[i]);
        kit_piece(&b, &o, &g, d, first[i], n, &c);
        kit_same_rows(kit_path("%d, then all", (int)first[i]), &o, &packed, &g, d);

        cache_cut(&c, first[i]); /* tokens of another document, rejected */
        int32_t pos[5], lo[5] = {0}, hi[5];
        struct kit_outcome junk = kit_outcome_new(&b, 5);
        for (int k = 0; k < 5; k++) {
            pos[k] = (int32_t)first[i] + k;
            hi[k] = pos[k] + 1;
        }
        kit_pass(&b, &junk, 0, 5, g.ids, pos, lo, hi, &c);
        kit_outcome_free(&junk);
        cache_cut(&c, first[i]);
        kit_piece(&b, &o, &g, d, first[i], n, &c);
        kit_same_rows(kit_path("%d, a rollback, then all", (int)first[i]), &o, &packed,
                      &g, d);
        cache_cut(&c, 0);
    }
    cache_close(&c);
    kit_outcome_free(&o);
    kit_outcome_free(&packed);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

static void check_greedy(const char *dir)
{
    struct kit_text g;
    struct kit_bench b;
    kit_text_open(&g, kit_path("%s/golden.safetensors", dir));
    kit_bench_open(&b, kit_path("%s/model", dir), 1);
    kit_decode(&b, &g);
    kit_bench_close(&b);
    kit_text_close(&g);
}

START_TEST(greedy)
{
    check_greedy(untied);
}
END_TEST

START_TEST(greedy_tied)
{
    check_greedy(tied);
}
END_TEST

/* ---- taps ---- */

/* Stored taps are the residual rounded to bf16 at capture, and a target that was opened
 * up to the last tap gives the same. */
START_TEST(taps_round_once)
{
    static const int64_t tap[] = {0, 2};
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome o;
    kit_text_open(&g, kit_path("%s/golden.safetensors", untied));
    kit_bench_open(&b, kit_path("%s/model", untied), 1);
    kit_packed(&b, &o, &g);
    size_t whole = b.dev->held;
    target_close(b.target);
    kit_ok(target_open(&b.target, b.dev, kit_path("%s/model", untied), 2, false));
    ck_assert_uint_lt(b.dev->held, whole);
    struct tensor aux = kit_tensor_new(DT_BF16, T2(T, 2 * H));
    struct arena work;
    kit_arena(&work, b.dev, target_bytes(b.target, T, 0));
    struct target_pass p = {T, g.ids, g.pos, g.lo, g.hi, NULL, tap, 2, aux, {0}, {0}};
    kit_ok(target_forward(b.target, &p, &work));
    kit_arena_spent(&work);
    int wrong = 0;
    for (int t = 0; t < T; t++)
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < H; i++) {
                float x = ((const float *)o.aux.data)[(t * LAYERS + tap[k]) * H + i];
                uint16_t stored = ((const uint16_t *)aux.data)[(t * 2 + k) * H + i];
                wrong += stored != num_f32_bf16(x);
            }
    ck_assert_int_eq(wrong, 0);
    kit_tensor_free(&aux);
    kit_outcome_free(&o);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

/* ---- refusals ---- */

START_TEST(wrong_rows)
{
    struct kit_bench b;
    struct cache c;
    struct arena work;
    kit_bench_open(&b, kit_path("%s/model", untied), 1);
    kit_cache(&c, &b, 4, 0);
    kit_arena(&work, b.dev, target_bytes(b.target, 3, 0));
    int32_t ids[] = {5, V, -1}, pos[] = {0, 1, 2}, lo[] = {0, 0, 0}, hi[] = {1, 2, 3};
    struct target_pass p = {.rows = 3, .ids = ids, .pos = pos, .lo = lo, .hi = hi};
    kit_fails(target_forward(b.target, &p, &work), E_FORMAT,
              "token 1: id 512 is not in the vocabulary of 512");
    ids[1] = 6;
    kit_fails(target_forward(b.target, &p, &work), E_FORMAT, "token 2: id -1");
    ids[2] = 7;
    pos[2] = 4096;
    kit_fails(target_forward(b.target, &p, &work), E_CONFIG, "position 4096");
    pos[2] = 2;
    p.cache = &c;
    kit_ok(target_forward(b.target, &p, &work)); /* all is well again */
    kit_fails(target_forward(b.target, &p, &work), E_CONFIG, "3 of 4 are used");
    ck_assert_int_eq(c.len, 3);
    arena_close(&work);
    cache_close(&c);
    kit_bench_close(&b);
}
END_TEST

/* A checkpoint in f32 gives the same bits as its bf16 original: panels hold values. */
START_TEST(stored_type_does_not_matter)
{
    struct kit_text g;
    struct kit_bench b, c;
    struct kit_outcome x, y;
    const char *dir = kit_tmp_dir();
    struct st_model m;
    size_t size;
    kit_text_open(&g, kit_path("%s/golden.safetensors", untied));
    kit_ok(st_model_open(&m, kit_path("%s/model", untied)));
    struct kit_tensor *list = mem_zero((size_t)m.entries, sizeof *list);
    for (int64_t i = 0; i < m.entries; i++) {
        const struct st_tensor *t = m.entry[i].tensor;
        const uint8_t *raw = st_data(m.entry[i].file, t);
        float *data = mem_alloc((size_t)st_count(t) * sizeof *data);
        for (int64_t k = 0; k < st_count(t); k++)
            data[k] = num_bf16_f32((uint16_t)(raw[2 * k] | raw[2 * k + 1] << 8));
        list[i] = (struct kit_tensor){m.entry[i].name, ST_F32, t->rank, {0}, data};
        memcpy(list[i].dim, t->dim, sizeof list[i].dim);
    }
    kit_st_write(kit_path("%s/model.safetensors", dir), list, m.entries);
    char *config = kit_read(kit_path("%s/model/config.json", untied), &size);
    kit_write(kit_path("%s/config.json", dir), config, size);
    mem_free(config);
    for (int64_t i = 0; i < m.entries; i++)
        mem_free((void *)list[i].data);
    mem_free(list);
    st_model_close(&m);

    kit_bench_open(&b, kit_path("%s/model", untied), 1);
    kit_bench_open(&c, dir, 1);
    kit_packed(&b, &x, &g);
    kit_packed(&c, &y, &g);
    kit_same("hidden", y.aux.data, x.aux.data, tensor_bytes(&x.aux));
    kit_same("logits", y.logits.data, x.logits.data, tensor_bytes(&x.logits));
    kit_outcome_free(&x);
    kit_outcome_free(&y);
    kit_bench_close(&b);
    kit_bench_close(&c);
    kit_text_close(&g);
}
END_TEST

KIT_MAIN("target", values, values_tied, faults_show, alone_equals_packed,
         threads_do_not_matter, shared_weights, cached_equals_packed, greedy,
         greedy_tied, taps_round_once, wrong_rows, stored_type_does_not_matter)
