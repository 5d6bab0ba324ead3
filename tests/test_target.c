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
#include "kit_model.h"
#include "mem.h"
#include "num.h"
#include "span.h"
#include "target.h"

enum { LAYERS = 4, H = 64, V = 512, DOCS = 9, T = 350, GREEDY = 16 };

static const char *const untied = "tests/golden/target-qwen3";
static const char *const tied = "tests/golden/target-qwen3-tied";
static const double share = 2e-5; // of the largest; the references differ by 2e-6

struct golden {
    struct st_file file;
    const int32_t *ids, *cu, *argmax, *greedy;
    const float *hidden, *logits;
    int32_t doc[T], pos[T], lo[T], hi[T];
};

static void golden_open(struct golden *g, const char *dir)
{
    kit_ok(st_open(&g->file, kit_path("%s/golden.safetensors", dir)));
    g->ids = kit_golden(&g->file, "ids", ST_I32, NULL);
    g->cu = kit_golden(&g->file, "cu", ST_I32, NULL);
    g->argmax = kit_golden(&g->file, "argmax", ST_I32, NULL);
    g->greedy = kit_golden(&g->file, "greedy", ST_I32, NULL);
    g->hidden = kit_golden(&g->file, "hidden", ST_F32, NULL);
    g->logits = kit_golden(&g->file, "logits", ST_F32, NULL);
    for (int d = 0; d < DOCS; d++)
        for (int32_t t = g->cu[d]; t < g->cu[d + 1]; t++)
            g->doc[t] = d;
    span_docs(g->pos, g->lo, g->hi, g->doc, T);
}

/* ---- running ---- */

struct bench {
    struct par *par;
    struct dev *dev;
    struct target *target;
};

static void bench_open(struct bench *b, const char *model, int threads)
{
    *b = (struct bench){0};
    if (threads > 1)
        kit_ok(par_open(&b->par, threads));
    kit_ok(dev_open(&b->dev, "cpu", b->par));
    kit_ok(target_open(&b->target, b->dev, model, -1, true));
}

static void bench_close(struct bench *b)
{
    target_close(b->target);
    ck_assert_uint_eq(b->dev->held, 0);
    dev_close(b->dev);
    par_close(b->par);
}

/* What a pass gives for each row: the residual after every layer, side by side, the
 * last one again, and logits. */
struct outcome {
    struct tensor aux, last, logits;
};

static struct outcome outcome_new(int64_t rows)
{
    return (struct outcome){kit_tensor_new(DT_F32, T2(rows, LAYERS * H)),
                            kit_tensor_new(DT_F32, T2(rows, H)),
                            kit_tensor_new(DT_F32, T2(rows, V))};
}

static void outcome_free(struct outcome *o)
{
    kit_tensor_free(&o->aux);
    kit_tensor_free(&o->last);
    kit_tensor_free(&o->logits);
}

static const int64_t every[LAYERS] = {0, 1, 2, 3};

/* run makes a pass over rows given by host arrays, into rows [at, at + rows) of o. */
static void run(struct bench *b, struct outcome *o, int64_t at, int64_t rows,
                const int32_t *ids, const int32_t *pos, const int32_t *lo,
                const int32_t *hi, struct cache *cache)
{
    struct arena work;
    kit_arena(&work, b->dev, target_bytes(b->target, rows));
    struct target_pass p = {.rows = rows,
                            .ids = ids,
                            .pos = pos,
                            .lo = lo,
                            .hi = hi,
                            .cache = cache,
                            .tap = every,
                            .taps = LAYERS,
                            .aux = tensor_rows(o->aux, at, rows),
                            .last = tensor_rows(o->last, at, rows),
                            .logits = tensor_rows(o->logits, at, rows)};
    kit_ok(target_forward(b->target, &p, &work));
    kit_arena_spent(&work);
}

static void run_packed(struct bench *b, struct outcome *o, const struct golden *g)
{
    *o = outcome_new(T);
    run(b, o, 0, T, g->ids, g->pos, g->lo, g->hi, NULL);
}

