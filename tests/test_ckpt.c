/* SPDX-License-Identifier: MIT */
/* test_ckpt.c - checkpoints: there and back to the bit, the tensors that are published,
 * what stays in a run's folder, and what is refused. */
#include "kit.h"
#include "kit_train.h"

#include "err.h"
#include "file.h"
#include "mem.h"
#include "num.h"
#include "safetensors.h"
#include "train/ckpt.h"

#include <stdio.h>
#include <string.h>

/* A drafter with masters and moments of known values. */
struct bench {
    struct kit_dev kit;
    struct drafter drafter;
    struct optimizer optim;
    struct ckpt ckpt;
    char dir[512], run[512];
};

static void fill(struct tensor t, float from)
{
    float *p = t.data;
    for (int64_t i = 0; i < tensor_count(&t); i++)
        p[i] = from + (float)(i % 1013) / 3;
}

static void set_up(struct bench *b)
{
    const struct drafter_config config = kit_drafter(8);
    memset(b, 0, sizeof *b);
    snprintf(b->dir, sizeof b->dir, "%s", kit_tmp_dir());
    snprintf(b->run, sizeof b->run, "%.500s/run", b->dir);
    kit_target(b->dir);
    kit_dev_open(&b->kit, b->dir, 1);
    kit_ok(drafter_new(&b->drafter, b->kit.dev, &config, target_embed(b->kit.target),
                       target_head(b->kit.target)));
    kit_ok(optimizer_open(&b->optim, b->kit.dev, b->drafter.flat, false));
    fill(b->optim.master, 1);
    fill(b->optim.m, 2);
    fill(b->optim.v, 3);
    b->ckpt = (struct ckpt){.run = b->run,
                            .every = 10,
                            .keep = 2,
                            .about = {.options = "layers=2 lr=0.001",
                                      .taps = "1,2",
                                      .target = "00000000000000aa",
                                      .input = "00000000000000bb",
                                      .whole = "00000000000000cc",
                                      .device = "cpu"}};
    kit_ok(ckpt_open(&b->ckpt));
    ck_assert_int_eq(b->ckpt.step, 0);
}

static void tear_down(struct bench *b)
{
    optimizer_close(&b->optim);
    drafter_drop(&b->drafter);
    kit_dev_close(&b->kit);
}

static void save(struct bench *b, int64_t step)
{
    const struct ckpt_place at = {step, 1, 2 * step};
    kit_ok(ckpt_save(&b->ckpt, &b->drafter, &b->optim, &at));
}

static bool has(const struct bench *b, const char *name)
{
    return file_exists(kit_path("%s/%s", b->run, name));
}

START_TEST(goes_there_and_back)
{
    static struct bench b;
    set_up(&b);
    size_t bytes = tensor_bytes(&b.optim.m);
    save(&b, 10);
    char *master = mem_alloc(bytes), *m = mem_alloc(bytes), *v = mem_alloc(bytes);
    memcpy(master, b.optim.master.data, bytes);
    memcpy(m, b.optim.m.data, bytes);
    memcpy(v, b.optim.v.data, bytes);
    fill(b.optim.master, 0);
    fill(b.optim.m, 0);
    fill(b.optim.v, 0);
    struct ckpt again = b.ckpt;
    kit_ok(ckpt_open(&again));
    ck_assert_int_eq(again.step, 10);
    kit_ok(ckpt_load(&again, &b.optim));
    ck_assert_str_eq(again.made_on, "cpu");
    kit_same("master", b.optim.master.data, master, bytes);
    kit_same("m", b.optim.m.data, m, bytes);
    kit_same("v", b.optim.v.data, v, bytes);
    kit_same("weights", b.drafter.flat.data, master, bytes);
    mem_free(master);
    mem_free(m);
    mem_free(v);
    tear_down(&b);
}
END_TEST

/* The tensors as published: per layer eleven, and three. */
static const char *const layer_names[] = {
    "input_layernorm.weight",  "self_attn.q_proj.weight",
    "self_attn.k_proj.weight", "self_attn.v_proj.weight",
    "self_attn.o_proj.weight", "self_attn.q_norm.weight",
    "self_attn.k_norm.weight", "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",    "mlp.up_proj.weight",
    "mlp.down_proj.weight"};
static const int64_t layer_dims[][2] = {{64, 0},  {64, 64}, {32, 64}, {32, 64},
                                        {64, 64}, {32, 0},  {32, 0},  {64, 0},
                                        {96, 64}, {96, 64}, {64, 96}};

static void expect_tensor(const struct st_file *f, const char *name,
                          const int64_t dim[2])
{
    const struct st_tensor *t;
    kit_ok(st_need(f, name, &t, dim[1] ? 2 : 1, dim));
    ck_assert_int_eq(t->type, ST_BF16);
}

