/* SPDX-License-Identifier: MIT */
/* kit_target.c - golden texts through targets on the CPU. */
#include "kit_target.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "mem.h"
#include "num.h"
#include "span.h"

void kit_text_open(struct kit_text *g, const char *path)
{
    kit_ok(st_open(&g->file, path));
    g->ids = kit_golden(&g->file, "ids", ST_I32, NULL);
    g->cu = kit_golden(&g->file, "cu", ST_I32, NULL);
    g->argmax = kit_golden(&g->file, "argmax", ST_I32, NULL);
    g->greedy = kit_golden(&g->file, "greedy", ST_I32, NULL);
    g->hidden = kit_golden(&g->file, "hidden", ST_F32, NULL);
    g->logits = kit_golden(&g->file, "logits", ST_F32, NULL);
    g->entries = st_find(&g->file.header, "hidden")->dim[0];
    for (int d = 0; d < KIT_DOCS; d++)
        for (int32_t t = g->cu[d]; t < g->cu[d + 1]; t++)
            g->doc[t] = d;
    span_docs(g->pos, g->lo, g->hi, g->doc, KIT_TOKENS);
}

void kit_text_close(struct kit_text *g)
{
    st_close(&g->file);
}

void kit_bench_open(struct kit_bench *b, const char *model, int threads)
{
    *b = (struct kit_bench){0};
    if (threads > 1)
        kit_ok(par_open(&b->par, threads));
    kit_ok(dev_open(&b->dev, "cpu", b->par));
    kit_ok(target_open(&b->target, b->dev, model, -1, true));
    const struct target_config *c = target_config(b->target);
    b->hidden = c->hidden;
    b->vocab = c->vocab;
    b->layers = c->layers;
}

void kit_bench_close(struct kit_bench *b)
{
    target_close(b->target);
    ck_assert_uint_eq(b->dev->held, 0);
    dev_close(b->dev);
    par_close(b->par);
}

struct kit_outcome kit_outcome_new(const struct kit_bench *b, int64_t rows)
{
    return (struct kit_outcome){
        kit_tensor_new(DT_F32, T2(rows, b->layers * b->hidden)),
        kit_tensor_new(DT_F32, T2(rows, b->hidden)),
        kit_tensor_new(DT_F32, T2(rows, b->vocab)),
    };
}

void kit_outcome_free(struct kit_outcome *o)
{
    kit_tensor_free(&o->aux);
    kit_tensor_free(&o->last);
    kit_tensor_free(&o->logits);
}

/* ---- passes ---- */

void kit_pass(struct kit_bench *b, struct kit_outcome *o, int64_t at, int64_t rows,
              const int32_t *ids, const int32_t *pos, const int32_t *lo,
              const int32_t *hi, struct cache *cache)
{
    int64_t every[CONFIG_TAPS];
    struct arena work;
    for (int64_t l = 0; l < b->layers; l++)
        every[l] = l;
    kit_arena(&work, b->dev, target_bytes(b->target, rows, cache ? cache->window : 0));
    struct target_pass p = {.rows = rows,
                            .ids = ids,
                            .pos = pos,
                            .lo = lo,
                            .hi = hi,
                            .cache = cache,
                            .tap = every,
                            .taps = (int)b->layers,
                            .aux = tensor_rows(o->aux, at, rows),
                            .last = tensor_rows(o->last, at, rows),
                            .logits = tensor_rows(o->logits, at, rows)};
    kit_ok(target_forward(b->target, &p, &work));
    kit_arena_spent(&work);
}

void kit_packed(struct kit_bench *b, struct kit_outcome *o, const struct kit_text *g)
{
    *o = kit_outcome_new(b, KIT_TOKENS);
    kit_pass(b, o, 0, KIT_TOKENS, g->ids, g->pos, g->lo, g->hi, NULL);
}

void kit_piece(struct kit_bench *b, struct kit_outcome *o, const struct kit_text *g,
               int d, int64_t begin, int64_t end, struct cache *cache)
{
    int32_t pos[KIT_TOKENS], lo[KIT_TOKENS], hi[KIT_TOKENS];
    for (int64_t t = begin; t < end; t++) {
        pos[t - begin] = (int32_t)t;
        lo[t - begin] = 0;
        hi[t - begin] = (int32_t)t + 1;
    }
    kit_pass(b, o, begin, end - begin, g->ids + g->cu[d] + begin, pos, lo, hi, cache);
}

void kit_cache(struct cache *c, struct kit_bench *b, int64_t capacity, int64_t window)
{
    struct cache_form f = target_cache_form(b->target, capacity, window);
    kit_ok(cache_open(c, b->dev, &f));
}

/* ---- comparisons ---- */

