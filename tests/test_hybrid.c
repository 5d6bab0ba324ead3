/* SPDX-License-Identifier: MIT */
/* test_hybrid.c - Qwen3.5 targets: Gated DeltaNet and gated attention on the CPU.
 *
 * Values come from transformers and from an f64 reference (tests/golden/README.md),
 * within 1e-4 of each tensor's largest; our own ways of running the same token agree in
 * every bit.  With GOLDEN=DIR in the environment, DIR/target-qwen3_5* are tested, too.
 */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kit.h"
#include "kit_target.h"
#include "mem.h"
#include "rng.h"
#include "span.h"

#define FLAT "tests/golden/target-qwen3_5/model"

/* One, two and three value heads to a key head, of which there are two. */
static const char *const grouped[] = {"tests/golden/target-hybrid-1",
                                      "tests/golden/target-qwen3_5",
                                      "tests/golden/target-hybrid-3"};

static const double share = 1e-4;

static void check(const char *model, const char *golden)
{
    kit_check(model, golden, share);
}

START_TEST(flat)
{
    check(FLAT, "tests/golden/target-qwen3_5/golden.safetensors");
}
END_TEST

START_TEST(multimodal)
{
    check("tests/golden/target-qwen3_5-multimodal/model",
          "tests/golden/target-qwen3_5-multimodal/golden.safetensors");
}
END_TEST