START_TEST(exports_what_is_published)
{
    static struct bench b;
    struct st_file f;
    struct drafter_config config;
    set_up(&b);
    save(&b, 3);
    kit_ok(st_open(&f, kit_path("%s/step-00000003/model.safetensors", b.run)));
    ck_assert_int_eq(f.header.tensors, 2 * 11 + 3);
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < 11; i++)
            expect_tensor(&f, kit_path("layers.%d.%s", l, layer_names[i]),
                          layer_dims[i]);
    expect_tensor(&f, "fc.weight", (const int64_t[]){64, 128});
    expect_tensor(&f, "hidden_norm.weight", (const int64_t[]){64, 0});
    expect_tensor(&f, "norm.weight", (const int64_t[]){64, 0});
    ck_assert_str_eq(st_meta(&f.header, "format"), "pt");
    ck_assert_str_eq(st_meta(&f.header, "options"), "layers=2 lr=0.001");
    for (int64_t i = 0; i < b.drafter.table.params; i++) {
        const struct tensor from = param_view(&b.drafter.table, i, b.optim.master);
        const uint16_t *got =
            st_data(&f, st_find(&f.header, b.drafter.table.param[i].name));
        for (int64_t k = 0; k < tensor_count(&from); k++)
            ck_assert_int_eq(got[k], num_f32_bf16(((const float *)from.data)[k]));
    }
    st_close(&f);
    kit_ok(config_drafter(&config, kit_path("%s/step-00000003", b.run)));
    ck_assert_int_eq(config.block, 8);
    ck_assert_int_eq(config.mask_id, KIT_MASK);
    ck_assert_int_eq(config.tap[1], 2);
    tear_down(&b);
}
END_TEST

START_TEST(keeps_the_newest_on_the_grid)
{
    static struct bench b;
    set_up(&b);
    for (int step = 10; step <= 30; step += 10)
        save(&b, step);
    ck_assert(!has(&b, "step-00000010") && has(&b, "step-00000020"));
    save(&b, 34); // an interruption
    ck_assert(has(&b, "step-00000030") && has(&b, "step-00000034"));
    save(&b, 40);
    ck_assert(!has(&b, "step-00000020") && has(&b, "step-00000030"));
    ck_assert(!has(&b, "step-00000034") && has(&b, "step-00000040"));
    size_t n;
    char *latest = kit_read(kit_path("%s/latest", b.run), &n);
    ck_assert_str_eq(latest, "step-00000040\n");
    mem_free(latest);
    tear_down(&b);
}
END_TEST

START_TEST(puts_an_interruption_right)
{
    static struct bench b;
    size_t n;
    set_up(&b);
    save(&b, 10);
    save(&b, 20);
    /* Killed between the rename and RUN/latest, before older ones went, and while
     * writing the next. */
    kit_ok(rename(kit_path("%s/step-00000010", b.run), kit_path("%s/hold", b.run)));
    save(&b, 30);
    kit_ok(rename(kit_path("%s/hold", b.run), kit_path("%s/step-00000010", b.run)));
    kit_write_text(kit_path("%s/latest", b.run), "step-00000010\n");
    kit_ok(file_make_dirs(kit_path("%s/step-00000040.tmp", b.run)));
    kit_write_text(kit_path("%s/step-00000040.tmp/model.safetensors", b.run), "half");
    kit_ok(ckpt_open(&b.ckpt));
    ck_assert_int_eq(b.ckpt.step, 30);
    ck_assert(!has(&b, "step-00000040.tmp"));
    ck_assert(!has(&b, "step-00000010") && has(&b, "step-00000020"));
    char *latest = kit_read(kit_path("%s/latest", b.run), &n);
    ck_assert_str_eq(latest, "step-00000030\n");
    mem_free(latest);
    tear_down(&b);
}
END_TEST

START_TEST(refuses_another_run)
{
    static struct bench b;
    struct ckpt c;
    set_up(&b);
    save(&b, 10);
    c = b.ckpt;
    c.about.options = "layers=2 lr=0.002";
    kit_fails(ckpt_open(&c), E_CONFIG, "another --lr");
    c = b.ckpt;
    c.about.target[0] = '1';
    kit_fails(ckpt_open(&c), E_CONFIG, "another target");
    c = b.ckpt;
    c.about.input[0] = '1';
    kit_fails(ckpt_open(&c), E_CONFIG, "another input");
    c = b.ckpt;
    c.about.whole[0] = '1';
    kit_fails(ckpt_open(&c), E_CONFIG, "another input");
    c = b.ckpt;
    memcpy(c.about.valid, "00000000000000dd", HASH_TEXT);
    kit_fails(ckpt_open(&c), E_CONFIG, "another valid");
    c = b.ckpt;
    c.about.whole[0] = c.about.input[0] = '\0'; // a stream, from its middle
    kit_ok(ckpt_open(&c));
    ck_assert_str_eq(c.about.input, "00000000000000bb");
    tear_down(&b);
}
END_TEST

START_TEST(refuses_damage)
{
    static struct bench b;
    size_t n;
    set_up(&b);
    save(&b, 10);
    const char *path = kit_path("%s/step-00000010/state.safetensors", b.run);
    char *data = kit_read(path, &n);
    data[n - 5] ^= 4;
    kit_write(path, data, n);
    kit_fails(ckpt_open(&b.ckpt), E_FORMAT, "state.safetensors: damaged");
    kit_write(path, data, n / 2);
    kit_fails(ckpt_open(&b.ckpt), E_FORMAT, "state.safetensors");
    mem_free(data);
    tear_down(&b);
}
END_TEST

KIT_MAIN("ckpt", goes_there_and_back, exports_what_is_published,
         keeps_the_newest_on_the_grid, puts_an_interruption_right, refuses_another_run,
         refuses_damage)
