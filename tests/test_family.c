/* SPDX-License-Identifier: MIT */
/* test_family.c - dense families beside Qwen3, and how checkpoints may be stored.
 *
 * Values come from transformers (tests/golden/README.md).  With GOLDEN=DIR in the
 * environment, every folder DIR/target-NAME/{model,golden.safetensors} of a dense
 * family is tested too. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "kit.h"
#include "kit_target.h"
#include "mem.h"
#include "num.h"

static const double share = 2e-5; // of the largest; the references differ by 2e-6

static void check(const char *model, const char *golden)
{
    kit_check(model, golden, share);
}

START_TEST(llama)
{
    check("tests/golden/target-llama/model",
          "tests/golden/target-llama/golden.safetensors");
}
END_TEST

START_TEST(qwen2)
{
    check("tests/golden/target-qwen2/model",
          "tests/golden/target-qwen2/golden.safetensors");
}
END_TEST

/* with_config is a folder of `model`'s weights and another config.json. */
static const char *with_config(const char *model, const char *config)
{
    const char *dir = kit_tmp_dir();
    char **names;
    int64_t n;
    size_t size;
    kit_ok(file_list(model, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        bool is_config = strcmp(names[i], "config.json") == 0;
        char *data =
            kit_read(is_config ? config : kit_path("%s/%s", model, names[i]), &size);
        kit_write(kit_path("%s/%s", dir, names[i]), data, size);
        mem_free(data);
    }
    file_list_free(names, n);
    return dir;
}

/* The same weights with slowed frequencies; without them the values are far off. */
START_TEST(llama3)
{
    const char *golden = "tests/golden/target-llama3/golden.safetensors";
    const char *plain = "tests/golden/target-llama/model";
    struct kit_text g;
    struct kit_bench b;
    struct kit_outcome o;
    check(with_config(plain, "tests/golden/target-llama3/config.json"), golden);
    kit_text_open(&g, golden);
    kit_bench_open(&b, plain, 1);
    kit_packed(&b, &o, &g);
    struct kit_diff far =
        kit_diff_f32(o.last.data, g.hidden, KIT_TOKENS * b.hidden, 1, 0);
    ck_assert_double_gt(far.worst, 100 * share * far.largest);
    kit_outcome_free(&o);
    kit_bench_close(&b);
    kit_text_close(&g);
}
END_TEST

START_TEST(golden_elsewhere)
{
    kit_check_elsewhere(false, share);
}
END_TEST

/* ---- fp8 ---- */

enum { BLOCK = 128 };

/* A copy of the untied Qwen3 model in one file: quantised by blocks, or with the same
 * values in bf16. */
struct quantised {
    struct kit_tensor list[256];
    int64_t n;
    bool fp8;
};

static void *keep(struct quantised *q, const char *name, enum st_type type, int rank,
                  const int64_t *dim, size_t bytes)
{
    struct kit_tensor *t = &q->list[q->n++];
    void *data = mem_zero(bytes, 1);
    *t = (struct kit_tensor){mem_text(name), type, rank, {0}, data};
    memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    return data;
}

static float largest(const uint16_t *w, const int64_t *dim, int64_t r0, int64_t c0)
{
    float top = 0;
    for (int64_t r = r0; r < dim[0] && r < r0 + BLOCK; r++)
        for (int64_t c = c0; c < dim[1] && c < c0 + BLOCK; c++)
            top = fmaxf(top, fabsf(num_bf16_f32(w[r * dim[1] + c])));
    return top;
}

static void add_matrix(struct quantised *q, const char *name, const int64_t *dim,
                       const uint16_t *w)
{
    int64_t rows = (dim[0] + BLOCK - 1) / BLOCK, cols = (dim[1] + BLOCK - 1) / BLOCK;
    size_t n = (size_t)(dim[0] * dim[1]);
    uint8_t *low = NULL;
    uint16_t *same = NULL;
    float *scale = mem_alloc((size_t)(rows * cols) * sizeof *scale);
    if (q->fp8)
        low = keep(q, name, ST_F8_E4M3, 2, dim, n);
    else
        same = keep(q, name, ST_BF16, 2, dim, n * 2);
    for (int64_t i = 0; i < rows * cols; i++)
        scale[i] = largest(w, dim, i / cols * BLOCK, i % cols * BLOCK) / 448;
    for (int64_t i = 0; i < dim[0] * dim[1]; i++) {
        int64_t r = i / dim[1], c = i % dim[1];
        float s = scale[r / BLOCK * cols + c / BLOCK];
        uint8_t e = num_f32_e4m3(num_bf16_f32(w[i]) / s);
        if (low)
            low[i] = e;
        else
            same[i] = num_f32_bf16(num_e4m3_f32(e) * s);
    }
    if (q->fp8)
        memcpy(keep(q, kit_path("%s_scale_inv", name), ST_F32, 2,
                    (const int64_t[]){rows, cols}, (size_t)(rows * cols) * 4),
               scale, (size_t)(rows * cols) * 4);
    mem_free(scale);
}

static const char fp8_config[] =
    "\"quantization_config\": {\"activation_scheme\": \"dynamic\", \"fmt\": \"e4m3\", "
    "\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}, ";

static void write_config(const char *dir, const char *extra)
{
    size_t size;
    char *text = kit_read("tests/golden/target-qwen3/model/config.json", &size);
    kit_write_text(kit_path("%s/config.json", dir), kit_path("{%s%s", extra, text + 1));
    mem_free(text);
}

/* quantise writes the copy, without tensor `drop` unless NULL, and returns the folder.
 */
static const char *quantise(bool fp8, const char *drop)
{
    const char *dir = kit_tmp_dir();
    struct quantised *q = mem_zero(1, sizeof *q);
    struct st_model m;
    q->fp8 = fp8;
    kit_ok(st_model_open(&m, "tests/golden/target-qwen3/model"));
    for (int64_t i = 0; i < m.entries; i++) {
        const struct st_tensor *t = m.entry[i].tensor;
        const void *data = st_data(m.entry[i].file, t);
        if (t->rank == 2 && strstr(t->name, "_proj."))
            add_matrix(q, t->name, t->dim, data);
        else
            memcpy(keep(q, t->name, t->type, t->rank, t->dim, t->end - t->begin), data,
                   t->end - t->begin);
    }
    /* Widest types first, so that each begins at a multiple of its size. */
    struct kit_tensor *sorted = mem_zero((size_t)q->n, sizeof *sorted);
    int64_t n = 0;
    for (size_t size = 4; size > 0; size /= 2)
        for (int64_t i = 0; i < q->n; i++) {
            const struct kit_tensor *t = &q->list[i];
            bool dropped = drop && strcmp(t->name, drop) == 0;
            if (st_type_size(t->type) == size && !dropped)
                sorted[n++] = *t;
        }
    kit_st_write(kit_path("%s/model.safetensors", dir), sorted, n);
    write_config(dir, fp8 ? fp8_config : "");
    st_model_close(&m);
    for (int64_t i = 0; i < q->n; i++) {
        mem_free((void *)q->list[i].data);
        mem_free((void *)q->list[i].name);
    }
    mem_free(sorted);
    mem_free(q);
    return dir;
}

/* A quantised checkpoint gives the bits of one that holds the same values in bf16. */
START_TEST(fp8_blocks)
{
    struct kit_text g;
    struct kit_bench b, c;
    struct kit_outcome x, y;
    kit_text_open(&g, "tests/golden/target-qwen3/golden.safetensors");
    kit_bench_open(&b, quantise(true, NULL), 1);
    kit_bench_open(&c, quantise(false, NULL), 1);
    kit_packed(&b, &x, &g);
    kit_packed(&c, &y, &g);
    kit_same("hidden", x.aux.data, y.aux.data, tensor_bytes(&y.aux));
    kit_same("logits", x.logits.data, y.logits.data, tensor_bytes(&y.logits));
    kit_outcome_free(&x);
    kit_outcome_free(&y);
    kit_bench_close(&b);
    kit_bench_close(&c);
    kit_text_close(&g);
}
END_TEST

START_TEST(fp8_refusals)
{
    const char *scale = "model.layers.2.mlp.up_proj.weight_scale_inv";
    struct dev *d;
    struct target *t;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_fails(target_open(&t, d, quantise(true, scale), -1, true), E_FORMAT,
              "tensor model.layers.2.mlp.up_proj.weight_scale_inv is missing");
    kit_fails(target_open(&t, d, quantise(true, scale), 0, false), E_FORMAT,
              "is missing"); /* of a layer that is not loaded, too */
    const char *dir = quantise(true, NULL);
    write_config(dir, "");
    kit_fails(target_open(&t, d, dir, -1, true), E_CONFIG, "is F8_E4M3");
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
}
END_TEST

KIT_MAIN("family", llama, qwen2, llama3, golden_elsewhere, fp8_blocks, fp8_refusals)