void kit_same_rows(const char *what, struct kit_outcome *alone,
                   struct kit_outcome *packed, const struct kit_text *g, int d)
{
    struct tensor *const a[] = {&alone->aux, &alone->last, &alone->logits};
    struct tensor *const p[] = {&packed->aux, &packed->last, &packed->logits};
    int64_t n = g->cu[d + 1] - g->cu[d];
    for (int i = 0; i < 3; i++) {
        struct tensor want = tensor_rows(*p[i], g->cu[d], n);
        kit_same(what, a[i]->data, want.data, tensor_bytes(&want));
    }
}

void kit_layer(float *out, const struct kit_bench *b, const struct kit_outcome *o,
               int64_t l)
{
    for (int64_t t = 0; t < KIT_TOKENS; t++)
        memcpy(out + t * b->hidden,
               (const float *)o->aux.data + (t * b->layers + l) * b->hidden,
               (size_t)b->hidden * sizeof *out);
}

int32_t kit_best(const float *logits, int64_t vocab)
{
    int32_t i = 0;
    for (int32_t v = 1; v < vocab; v++)
        if (logits[v] > logits[i])
            i = v;
    return i;
}

static void check_embedding(struct kit_bench *b, const struct kit_text *g, float *got)
{
    struct tensor embed = target_embed(b->target);
    int64_t h = b->hidden;
    for (int64_t i = 0; i < KIT_TOKENS * h; i++)
        got[i] =
            num_bf16_f32(((const uint16_t *)embed.data)[g->ids[i / h] * h + i % h]);
    kit_same("embedding", got, g->hidden, (size_t)(KIT_TOKENS * h) * sizeof *got);
}

static void check_logits(struct kit_bench *b, const struct kit_text *g,
                         const struct kit_outcome *o, double share)
{
    const float *z = o->logits.data;
    int wrong = 0;
    for (int d = 0; d < KIT_DOCS; d++)
        kit_close_max(kit_path("logits of document %d", d),
                      z + (g->cu[d + 1] - 1) * b->vocab, g->logits + d * b->vocab,
                      b->vocab, share);
    for (int t = 0; t < KIT_TOKENS; t++)
        wrong += kit_best(z + t * b->vocab, b->vocab) != g->argmax[t];
    ck_assert_int_eq(wrong, 0);
}

void kit_values(struct kit_bench *b, const struct kit_text *g, double share)
{
    int64_t n = KIT_TOKENS * b->hidden;
    float *got = mem_alloc((size_t)n * sizeof *got);
    struct kit_outcome o;
    kit_packed(b, &o, g);
    if (g->entries > 1)
        check_embedding(b, g, got);
    for (int64_t l = g->entries > 1 ? 0 : b->layers - 1; l < b->layers; l++) {
        kit_layer(got, b, &o, l);
        kit_close_max(kit_path("layer %d", (int)l), got,
                      g->hidden + (l + g->entries - b->layers) * n, n, share);
    }
    kit_same("last", o.last.data, got, (size_t)n * sizeof *got);
    check_logits(b, g, &o, share);
    kit_outcome_free(&o);
    mem_free(got);
}

void kit_decode(struct kit_bench *b, const struct kit_text *g)
{
    struct cache c;
    kit_cache(&c, b, KIT_TOKENS, 0);
    for (int d = 0; d < KIT_DOCS; d++) {
        int32_t n = g->cu[d + 1] - g->cu[d], zero = 0;
        struct kit_outcome o = kit_outcome_new(b, KIT_TOKENS);
        kit_piece(b, &o, g, d, 0, n, &c);
        for (int32_t i = 0; i < KIT_GREEDY; i++) {
            int32_t at = n + i, end = at + 1;
            int32_t token =
                kit_best((const float *)o.logits.data + (at - 1) * b->vocab, b->vocab);
            ck_assert_int_eq(token, g->greedy[d * KIT_GREEDY + i]);
            kit_pass(b, &o, at, 1, &token, &at, &zero, &end, &c);
        }
        cache_cut(&c, 0);
        kit_outcome_free(&o);
    }
    cache_close(&c);
}

void kit_check(const char *model, const char *golden, double share)
{
    struct kit_text g;
    struct kit_bench b;
    kit_text_open(&g, golden);
    kit_bench_open(&b, model, 1);
    printf("%s\n", golden);
    kit_values(&b, &g, share);
    kit_decode(&b, &g);
    kit_bench_close(&b);
    kit_text_close(&g);
}

void kit_check_elsewhere(bool hybrid, double share)
{
    static struct target_config c;
    const char *dir = getenv("GOLDEN");
    glob_t found;
    if (!dir) {
        printf("skip: GOLDEN names no folder of golden targets\n");
        return;
    }
    ck_assert_int_eq(glob(kit_path("%s/*/model", dir), 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *model = found.gl_pathv[i];
        kit_ok(config_target(&c, model));
        if (c.hybrid == hybrid)
            kit_check(model, kit_path("%s/../golden.safetensors", model), share);
    }
    globfree(&found);
}
