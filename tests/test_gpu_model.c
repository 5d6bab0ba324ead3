/* SPDX-License-Identifier: MIT */
/* test_gpu_model.c - networks on the GPU against PyTorch's values.
 *
 *   test_gpu_model [FOLDER...]      FOLDER: a target, model/ and golden.safetensors;
 *                                   without any, those of tests/golden
 *
 * The drafters and targets of tests/golden/README.md, in f32 (each value within 1e-4 of
 * its tensor's largest) and in bf16 (root mean square of the difference within 2e-2 of
 * the values', a gradient's within 4e-2; each layer is printed).  A next token may
 * differ in bf16 where the two are nearly tied.  Then every target decodes: rows that
 * come one by one, together, or are tried and taken back must agree with the packed
 * ones.  Run from the root of the tree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"
#include "kit_drafter.h"
#include "kit_target.h"
#include "err.h"
#include "mem.h"
#include "num.h"
#include "op.h"

static const double share = 1e-4, near = 2e-2, near_gradient = 4e-2;
/* DeltaNet layers enlarge errors of what they get, most where heads are narrow: f32's
 * grow tenfold in three layers of the small fixtures, and bf16's with them. */
static const double near_hybrid = 3e-2, near_narrow = 6e-2;
static struct dev *gpu;
static struct arena arena;
static const char *const *folder;

/* ---- between host and device ---- */

/* put carves a tensor of `type` with the values of v; of nothing when v is NULL. */
static struct tensor put(enum dtype type, int rank, const int64_t *dim, const float *v)
{
    struct tensor t = arena_tensor(&arena, type, rank, dim);
    int64_t n = tensor_count(&t);
    uint16_t *half = mem_alloc((size_t)n * sizeof *half);
    for (int64_t i = 0; v && i < n; i++)
        half[i] = num_f32_bf16(v[i]);
    if (v)
        kit_ok(dev_put(gpu, t.data, type == DT_BF16 ? (const void *)half : v,
                       tensor_bytes(&t)));
    mem_free(half);
    return t;
}

static struct tensor put_as(enum dtype type, struct tensor host)
{
    return put(type, host.rank, host.dim, host.data);
}

/* get gives a device tensor's values, freed by mem_free. */
static float *get(struct tensor t)
{
    int64_t n = tensor_count(&t);
    float *v = mem_alloc((size_t)n * sizeof *v);
    uint16_t *half = mem_alloc((size_t)n * sizeof *half);
    kit_ok(
        dev_get(gpu, t.type == DT_BF16 ? (void *)half : v, t.data, tensor_bytes(&t)));
    for (int64_t i = 0; t.type == DT_BF16 && i < n; i++)
        v[i] = num_bf16_f32(half[i]);
    mem_free(half);
    return v;
}

static void compare(const char *what, const float *got, const float *want, int64_t n,
                    double limit)
{
    struct kit_diff d = kit_diff_f32(got, want, n, 1, 0);
    bool exact = gpu->act == DT_F32;
    double off = exact ? d.worst / d.largest : sqrt(d.nse);
    limit = exact ? share : limit;
    printf("  %-34s %.1e of %.0e\n", what, off, limit);
    ck_assert_msg(off <= limit, "%s is off by %g", what, off);
}

static void begin(enum dtype act, const char *what)
{
    gpu->act = act;
    printf("%s, %s\n", what, dtype_name(act));
    kit_ok(arena_open(&arena, gpu, "test", (size_t)256 << 20));
}

static void end(void)
{
    arena_close(&arena);
}

/* ---- drafters ---- */

static void load(struct drafter *m, const struct kit_fixture *f)
{
    enum dtype act = gpu->act;
    kit_ok(
        drafter_new(m, gpu, &f->m.config, put_as(act, f->embed), put_as(act, f->head)));
    for (int64_t i = 0; i < m->table.params; i++) {
        struct tensor to = param_view(&m->table, i, m->flat);
        struct tensor from = put_as(act, param_view(&f->m.table, i, f->m.flat));
        op_convert(gpu, to, from);
    }
    kit_ok(dev_sync(gpu));
}

static void check_gradients(const struct drafter *m, const struct kit_fixture *f,
                            struct tensor grads, double weight)
{
    float *g = get(grads);
    for (int64_t i = 0; i < m->table.params; i++) {
        const struct param *p = &m->table.param[i];
        struct tensor at = param_view(&m->table, i, grads);
        float *mine = g + ((const float *)at.data - (const float *)grads.data);
        int64_t n = tensor_count(&at);
        for (int64_t k = 0; k < n; k++)
            mine[k] = (float)((double)mine[k] / weight);
        compare(p->name, mine,
                kit_golden(&f->file, kit_path("g.%s", p->name), ST_F32, NULL), n,
                near_gradient);
    }
    mem_free(g);
}

