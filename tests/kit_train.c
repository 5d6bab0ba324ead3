/* SPDX-License-Identifier: MIT */
/* kit_train.c - everything is drawn from counters, so two calls write equal bytes. */
#include "kit_train.h"

#include "buf.h"
#include "file.h"
#include "hash.h"
#include "kit.h"
#include "mem.h"
#include "num.h"
#include "rng.h"
#include "shard.h"

#include <string.h>

enum {
    LAYERS = 4,
    HEADS = 2,
    KV = 1,
    HEAD = 32,
    INTER = 96,
    WIDTH = KIT_TAPS * KIT_HIDDEN
};

/* ---- the target ---- */

static const char config[] =
    "{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\",\n"
    " \"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 4,\n"
    " \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 32,\n"
    " \"vocab_size\": 96, \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-06,\n"
    " \"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"attention_bias\": false,\n"
    " \"tie_word_embeddings\": false, \"eos_token_id\": 94,\n"
    " \"torch_dtype\": \"bfloat16\"}\n";

struct tensors {
    struct st_tensor list[64];
    int64_t n;
};

static void add(struct tensors *t, int64_t rows, int64_t cols, const char *name)
{
    struct st_tensor *x = &t->list[t->n++];
    x->name = mem_text(name);
    ck_assert_ptr_nonnull(x->name);
    x->type = ST_BF16;
    x->rank = cols ? 2 : 1;
    x->dim[0] = rows;
    x->dim[1] = cols;
}