/* run_piece appends tokens [begin, end) of document d to a cache. */
static void run_piece(struct bench *b, struct outcome *o, const struct golden *g, int d,
                      int64_t begin, int64_t end, struct cache *cache)
{
    int32_t pos[T], lo[T], hi[T];
    for (int64_t t = begin; t < end; t++) {
        pos[t - begin] = (int32_t)t;
        lo[t - begin] = 0;
        hi[t - begin] = (int32_t)t + 1;
    }
    run(b, o, begin, end - begin, g->ids + g->cu[d] + begin, pos, lo, hi, cache);
}

static void cache_for(struct cache *c, struct bench *b, int64_t capacity)
{
    const struct target_config *t = target_config(b->target);
    kit_ok(cache_open(c, b->dev, t->layers, capacity, t->kv_heads, t->head_dim));
}

/* same_rows demands that document d's rows of `alone` are those of `packed`. */
static void same_rows(const char *what, struct outcome *alone, struct outcome *packed,
                      const struct golden *g, int d)
{
    struct tensor *const a[] = {&alone->aux, &alone->last, &alone->logits};
    struct tensor *const p[] = {&packed->aux, &packed->last, &packed->logits};
    int64_t n = g->cu[d + 1] - g->cu[d];
    for (int i = 0; i < 3; i++) {
        struct tensor want = tensor_rows(*p[i], g->cu[d], n);
        kit_same(what, a[i]->data, want.data, tensor_bytes(&want));
    }
}

/* ---- values ---- */

/* layer_rows copies layer l's part out of aux. */
static void layer_rows(float *out, const struct tensor *aux, int l)
{
    for (int64_t t = 0; t < T; t++)
        memcpy(out + t * H, (const float *)aux->data + (t * LAYERS + l) * H,
               H * sizeof *out);
}

static int32_t best(const float *z)
{
    int32_t i = 0;
    for (int32_t v = 1; v < V; v++)
        if (z[v] > z[i])
            i = v;
    return i;
}

