/* SPDX-License-Identifier: MIT */
/* kit_large.c - see kit_large.h. */
#include "kit_large.h"

#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "kit.h"
#include "mem.h"
#include "safetensors.h"

struct shape {
    const char *config, *prefix;
    int64_t layers, hidden, inter, vocab, heads, kv_heads, head_dim;
    int64_t k_heads, v_heads; /* of Gated DeltaNet, 128 wide; 0: there is none */
};

static const struct shape shapes[] = {
    {.config = "{\"model_type\": \"qwen3\", \"hidden_size\": 4096,"
               " \"intermediate_size\": 12288, \"num_hidden_layers\": 36,"
               " \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
               " \"head_dim\": 128, \"vocab_size\": 151936, \"rms_norm_eps\": 1e-6,"
               " \"rope_theta\": 1000000, \"hidden_act\": \"silu\","
               " \"max_position_embeddings\": 40960, \"tie_word_embeddings\": false}",
     .prefix = "model.",
     .layers = 36,
     .hidden = 4096,
     .inter = 12288,
     .vocab = 151936,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 128},
    {.config = "{\"model_type\": \"qwen3_5\", \"text_config\": {"
               " \"model_type\": \"qwen3_5_text\", \"hidden_size\": 5120,"
               " \"intermediate_size\": 17408, \"num_hidden_layers\": 64,"
               " \"num_attention_heads\": 24, \"num_key_value_heads\": 4,"
               " \"head_dim\": 256, \"vocab_size\": 248320, \"rms_norm_eps\": 1e-6,"
               " \"full_attention_interval\": 4, \"linear_conv_kernel_dim\": 4,"
               " \"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128,"
               " \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 48,"
               " \"attn_output_gate\": true, \"hidden_act\": \"silu\","
               " \"max_position_embeddings\": 262144, \"rope_parameters\": {"
               "\"rope_type\": \"default\", \"rope_theta\": 10000000,"
               " \"partial_rotary_factor\": 0.25}}}",
     .prefix = "model.language_model.",
     .layers = 64,
     .hidden = 5120,
     .inter = 17408,
     .vocab = 248320,
     .heads = 24,
     .kv_heads = 4,
     .head_dim = 256,
     .k_heads = 16,
     .v_heads = 48},
};

static void add(struct buf *list, const char *name, int rank, int64_t rows,
                int64_t cols)
{
    struct st_tensor t = {.name = mem_text(name),
                          .type = ST_BF16,
                          .rank = rank,
                          .dim = {rows, rank == 3 ? 1 : cols, cols}};
    buf_add(list, &t, sizeof t);
}

struct part {
    const char *name;
    int64_t rows, cols; /* cols 0: a vector */
    int rank;           /* 0: as it looks */
};

static void add_parts(struct buf *list, const struct shape *s, int l,
                      const struct part *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(list, kit_path("%slayers.%d.%s", s->prefix, l, p[i].name),
            p[i].rank   ? p[i].rank
            : p[i].cols ? 2
                        : 1,
            p[i].rows, p[i].cols);
}

static void add_attn(struct buf *list, const struct shape *s, int l)
{
    int64_t h = s->hidden, d = s->head_dim, q = s->heads * d, kv = s->kv_heads * d;
    const struct part p[] = {{"self_attn.q_proj.weight", s->k_heads ? 2 * q : q, h, 0},
                             {"self_attn.k_proj.weight", kv, h, 0},
                             {"self_attn.v_proj.weight", kv, h, 0},
                             {"self_attn.o_proj.weight", h, q, 0},
                             {"self_attn.q_norm.weight", d, 0, 0},
                             {"self_attn.k_norm.weight", d, 0, 0}};
    add_parts(list, s, l, p, sizeof p / sizeof *p);
}

static void add_delta(struct buf *list, const struct shape *s, int l)
{
    int64_t h = s->hidden, v = s->v_heads * 128, mix = 2 * s->k_heads * 128 + v;
    const struct part p[] = {{"linear_attn.in_proj_qkv.weight", mix, h, 0},
                             {"linear_attn.in_proj_z.weight", v, h, 0},
                             {"linear_attn.in_proj_a.weight", s->v_heads, h, 0},
                             {"linear_attn.in_proj_b.weight", s->v_heads, h, 0},
                             {"linear_attn.conv1d.weight", mix, 4, 3},
                             {"linear_attn.A_log", s->v_heads, 0, 0},
                             {"linear_attn.dt_bias", s->v_heads, 0, 0},
                             {"linear_attn.norm.weight", 128, 0, 0},
                             {"linear_attn.out_proj.weight", h, v, 0}};
    add_parts(list, s, l, p, sizeof p / sizeof *p);
}

static void add_layer(struct buf *list, const struct shape *s, int l)
{
    const struct part p[] = {{"input_layernorm.weight", s->hidden, 0, 0},
                             {"post_attention_layernorm.weight", s->hidden, 0, 0},
                             {"mlp.gate_proj.weight", s->inter, s->hidden, 0},
                             {"mlp.up_proj.weight", s->inter, s->hidden, 0},
                             {"mlp.down_proj.weight", s->hidden, s->inter, 0}};
    if (s->k_heads && (l + 1) % 4)
        add_delta(list, s, l);
    else
        add_attn(list, s, l);
    add_parts(list, s, l, p, sizeof p / sizeof *p);
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

const char *kit_large(enum kit_large which, int64_t lacks)
{
    const struct shape *s = &shapes[which];
    const char *dir = kit_tmp_dir();
    struct buf a = {0}, b = {0}, map = {0};
    buf_adds(&map, "{\"weight_map\": {");
    add(&a, kit_path("%sembed_tokens.weight", s->prefix), 2, s->vocab, s->hidden);
    for (int l = 0; l < s->layers; l++)
        add_layer(l < s->layers / 2 ? &a : &b, s, l);
    struct st_tensor *last = (struct st_tensor *)(void *)(b.p + b.len) - 1;
    last->dim[1] -= lacks;
    add(&b, kit_path("%snorm.weight", s->prefix), 1, s->hidden, 0);
    add(&b, "lm_head.weight", 2, s->vocab, s->hidden);
    write_file(dir, "a.safetensors", &a, &map);
    write_file(dir, "b.safetensors", &b, &map);
    buf_adds(&map, "}}");
    kit_write_text(kit_path("%s/config.json", dir), s->config);
    kit_write_text(kit_path("%s/model.safetensors.index.json", dir), buf_text(&map));
    buf_drop(&map);
    return dir;
}
