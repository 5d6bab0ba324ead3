/* SPDX-License-Identifier: MIT */
/* test_outline.c - a checkpoint is judged by its headers: at any size, at once, without
 * a device, and what it will take is known to the byte. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "kit.h"
#include "kit_time.h"
#include "mem.h"
#include "safetensors.h"
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

enum { H = 4096, INTER = 12288, V = 151936, Q = 4096, KV = 1024, D = 128, LAYERS = 36 };

static const char config[] =
    "{\"model_type\": \"qwen3\", \"hidden_size\": 4096, \"intermediate_size\": 12288,"
    " \"num_hidden_layers\": 36, \"num_attention_heads\": 32,"
    " \"num_key_value_heads\": 8, \"head_dim\": 128, \"vocab_size\": 151936,"
    " \"rms_norm_eps\": 1e-6, \"rope_theta\": 1000000, \"hidden_act\": \"silu\","
    " \"max_position_embeddings\": 40960, \"tie_word_embeddings\": false}";

static void add(struct buf *list, const char *name, int64_t rows, int64_t cols)
{
    struct st_tensor t = {.name = mem_text(name),
                          .type = ST_BF16,
                          .rank = cols ? 2 : 1,
                          .dim = {rows, cols}};
    buf_add(list, &t, sizeof t);
}

static void add_layer(struct buf *list, int l)
{
    static const struct {
        const char *name;
        int64_t rows, cols;
    } of[] = {{"input_layernorm", H, 0},   {"post_attention_layernorm", H, 0},
              {"self_attn.q_proj", Q, H},  {"self_attn.k_proj", KV, H},
              {"self_attn.v_proj", KV, H}, {"self_attn.o_proj", H, Q},
              {"self_attn.q_norm", D, 0},  {"self_attn.k_norm", D, 0},
              {"mlp.gate_proj", INTER, H}, {"mlp.up_proj", INTER, H},
              {"mlp.down_proj", H, INTER}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        add(list, kit_path("model.layers.%d.%s.weight", l, of[i].name), of[i].rows,
            of[i].cols);
}

/* write_file makes a file of holes behind its header, and says in `map` what it has. */
static void write_file(const char *dir, const char *name, struct buf *list,
                       struct buf *map)
{
    struct st_tensor *t = (struct st_tensor *)(void *)list->p;
    int64_t n = (int64_t)(list->len / sizeof *t);
    struct buf head = {0};
    const char *path = kit_path("%s/%s", dir, name);
    kit_ok(st_header_write(&head, t, n, NULL, 0, 8));
    kit_write(path, head.p, head.len);
    ck_assert_int_eq(truncate(path, (off_t)(head.len + t[n - 1].end)), 0);
    for (int64_t i = 0; i < n; i++) {
        bool first = map->p[map->len - 1] == '{';
        buf_addf(map, "%s\"%s\": \"%s\"", first ? "" : ", ", t[i].name, name);
        mem_free(t[i].name);
    }
    buf_drop(&head);
    buf_drop(list);
}

/* large is Qwen3-8B in two files of holes; the last layer's down_proj has `inter`
 * columns. */
static const char *large(int64_t inter)
{
    const char *dir = kit_tmp_dir();
    struct buf a = {0}, b = {0}, map = {0};
    buf_adds(&map, "{\"weight_map\": {");
    add(&a, "model.embed_tokens.weight", V, H);
    for (int l = 0; l < LAYERS; l++)
        add_layer(l < LAYERS / 2 ? &a : &b, l);
    ((struct st_tensor *)(void *)b.p)[b.len / sizeof(struct st_tensor) - 1].dim[1] =
        inter;
    add(&b, "model.norm.weight", H, 0);
    add(&b, "lm_head.weight", V, H);
    write_file(dir, "a.safetensors", &a, &map);
    write_file(dir, "b.safetensors", &b, &map);
    kit_write_text(kit_path("%s/config.json", dir), config);
    buf_adds(&map, "}}");
    kit_write_text(kit_path("%s/model.safetensors.index.json", dir), buf_text(&map));
    buf_drop(&map);
    return dir;
}

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
    kit_fails(look(large(INTER - 1)), E_FORMAT,
              "tensor model.layers.35.mlp.down_proj.weight is [4096, 12287], "
              "config.json makes it [4096, 12288]");
    const char *dir = large(INTER);
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