static void check_values(const char *dir)
{
    static float got[T * H];
    struct golden g;
    struct bench b;
    struct outcome o;
    golden_open(&g, dir);
    bench_open(&b, kit_path("%s/model", dir), 1);
    run_packed(&b, &o, &g);
    printf("%s\n", dir);
    struct tensor embed = target_embed(b.target);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < H; i++)
            got[t * H + i] =
                num_bf16_f32(((const uint16_t *)embed.data)[g.ids[t] * H + i]);
    kit_same("embedding", got, g.hidden, sizeof got);
    for (int l = 0; l < LAYERS; l++) {
        layer_rows(got, &o.aux, l);
        kit_close_max(kit_path("layer %d", l), got, g.hidden + (l + 1) * T * H, T * H,
                      share);
    }
    kit_same("last", o.last.data, got, sizeof got);
    for (int d = 0; d < DOCS; d++)
        kit_close_max(kit_path("logits of document %d", d),
                      (const float *)o.logits.data + (g.cu[d + 1] - 1) * V,
                      g.logits + d * V, V, share);
    int wrong = 0;
    for (int t = 0; t < T; t++)
        wrong += best((const float *)o.logits.data + t * V) != g.argmax[t];
    ck_assert_int_eq(wrong, 0);
    outcome_free(&o);
    bench_close(&b);
    st_close(&g.file);
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
static double far(struct outcome *o, const struct golden *g)
{
    static float got[T * H];
    double worst = 0;
    layer_rows(got, &o->aux, LAYERS - 1);
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

static void fault(const char *what, struct bench *b, const struct golden *g)
{
    struct outcome o;
    run_packed(b, &o, g);
    double off = far(&o, g);
    printf("%s: off by %.2g\n", what, off);
    ck_assert_msg(!(off <= share), "%s does not show", what);
    outcome_free(&o);
}

START_TEST(faults_show)
{
    static const char *const config[][3] = {
        {"another theta", "\"rope_theta\": 1000000.0", "\"rope_theta\": 999000.0"},
        {"another epsilon", "1e-06", "2e-05"},
    };
    struct golden g;
    struct bench b;
    golden_open(&g, untied);
    for (int i = 0; i < 2; i++) {
        bench_open(&b, changed_model(config[i][1], config[i][2]), 1);
        fault(config[i][0], &b, &g);
        bench_close(&b);
    }
    bench_open(&b, kit_path("%s/model", untied), 1);
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
    bench_close(&b);
    st_close(&g.file);
}
END_TEST

/* ---- the same token in every way ---- */

START_TEST(alone_equals_packed)
{
    struct golden g;
    struct bench b;
    struct outcome packed;
    golden_open(&g, untied);
    bench_open(&b, kit_path("%s/model", untied), 1);
    run_packed(&b, &packed, &g);
    for (int d = 0; d < DOCS; d++) {
        int64_t n = g.cu[d + 1] - g.cu[d];
        struct outcome alone = outcome_new(n);
        run_piece(&b, &alone, &g, d, 0, n, NULL);
        same_rows(kit_path("document %d alone", d), &alone, &packed, &g, d);
        outcome_free(&alone);
    }
    outcome_free(&packed);
    bench_close(&b);
    st_close(&g.file);
}
END_TEST

START_TEST(threads_do_not_matter)
{
    struct golden g;
    struct bench b;
    struct outcome one, many;
    golden_open(&g, tied);
    bench_open(&b, kit_path("%s/model", tied), 1);
    run_packed(&b, &one, &g);
    bench_close(&b);
    for (int threads = 2; threads <= 3; threads++) {
        bench_open(&b, kit_path("%s/model", tied), threads);
        run_packed(&b, &many, &g);
        kit_same("hidden", many.aux.data, one.aux.data, tensor_bytes(&one.aux));
        kit_same("logits", many.logits.data, one.logits.data,
                 tensor_bytes(&one.logits));
        outcome_free(&many);
        bench_close(&b);
    }
    outcome_free(&one);
    st_close(&g.file);
}
END_TEST

/* A second handle of the same weights, on a device of its own. */
START_TEST(shared_weights)
{
    struct golden g;
    struct bench b, view = {0};
    struct outcome one, two;
    golden_open(&g, tied);
    bench_open(&b, kit_path("%s/model", tied), 1);
    size_t held = b.dev->held;
    kit_ok(dev_open(&view.dev, "cpu", NULL));
    kit_ok(target_share(&view.target, b.target, view.dev));
    run_packed(&view, &two, &g);
    bench_close(&view);
    ck_assert_uint_eq(b.dev->held, held);
    run_packed(&b, &one, &g);
    kit_same("logits", two.logits.data, one.logits.data, tensor_bytes(&one.logits));
    outcome_free(&one);
    outcome_free(&two);
    bench_close(&b);
    st_close(&g.file);
}
END_TEST

/* n tokens at once, then one by one; n, then the rest at once; the same after rows that
 * were wrong have been cut off again. */
START_TEST(cached_equals_packed)
{
    static const int64_t first[] = {1, 2, 63, 64, 65, 129};
    struct golden g;
    struct bench b;
    struct outcome packed, o = outcome_new(T);
    struct cache c;
    const int d = 8;
    golden_open(&g, untied);
    bench_open(&b, kit_path("%s/model", untied), 1);
    run_packed(&b, &packed, &g);
    int64_t n = g.cu[d + 1] - g.cu[d];
    cache_for(&c, &b, n + 5);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        run_piece(&b, &o, &g, d, 0, first[i], &c);
        for (int64_t t = first[i]; t < n; t++)
            run_piece(&b, &o, &g, d, t, t + 1, &c);
        same_rows(kit_path("%d, then singly", (int)first[i]), &o, &packed, &g, d);
        cache_cut(&c, first[i]);
        run_piece(&b, &o, &g, d, first[i], n, &c);
        same_rows(kit_path("%d, then all", (int)first[i]), &o, &packed, &g, d);

        cache_cut(&c, first[i]); /* tokens of another document, rejected */
        int32_t pos[5], lo[5] = {0}, hi[5];
        struct outcome junk = outcome_new(5);
        for (int k = 0; k < 5; k++) {
            pos[k] = (int32_t)first[i] + k;
            hi[k] = pos[k] + 1;
        }
        run(&b, &junk, 0, 5, g.ids, pos, lo, hi, &c);
        outcome_free(&junk);
        cache_cut(&c, first[i]);
        run_piece(&b, &o, &g, d, first[i], n, &c);
        same_rows(kit_path("%d, a rollback, then all", (int)first[i]), &o, &packed, &g,
                  d);
        cache_cut(&c, 0);
    }
    cache_close(&c);
    outcome_free(&o);
    outcome_free(&packed);
    bench_close(&b);
    st_close(&g.file);
}
END_TEST