static void check_drafter(enum dtype act, const char *name)
{
    struct kit_fixture f;
    struct kit_task t;
    struct drafter m;
    struct arena work;
    kit_fixture_open(&f, name, 1);
    kit_task_make(&t, &f);
    begin(act, name);
    load(&m, &f);
    int64_t rows = t.blocks * m.config.block;
    struct drafter_row r = {.aux = put_as(act, t.aux),
                            .context = t.context,
                            .pos = t.pos,
                            .blocks = t.blocks,
                            .id = t.id,
                            .at = t.at,
                            .lo = t.lo,
                            .slide = t.slide,
                            .hi = t.hi,
                            .labelled = t.labelled,
                            .row = t.row,
                            .label = t.label,
                            .weight = t.weight};
    struct drafter_result result = {0};
    struct tensor hidden = put(act, T2(rows, m.config.hidden), NULL);
    struct tensor grads = put(DT_F32, T1(m.table.count), NULL);
    op_fill(gpu, grads, 0);
    kit_ok(arena_open(&work, gpu, "work",
                      drafter_bytes(&m, t.context, rows, t.labelled, true)));
    kit_ok(drafter_step(&m, &r, grads, hidden, &result, &work));
    kit_ok(dev_sync(gpu));
    float *h = get(hidden), loss = (float)(result.loss / result.weight);
    compare("states", h, kit_golden(&f.file, "out.hidden", ST_F32, NULL),
            tensor_count(&hidden), near);
    compare("loss", &loss, kit_golden(&f.file, "out.loss", ST_F32, NULL), 1, near);
    check_gradients(&m, &f, grads, result.weight);
    mem_free(h);
    arena_close(&work);
    drafter_drop(&m);
    end();
    kit_fixture_close(&f);
}

static void check_drafters(enum dtype act)
{
    static const char *const names[] = {"full", "sliding", "sliding-bidirectional",
                                        "wide"};
    for (int i = 0; i < 4 && !folder[0]; i++)
        check_drafter(act, names[i]);
}

START_TEST(drafters_f32)
{
    check_drafters(DT_F32);
}
END_TEST

START_TEST(drafters_bf16)
{
    check_drafters(DT_BF16);
}
END_TEST

/* ---- targets ---- */

/* limit_of is the limit of what has been through all layers. */
static double limit_of(const struct target_config *c)
{
    return !c->hybrid ? near : c->delta.k_dim < 128 ? near_narrow : near_hybrid;
}

/* check_layers: aux holds every layer's states side by side. */
static void check_layers(const struct kit_text *g, const float *aux,
                         const struct target_config *c)
{
    int64_t layers = c->layers, hidden = c->hidden;
    double limit = limit_of(c) == near_narrow ? near_narrow : near;
    float *mine = mem_alloc((size_t)(KIT_TOKENS * hidden) * sizeof *mine);
    for (int64_t l = g->entries > 1 ? 0 : layers - 1; l < layers; l++) {
        const float *want = g->hidden;
        if (g->entries > 1)
            want += (l + 1) * KIT_TOKENS * hidden;
        for (int64_t t = 0; t < KIT_TOKENS; t++)
            for (int64_t i = 0; i < hidden; i++)
                mine[t * hidden + i] = aux[(t * layers + l) * hidden + i];
        compare(kit_path("layer %d", (int)l), mine, want, KIT_TOKENS * hidden, limit);
    }
    mem_free(mine);
}

/* check_tokens: the next token after each document, unless two are nearly tied. */
static void check_tokens(const struct kit_text *g, const float *logits,
                         const struct target_config *c)
{
    int64_t vocab = c->vocab;
    double tie = gpu->act == DT_F32 ? 0 : near;
    for (int d = 0; d < KIT_DOCS; d++) {
        const float *want = g->logits + d * vocab;
        const float *got = logits + (int64_t)(g->cu[d + 1] - 1) * vocab;
        int32_t mine = kit_best(got, vocab), best = kit_best(want, vocab);
        compare(kit_path("logits %d", d), got, want, vocab, limit_of(c));
        ck_assert_msg((double)(want[best] - want[mine]) <=
                          tie * fabs((double)want[best]),
                      "document %d: token %d, not %d", d, mine, best);
    }
}

enum { LAST = KIT_DOCS - 1, TRIED = 16 }; // the longest document; rows of a round

/* append runs n rows behind the cache: `right` of the last document, then others.
 * Every layer's states of the former go to `aux`. */