static void add_layer(struct tensors *t, int l)
{
    const struct {
        const char *name;
        int64_t rows, cols;
    } part[] = {{"input_layernorm", KIT_HIDDEN, 0},
                {"self_attn.q_proj", (int64_t)HEADS * HEAD, KIT_HIDDEN},
                {"self_attn.k_proj", (int64_t)KV * HEAD, KIT_HIDDEN},
                {"self_attn.v_proj", (int64_t)KV * HEAD, KIT_HIDDEN},
                {"self_attn.o_proj", KIT_HIDDEN, (int64_t)HEADS * HEAD},
                {"self_attn.q_norm", HEAD, 0},
                {"self_attn.k_norm", HEAD, 0},
                {"post_attention_layernorm", KIT_HIDDEN, 0},
                {"mlp.gate_proj", INTER, KIT_HIDDEN},
                {"mlp.up_proj", INTER, KIT_HIDDEN},
                {"mlp.down_proj", KIT_HIDDEN, INTER}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        add(t, part[i].rows, part[i].cols,
            kit_path("model.layers.%d.%s.weight", l, part[i].name));
}

/* draw appends a tensor of small normal numbers. */
static void draw(struct buf *out, const struct st_tensor *t)
{
    const uint64_t word[] = {1, hash_bytes(t->name, strlen(t->name))};
    struct rng rng = rng_new(rng_key(word, 2));
    for (int64_t i = 0; i < st_count(t); i++) {
        uint16_t h = num_f32_bf16((float)(0.1 * rng_normal(&rng)));
        buf_add(out, &h, sizeof h);
    }
}

uint64_t kit_target(const char *dir)
{
    struct tensors t = {.n = 0};
    struct buf out = {0};
    struct st_model model;
    uint64_t digest;
    add(&t, KIT_VOCAB, KIT_HIDDEN, "model.embed_tokens.weight");
    for (int l = 0; l < LAYERS; l++)
        add_layer(&t, l);
    add(&t, KIT_HIDDEN, 0, "model.norm.weight");
    add(&t, KIT_VOCAB, KIT_HIDDEN, "lm_head.weight");
    kit_ok(st_header_write(&out, t.list, t.n, NULL, 0, 8));
    for (int64_t i = 0; i < t.n; i++) {
        draw(&out, &t.list[i]);
        mem_free(t.list[i].name);
    }
    kit_ok(buf_check(&out));
    kit_ok(file_make_dirs(dir));
    kit_write(kit_path("%s/model.safetensors", dir), out.p, out.len);
    kit_write_text(kit_path("%s/config.json", dir), config);
    buf_drop(&out);
    kit_ok(st_model_open(&model, dir));
    kit_ok(st_model_digest(&model, &digest));
    st_model_close(&model);
    return digest;
}

/* ---- rows ---- */

/* Text of one row: documents of 9 to 40 tokens, the first two a prompt; what is left at
 * the end is padding.  Returns the number of documents, ids from 0. */
static int64_t write_text(int32_t *ids, uint8_t *mask, int32_t *doc, struct rng *rng,
                          bool bare)
{
    int64_t docs = 0, at = 0;
    memset(ids, 0, KIT_LENGTH * sizeof *ids);
    memset(mask, 0, KIT_LENGTH);
    for (int64_t t = 0; t < KIT_LENGTH; t++)
        doc[t] = -1;
    while (KIT_LENGTH - at >= 12) {
        int64_t n = 9 + (int64_t)rng_below(rng, 32);
        if (n > KIT_LENGTH - at)
            n = KIT_LENGTH - at;
        int32_t id = (int32_t)rng_below(rng, 61);
        for (int64_t t = 0; t < n; t++, id = (5 * id + 1) % 61) {
            ids[at + t] = id;
            mask[at + t] = t >= 2 && !bare;
            doc[at + t] = (int32_t)docs;
        }
        docs++;
        at += n;
    }
    return docs;
}

/* state is the hidden state of a token, channel c of WIDTH. */
static float state(int32_t id, int64_t c)
{
    uint32_t word[4];
    rng_philox(word, 77, (uint64_t)id, (uint64_t)c);
    return (float)word[0] / 4294967296.0f * 4 - 2;
}

static void write_bf16(uint16_t *aux, const int32_t *ids)
{
    for (int64_t i = 0; i < (int64_t)KIT_LENGTH * WIDTH; i++)
        aux[i] = num_f32_bf16(state(ids[i / WIDTH], i % WIDTH));
}

static void write_fp8(uint8_t *aux, float *scale, const int32_t *ids)
{
    for (int64_t i = 0; i < (int64_t)KIT_LENGTH * WIDTH; i++)
        aux[i] = num_f32_e4m3(state(ids[i / WIDTH], i % WIDTH) * 64);
    for (int64_t i = 0; i < KIT_LENGTH * KIT_TAPS; i++)
        scale[i] = 1.0f / 64;
}

static void write_row(struct shard_writer *w, const struct kit_rows *k, int64_t r)
{
    void *column[SHARD_COLUMNS];
    const uint64_t word[] = {k->seed, (uint64_t)r};
    struct rng rng = rng_new(rng_key(word, 2));
    kit_ok(shard_row(w, column));
    int32_t *ids = column[0], *doc = column[2];
    int64_t docs = write_text(ids, column[1], doc, &rng, r == k->bare);
    int64_t source[KIT_LENGTH][3] = {{0}};
    for (int64_t i = 0; i < docs; i++) {
        source[i][1] = r * KIT_LENGTH + i; // record
    }
    int64_t base = shard_fixed(w, 3, source, docs);
    ck_assert_int_ge(base, 0);
    for (int64_t t = 0; t < KIT_LENGTH; t++)
        doc[t] += doc[t] < 0 ? 0 : (int32_t)base;
    if (k->fp8)
        write_fp8(column[4], column[5], ids);
    else
        write_bf16(column[4], ids);
    if (r == k->bad)
        ((uint16_t *)column[4])[5 * WIDTH + 3] = 0x7fc0;
}

void kit_hidden(const char *dir, const struct kit_rows *k)
{
    char target[HASH_TEXT];
    hash_text(target, k->target);
    const char *const meta[] = {"target",  target,
                                "taps",    k->taps ? k->taps : "1,2",
                                "opening", "00000000000000ab"};
    struct shard_options o = {
        .name = "hidden",
        .stage = k->stage ? k->stage : "extract",
        .parts = 1,
        .column =
            {{"input_ids", ST_I32, 1, {KIT_LENGTH}, false},
             {"loss_mask", ST_U8, 1, {KIT_LENGTH}, false},
             {"doc_ids", ST_I32, 1, {KIT_LENGTH}, false},
             {"source", ST_I64, 1, {3}, true},
             {"aux", k->fp8 ? ST_F8_E4M3 : ST_BF16, 2, {KIT_LENGTH, WIDTH}, false},
             {"aux_scale", ST_F32, 2, {KIT_LENGTH, KIT_TAPS}, false}},
        .columns = k->fp8 ? 6 : 5,
        .meta = meta,
        .metas = 3,
        .rows_per_shard = k->per_shard ? k->per_shard : k->rows};
    struct shard_writer *w;
    int64_t have;
    kit_ok(shard_create(&w, dir, &o, &have));
    for (int64_t r = 0; r < k->rows; r++)
        write_row(w, k, r);
    kit_ok(shard_finish(w));
}

/* ---- the drafter ---- */

struct drafter_config kit_drafter(int64_t block)
{
    return (struct drafter_config){.hidden = KIT_HIDDEN,
                                   .inter = INTER,
                                   .layers = 2,
                                   .heads = HEADS,
                                   .kv_heads = KV,
                                   .head_dim = HEAD,
                                   .vocab = KIT_VOCAB,
                                   .max_positions = 512,
                                   .eps = 1e-6,
                                   .rope_theta = 10000,
                                   .block = block,
                                   .mask_id = KIT_MASK,
                                   .tap = {1, 2},
                                   .taps = KIT_TAPS,
                                   .target_layers = LAYERS,
                                   .sliding = {true},
                                   .window = 16,
                                   .causal = -1,
                                   .stop = 94};
}

void kit_dev_open(struct kit_dev *k, const char *target, int threads)
{
    kit_ok(par_open(&k->par, threads));
    kit_ok(dev_open(&k->dev, "cpu", k->par));
    kit_ok(target_vocabulary(&k->target, k->dev, target));
}

void kit_dev_close(struct kit_dev *k)
{
    target_close(k->target);
    dev_close(k->dev);
    par_close(k->par);
}