/* edited copies the flat model; of text files, what `each` makes of them. */
static const char *edited(char *(*each)(const char *name, char *text))
{
    const char *dir = kit_tmp_dir();
    char **names;
    int64_t n;
    size_t size;
    kit_ok(file_list(FLAT, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        char *data = kit_read(kit_path(FLAT "/%s", names[i]), &size);
        if (strstr(names[i], ".json")) {
            data = each(names[i], data);
            size = strlen(data);
        }
        kit_write(kit_path("%s/%s", dir, names[i]), data, size);
        mem_free(data);
    }
    file_list_free(names, n);
    return dir;
}

/* The tied model is the flat one without its head: an index names what exists. */
static char *tie(const char *name, char *text)
{
    size_t size;
    if (strcmp(name, "config.json") == 0) {
        mem_free(text);
        return kit_read("tests/golden/target-qwen3_5-tied/config.json", &size);
    }
    char *at = strstr(text, "\"lm_head.weight\""), *end = strchr(at, '\n') + 1;
    memmove(at, end, strlen(end) + 1);
    return text;
}

START_TEST(tied)
{
    check(edited(tie), "tests/golden/target-qwen3_5-tied/golden.safetensors");
}
END_TEST

/* Names of converted checkpoints, f32 among the bf16, one and three heads a group. */
START_TEST(groups)
{
    for (int i = 0; i < 3; i += 2)
        check(kit_path("%s/model", grouped[i]),
              kit_path("%s/golden.safetensors", grouped[i]));
}
END_TEST

/* Heads as wide as those of published models. */
START_TEST(wide)
{
    check("tests/golden/target-hybrid-wide/model",
          "tests/golden/target-hybrid-wide/golden.safetensors");
}
END_TEST

START_TEST(golden_elsewhere)
{
    kit_check_elsewhere(true, share);
}
END_TEST

/* ---- the same token in every way ---- */

/* Lengths at the edges of the convolution, of tiles and of chunks. */
static const int64_t length[] = {1, 2, 3, 4, 63, 64, 65, 127, 128, 129};
enum { EDGES = sizeof length / sizeof *length, EDGE_ROWS = 586 };

struct row {
    int32_t ids[EDGE_ROWS], doc[EDGE_ROWS], pos[EDGE_ROWS], lo[EDGE_ROWS],
        hi[EDGE_ROWS];
};

/* make_row packs documents of all lengths, of random tokens or of one repeated. */
static void make_row(struct row *r, int64_t vocab, bool repeated)
{
    struct rng rng = rng_new(rng_key((const uint64_t[]){5, 8}, 2));
    int64_t at = 0;
    for (int d = 0; d < EDGES; d++)
        for (int64_t i = 0; i < length[d]; i++, at++) {
            r->doc[at] = d;
            r->ids[at] = repeated ? 7 : (int32_t)rng_below(&rng, (uint64_t)vocab);
        }
    ck_assert_int_eq(at, EDGE_ROWS);
    span_docs(r->pos, r->lo, r->hi, r->doc, EDGE_ROWS);
}

static void compare_alone(struct kit_bench *b, const struct row *r, const char *what)
{
    struct kit_outcome packed = kit_outcome_new(b, EDGE_ROWS);
    int64_t at = 0;
    kit_pass(b, &packed, 0, EDGE_ROWS, r->ids, r->pos, r->lo, r->hi, NULL);
    for (int d = 0; d < EDGES; at += length[d++]) {
        int64_t n = length[d];
        struct kit_outcome alone = kit_outcome_new(b, n);
        int32_t pos[EDGE_ROWS], lo[EDGE_ROWS], hi[EDGE_ROWS];
        span_docs(pos, lo, hi, r->doc + at, n);
        kit_pass(b, &alone, 0, n, r->ids + at, pos, lo, hi, NULL);
        struct tensor aux = tensor_rows(packed.aux, at, n);
        struct tensor logits = tensor_rows(packed.logits, at, n);
        kit_same(what, alone.aux.data, aux.data, tensor_bytes(&aux));
        kit_same(what, alone.logits.data, logits.data, tensor_bytes(&logits));
        kit_outcome_free(&alone);
    }
    kit_outcome_free(&packed);
}

START_TEST(alone_equals_packed)
{
    static struct row r;
    for (int i = 0; i < 4; i++) {
        struct kit_bench b;
        const char *model = i < 3 ? grouped[i] : "tests/golden/target-qwen3";
        kit_bench_open(&b, kit_path("%s/model", model), 1);
        for (int repeated = 0; repeated < 2; repeated++) {
            make_row(&r, b.vocab, repeated);
            compare_alone(&b, &r, model);
        }
        kit_bench_close(&b);
    }
}
END_TEST

START_TEST(threads_do_not_matter)
{
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome one, many;
    kit_text_open(&g, "tests/golden/target-qwen3_5/golden.safetensors");
    kit_bench_open(&b, FLAT, 1);
    kit_packed(&b, &one, &g);
    kit_bench_close(&b);
    kit_bench_open(&b, FLAT, 3);
    kit_packed(&b, &many, &g);
    kit_same("hidden", many.aux.data, one.aux.data, tensor_bytes(&one.aux));
    kit_same("logits", many.logits.data, one.logits.data, tensor_bytes(&one.logits));
    kit_outcome_free(&many);
    kit_outcome_free(&one);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

/* ---- decoding and rollback ---- */

enum { WINDOW = 5, DOC = 8 }; /* the longest document */

/* A sequence that grows: the golden document, its packed outcome, and what a cache
 * gives for the same tokens. */
struct growth {
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome packed, grown;
    struct cache c;
    int64_t n;
};

static void growth_open(struct growth *w, const char *dir)
{
    kit_text_open(&w->g, kit_path("%s/golden.safetensors", dir));
    kit_bench_open(&w->b, kit_path("%s/model", dir), 1);
    kit_packed(&w->b, &w->packed, &w->g);
    w->grown = kit_outcome_new(&w->b, KIT_TOKENS);
    w->n = w->g.cu[DOC + 1] - w->g.cu[DOC];
    kit_cache(&w->c, &w->b, w->n + WINDOW, WINDOW);
}

static void growth_close(struct growth *w)
{
    cache_close(&w->c);
    kit_outcome_free(&w->grown);
    kit_outcome_free(&w->packed);
    kit_bench_close(&w->b);
    kit_text_close(&w->g);
}

/* grow appends tokens [begin, end) of the document. */
static void grow(struct growth *w, int64_t begin, int64_t end)
{
    kit_piece(&w->b, &w->grown, &w->g, DOC, begin, end, &w->c);
}

/* agree compares all rows with the packed ones, and forgets the sequence. */
static void agree(struct growth *w, const char *how, int64_t first)
{
    ck_assert_int_eq(w->c.len, w->n);
    kit_same_rows(kit_path("%d, then %s", (int)first, how), &w->grown, &w->packed,
                  &w->g, DOC);
    cache_cut(&w->c, 0);
}

/* reject appends `right` tokens of the document and `wrong` others, which are cut off.
 */
static void reject(struct growth *w, int64_t right, int64_t wrong)
{
    int64_t at = w->c.len, n = right + wrong;
    int32_t ids[WINDOW + 1], pos[WINDOW + 1], lo[WINDOW + 1] = {0}, hi[WINDOW + 1];
    struct kit_outcome o = kit_outcome_new(&w->b, n);
    for (int64_t i = 0; i < n; i++) {
        int32_t id = w->g.ids[w->g.cu[DOC] + (at + i) % w->n];
        ids[i] = i < right ? id : (id + 11) % (int32_t)w->b.vocab;
        pos[i] = (int32_t)(at + i);
        hi[i] = pos[i] + 1;
    }
    kit_pass(&w->b, &o, 0, n, ids, pos, lo, hi, &w->c);
    cache_cut(&w->c, at + right);
    const struct tensor from[] = {o.aux, o.last, o.logits};
    const struct tensor to[] = {w->grown.aux, w->grown.last, w->grown.logits};
    for (int i = 0; i < 3 && right > 0; i++) {
        struct tensor rows = tensor_rows(to[i], at, right);
        memcpy(rows.data, from[i].data, tensor_bytes(&rows));
    }
    kit_outcome_free(&o);
}

/* A prompt, then rounds as draft-eval has them: some right, the others taken back, from
 * none of them (a round that is dropped whole) to all but the first. */
static void grow_with_rejections(struct growth *w, int64_t first)
{
    struct rng rng = rng_new(rng_key((const uint64_t[]){3, (uint64_t)first}, 2));
    grow(w, 0, first);
    while (w->c.len < w->n) {
        int64_t left = w->n - w->c.len, right = (int64_t)rng_below(&rng, WINDOW + 1);
        int64_t wrong = (int64_t)rng_below(&rng, WINDOW + 1);
        right = right < left ? right : left;
        if (right + wrong > WINDOW + (right > 0))
            wrong = WINDOW + (right > 0) - right;
        if (right + wrong > 0)
            reject(w, right, wrong);
    }
}

START_TEST(cached_equals_packed)
{
    static const int64_t first[] = {1, 2, 3, 63, 64, 65, 129};
    static const char *const model[] = {
        "tests/golden/target-hybrid-1", "tests/golden/target-qwen3_5",
        "tests/golden/target-hybrid-3", "tests/golden/target-qwen3"};
    for (int m = 0; m < 4; m++) {
        struct growth w;
        growth_open(&w, model[m]);
        for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
            grow(&w, 0, first[i]);
            for (int64_t t = first[i]; t < w.n; t++)
                grow(&w, t, t + 1);
            agree(&w, "singly", first[i]);
            grow(&w, 0, first[i]);
            grow(&w, first[i], w.n);
            agree(&w, "all", first[i]);
            grow_with_rejections(&w, first[i]);
            agree(&w, "with rejections", first[i]);
        }
        growth_close(&w);
    }
}
END_TEST

/* ---- refusals ---- */

static char *rename_norm(const char *name, char *text)
{
    char *at = strstr(text, "linear_attn.norm.weight");
    if (at && strcmp(name, "config.json") != 0)
        memcpy(at, "linear_attn.nurm.weight", strlen("linear_attn.nurm.weight"));
    return text;
}

/* retyped is a model in one file that says it is quantised, with one tensor, and a
 * scale for it, in e4m3. */
static const char *retyped(const char *from, const char *tensor)
{
    static const float junk[1 << 14];
    const char *dir = kit_tmp_dir();
    struct st_model m;
    size_t size;
    int64_t n = 0;
    kit_ok(st_model_open(&m, from));
    struct kit_tensor *list = mem_zero((size_t)m.entries + 1, sizeof *list);
    list[n++] =
        (struct kit_tensor){kit_path("%s_scale_inv", tensor), ST_F32, 2, {1, 1}, junk};
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < m.entries; i++) {
            const struct st_tensor *t = m.entry[i].tensor;
            bool hit = strcmp(t->name, tensor) == 0;
            if (hit != (pass == 1))
                continue;
            list[n] = (struct kit_tensor){t->name,
                                          hit ? ST_F8_E4M3 : t->type,
                                          t->rank,
                                          {0},
                                          hit ? junk : st_data(m.entry[i].file, t)};
            memcpy(list[n++].dim, t->dim, sizeof t->dim);
        }
    kit_st_write(kit_path("%s/model.safetensors", dir), list, n);
    char *text = kit_read(kit_path("%s/config.json", from), &size);
    kit_write_text(kit_path("%s/config.json", dir),
                   kit_path("{\"quantization_config\": {\"quant_method\": \"fp8\", "
                            "\"weight_block_size\": [128, 128]}, %s",
                            text + 1));
    mem_free(text);
    mem_free(list);
    st_model_close(&m);
    return dir;
}