static void append(struct target *target, const struct kit_text *g, struct cache *c,
                   struct tensor aux, int64_t n, int64_t right)
{
    int64_t every[CONFIG_TAPS], at = c->len;
    int32_t ids[KIT_TOKENS], pos[KIT_TOKENS], lo[KIT_TOKENS] = {0}, hi[KIT_TOKENS];
    const struct target_config *t = target_config(target);
    struct arena work;
    for (int64_t l = 0; l < t->layers; l++)
        every[l] = l;
    for (int64_t i = 0; i < n; i++) {
        ids[i] = i < right ? g->ids[g->cu[LAST] + at + i] : (int32_t)(i * 7 % t->vocab);
        pos[i] = (int32_t)(at + i);
        hi[i] = pos[i] + 1;
    }
    size_t used = arena.used;
    struct tensor out = arena_tensor(&arena, aux.type, T2(n, aux.dim[1]));
    struct target_pass p = {.rows = n,
                            .ids = ids,
                            .pos = pos,
                            .lo = lo,
                            .hi = hi,
                            .cache = c,
                            .tap = every,
                            .taps = (int)t->layers,
                            .aux = out};
    kit_ok(arena_open(&work, gpu, "work", target_bytes(target, n, c->window)));
    kit_ok(target_forward(target, &p, &work));
    op_convert(gpu, tensor_rows(aux, at, right), tensor_rows(out, 0, right));
    kit_ok(dev_sync(gpu));
    arena_close(&work);
    arena_reset(&arena, used);
    cache_cut(c, at + right);
}

/* check_decoding: a prompt, rows one by one, then rounds of which some rows are kept;
 * `packed` has the states of all documents. */
static void check_decoding(struct target *target, const struct kit_text *g,
                           const float *packed)
{
    const struct target_config *t = target_config(target);
    int64_t n = g->cu[LAST + 1] - g->cu[LAST], width = t->layers * t->hidden;
    struct cache_form f = target_cache_form(target, n + TRIED, TRIED);
    struct cache c;
    struct tensor aux = put(gpu->act, T2(n, width), NULL);
    kit_ok(cache_open(&c, gpu, &f));
    append(target, g, &c, aux, 100, 100);
    while (c.len < 104)
        append(target, g, &c, aux, 1, 1);
    for (int64_t right = 0; c.len < n; right = (right + 5) % TRIED)
        append(target, g, &c, aux, TRIED, right < n - c.len ? right : n - c.len);
    float *mine = get(aux);
    compare("decoded", mine, packed + g->cu[LAST] * width, n * width, limit_of(t));
    mem_free(mine);
    cache_close(&c);
}

static void check_target(enum dtype act, const char *dir)
{
    struct kit_text g;
    struct target *target;
    struct arena work;
    int64_t every[CONFIG_TAPS];
    begin(act, dir);
    kit_text_open(&g, kit_path("%s/golden.safetensors", dir));
    kit_ok(target_open(&target, gpu, kit_path("%s/model", dir), -1, true));
    const struct target_config *c = target_config(target);
    for (int64_t l = 0; l < c->layers; l++)
        every[l] = l;
    struct target_pass p = {.rows = KIT_TOKENS,
                            .ids = g.ids,
                            .pos = g.pos,
                            .lo = g.lo,
                            .hi = g.hi,
                            .tap = every,
                            .taps = (int)c->layers,
                            .aux =
                                put(act, T2(KIT_TOKENS, c->layers * c->hidden), NULL),
                            .logits = put(act, T2(KIT_TOKENS, c->vocab), NULL)};
    kit_ok(arena_open(&work, gpu, "work", target_bytes(target, p.rows, 0)));
    kit_ok(target_forward(target, &p, &work));
    kit_ok(dev_sync(gpu));
    float *aux = get(p.aux), *logits = get(p.logits);
    check_layers(&g, aux, c);
    check_tokens(&g, logits, c);
    check_decoding(target, &g, aux);
    mem_free(aux);
    mem_free(logits);
    arena_close(&work);
    target_close(target);
    kit_text_close(&g);
    end();
}

static void check_targets(enum dtype act)
{
    static const char *const ours[] = {"tests/golden/target-qwen3",
                                       "tests/golden/target-qwen3-tied",
                                       "tests/golden/target-qwen2",
                                       "tests/golden/target-llama",
                                       "tests/golden/target-qwen3_5",
                                       "tests/golden/target-hybrid-1",
                                       "tests/golden/target-hybrid-3",
                                       "tests/golden/target-hybrid-wide",
                                       NULL};
    for (const char *const *dir = folder[0] ? folder : ours; *dir; dir++)
        check_target(act, *dir);
}

START_TEST(targets_f32)
{
    check_targets(DT_F32);
}
END_TEST

START_TEST(targets_bf16)
{
    check_targets(DT_BF16);
}
END_TEST

int main(int argc, char **argv)
{
    struct par *par;
    (void)argc;
    folder = (const char *const *)argv + 1;
    if (par_open(&par, 0) < 0)
        return 1;
    if (dev_open(&gpu, "cuda", par) < 0) {
        printf("skip: %s\n", err_text());
        par_close(par);
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("CK_FORK", "no", 1); // a CUDA context does not survive a fork
    int rc = kit_run(kit_suite(
        "gpu_model", (const TTest *const[]){drafters_f32, drafters_bf16, targets_f32,
                                            targets_bf16, NULL}));
    dev_close(gpu);
    par_close(par);
    return rc;
}