static void check_greedy(const char *dir)
{
    struct golden g;
    struct bench b;
    struct cache c;
    golden_open(&g, dir);
    bench_open(&b, kit_path("%s/model", dir), 1);
    cache_for(&c, &b, T);
    for (int d = 0; d < DOCS; d++) {
        int32_t n = g.cu[d + 1] - g.cu[d], zero = 0;
        struct outcome o = outcome_new(T);
        run_piece(&b, &o, &g, d, 0, n, &c);
        for (int32_t i = 0; i < GREEDY; i++) {
            int32_t at = n + i, end = at + 1;
            int32_t token = best((const float *)o.logits.data + (at - 1) * V);
            ck_assert_int_eq(token, g.greedy[d * GREEDY + i]);
            run(&b, &o, at, 1, &token, &at, &zero, &end, &c);
        }
        cache_cut(&c, 0);
        outcome_free(&o);
    }
    cache_close(&c);
    bench_close(&b);
    st_close(&g.file);
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
    struct golden g;
    struct bench b;
    struct outcome o;
    golden_open(&g, untied);
    bench_open(&b, kit_path("%s/model", untied), 1);
    run_packed(&b, &o, &g);
    size_t whole = b.dev->held;
    target_close(b.target);
    kit_ok(target_open(&b.target, b.dev, kit_path("%s/model", untied), 2, false));
    ck_assert_uint_lt(b.dev->held, whole);
    struct tensor aux = kit_tensor_new(DT_BF16, T2(T, 2 * H));
    struct arena work;
    kit_arena(&work, b.dev, target_bytes(b.target, T));
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
    outcome_free(&o);
    bench_close(&b);
    st_close(&g.file);
}
END_TEST

/* ---- refusals ---- */

START_TEST(wrong_rows)
{
    struct bench b;
    struct cache c;
    struct arena work;
    bench_open(&b, kit_path("%s/model", untied), 1);
    cache_for(&c, &b, 4);
    kit_arena(&work, b.dev, target_bytes(b.target, 3));
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
    bench_close(&b);
}
END_TEST

/* A checkpoint in f32 gives the same bits as its bf16 original: panels hold values. */
START_TEST(stored_type_does_not_matter)
{
    struct golden g;
    struct bench b, c;
    struct outcome x, y;
    const char *dir = kit_tmp_dir();
    struct st_model m;
    size_t size;
    golden_open(&g, untied);
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

    bench_open(&b, kit_path("%s/model", untied), 1);
    bench_open(&c, dir, 1);
    run_packed(&b, &x, &g);
    run_packed(&c, &y, &g);
    kit_same("hidden", y.aux.data, x.aux.data, tensor_bytes(&x.aux));
    kit_same("logits", y.logits.data, x.logits.data, tensor_bytes(&x.logits));
    outcome_free(&x);
    outcome_free(&y);
    bench_close(&b);
    bench_close(&c);
    st_close(&g.file);
}
END_TEST

KIT_MAIN("target", values, values_tied, faults_show, alone_equals_packed,
         threads_do_not_matter, shared_weights, cached_equals_packed, greedy,
         greedy_tied, taps_round_once, wrong_rows, stored_type_does_not_matter)