/* Matrices may be e4m3; convolutions and norms are read element by element and may not.
 */
START_TEST(only_matrices_are_quantised)
{
    static const char from[] = "tests/golden/target-hybrid-3/model";
    struct dev *d;
    struct target *t;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_ok(target_open(&t, d, retyped(from, "model.layers.0.mlp.up_proj.weight"), -1,
                       true));
    target_close(t);
    kit_fails(target_open(&t, d,
                          retyped(from, "model.layers.0.linear_attn.conv1d.weight"), -1,
                          true),
              E_CONFIG, "conv1d.weight is F8_E4M3, supported are");
    kit_fails(target_open(&t, d,
                          retyped(from, "model.layers.1.self_attn.q_norm.weight"), -1,
                          true),
              E_CONFIG, "q_norm.weight is F8_E4M3");
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
}
END_TEST

START_TEST(wrong_checkpoints)
{
    struct dev *d;
    struct target *t;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_fails(target_open(&t, d, edited(rename_norm), -1, true), E_FORMAT,
              "linear_attn.nurm.weight is promised");
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
}
END_TEST

KIT_MAIN("hybrid", flat, multimodal, tied, groups, wide, golden_elsewhere,
         alone_equals_packed, threads_do_not_matter, cached_equals_packed,
         only_matrices_are_quantised, wrong_checkpoints)
