/* SPDX-License-Identifier: MIT */
/* test_config.c - config.json: what is read, what is written, and a table of refusals.
 *
 * A case replaces one line of a good file and names a part of the message. */
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "err.h"
#include "json.h"
#include "kit.h"

static const char target_text[] = "{\n"
                                  "\"architectures\": [\"Qwen3ForCausalLM\"],\n"
                                  "\"attention_bias\": false,\n"
                                  "\"dtype\": \"bfloat16\",\n"
                                  "\"eos_token_id\": [2, 5],\n"
                                  "\"head_dim\": 32,\n"
                                  "\"hidden_act\": \"silu\",\n"
                                  "\"hidden_size\": 64,\n"
                                  "\"intermediate_size\": 160,\n"
                                  "\"layer_types\": [\"full_attention\", "
                                  "\"full_attention\"],\n"
                                  "\"max_position_embeddings\": 4096,\n"
                                  "\"model_type\": \"qwen3\",\n"
                                  "\"num_attention_heads\": 4,\n"
                                  "\"num_hidden_layers\": 2,\n"
                                  "\"num_key_value_heads\": 2,\n"
                                  "\"rms_norm_eps\": 1e-06,\n"
                                  "\"rope_parameters\": {\"rope_theta\": 1000000.0, "
                                  "\"rope_type\": \"default\"},\n"
                                  "\"sliding_window\": null,\n"
                                  "\"use_sliding_window\": false,\n"
                                  "\"vocab_size\": 512\n"
                                  "}\n";

static const char hybrid_text[] =
    "{\n"
    "\"attention_bias\": false,\n"
    "\"attn_output_gate\": true,\n"
    "\"full_attention_interval\": 4,\n"
    "\"head_dim\": 32,\n"
    "\"hidden_act\": \"silu\",\n"
    "\"hidden_size\": 64,\n"
    "\"intermediate_size\": 160,\n"
    "\"layer_types\": [\"linear_attention\", \"full_attention\"],\n"
    "\"linear_conv_kernel_dim\": 4,\n"
    "\"linear_key_head_dim\": 16,\n"
    "\"linear_num_key_heads\": 2,\n"
    "\"linear_num_value_heads\": 6,\n"
    "\"linear_value_head_dim\": 24,\n"
    "\"mamba_ssm_dtype\": \"float32\",\n"
    "\"max_position_embeddings\": 4096,\n"
    "\"mlp_only_layers\": [],\n"
    "\"model_type\": \"qwen3_5_text\",\n"
    "\"mtp_num_hidden_layers\": 1,\n"
    "\"num_attention_heads\": 4,\n"
    "\"num_hidden_layers\": 2,\n"
    "\"num_key_value_heads\": 2,\n"
    "\"output_gate_type\": \"swish\",\n"
    "\"rms_norm_eps\": 1e-06,\n"
    "\"rope_parameters\": {\"rope_theta\": 10000000.0, \"rope_type\": \"default\", "
    "\"partial_rotary_factor\": 0.5, \"mrope_section\": [2, 1, 1], "
    "\"mrope_interleaved\": true},\n"
    "\"vocab_size\": 512\n"
    "}\n";

static const char drafter_text[] =
    "{\n"
    "\"architectures\": [\"DFlashDraftModel\"],\n"
    "\"auto_map\": {\"AutoModel\": \"dflash.DFlashDraftModel\"},\n"
    "\"model_type\": \"qwen3\",\n"
    "\"block_size\": 8,\n"
    "\"dflash_config\": {\"mask_token_id\": 500, \"target_layer_ids\": [1, 3, 5]},\n"
    "\"head_dim\": 32,\n"
    "\"hidden_act\": \"silu\",\n"
    "\"hidden_size\": 64,\n"
    "\"intermediate_size\": 160,\n"
    "\"layer_types\": [\"sliding_attention\", \"full_attention\"],\n"
    "\"max_position_embeddings\": 4096,\n"
    "\"num_attention_heads\": 4,\n"
    "\"num_hidden_layers\": 2,\n"
    "\"num_key_value_heads\": 2,\n"
    "\"num_target_layers\": 8,\n"
    "\"rms_norm_eps\": 1e-06,\n"
    "\"rope_scaling\": null,\n"
    "\"rope_theta\": 10000000,\n"
    "\"sliding_window\": 12,\n"
    "\"use_sliding_window\": true,\n"
    "\"eos_token_id\": 7,\n"
    "\"vocab_size\": 512\n"
    "}\n";

/* put writes `text` with the line that begins with `key` replaced by `line` (an empty
 * line removes it; key NULL: the line is added) and returns the folder. */
static const char *put(const char *text, const char *key, const char *line)
{
    const char *dir = kit_tmp_dir(), *at = text + 2, *rest = at;
    struct buf b = {0};
    if (key) {
        at = strstr(text, kit_path("\"%s\":", key));
        ck_assert_msg(at != NULL, "no line of %s", key);
        rest = strchr(at, '\n') + 1;
    }
    bool last = *rest == '}';
    buf_add(&b, text, (size_t)(at - text));
    if (*line)
        buf_addf(&b, "%s%s\n", line, last ? "" : ",");
    else if (last)
        buf_adds(&b, "\"use_cache\": true\n");
    buf_adds(&b, rest);
    kit_ok(buf_check(&b));
    kit_write(kit_path("%s/config.json", dir), b.p, b.len);
    buf_drop(&b);
    return dir;
}

struct refusal {
    const char *key, *line;
    int code;
    const char *text;
};

/* refuse runs a table and prints every message: they are read by people. */
static void refuse(const char *text, const struct refusal *list, int n, bool drafter)
{
    for (int i = 0; i < n; i++) {
        struct target_config t;
        struct drafter_config d;
        const char *dir = put(text, list[i].key, list[i].line);
        int rc = drafter ? config_drafter(&d, dir) : config_target(&t, dir);
        printf("%s\n", strrchr(err_text(), '/') + 1);
        ck_assert_msg(rc < 0, "%s is accepted", list[i].line);
        kit_fails(rc, list[i].code, list[i].text);
        ck_assert_msg(strstr(err_text(), "config.json: ") != NULL, "no file: %s",
                      err_text());
    }
}

/* ---- targets ---- */

START_TEST(target_reads)
{
    struct target_config c;
    kit_ok(config_target(&c, put(target_text, NULL, "\"_name_or_path\": \"x\"")));
    ck_assert_str_eq(c.type, "qwen3");
    ck_assert(c.hidden == 64 && c.inter == 160 && c.layers == 2);
    ck_assert(c.heads == 4 && c.kv_heads == 2 && c.head_dim == 32);
    ck_assert(c.vocab == 512 && c.max_positions == 4096);
    ck_assert(c.eps == 1e-6 && c.rope_theta == 1e6);
    ck_assert(c.stops == 2 && c.stop[0] == 2 && c.stop[1] == 5);
}
END_TEST

/* The older form of the rotary keys, a width of heads that follows, one stop. */
START_TEST(target_reads_older_forms)
{
    struct target_config c;
    kit_ok(config_target(
        &c, put(target_text, "rope_parameters",
                "\"rope_theta\": 5e5, \"rope_scaling\": null, \"partial_rotary_factor\""
                ": 1.0")));
    ck_assert(c.rope_theta == 5e5);
    kit_ok(config_target(&c, put(target_text, "head_dim", "")));
    ck_assert_int_eq(c.head_dim, 16);
    kit_ok(config_target(&c, put(target_text, "eos_token_id", "\"eos_token_id\": 9")));
    ck_assert(c.stops == 1 && c.stop[0] == 9);
    kit_ok(config_target(&c, put(target_text, "eos_token_id", "")));
    ck_assert_int_eq(c.stops, 0);
}
END_TEST

/* The other families, each with what is its own. */
START_TEST(target_families)
{
    static const char llama[] =
        "\"model_type\": \"llama\", \"mlp_bias\": false, \"pretraining_tp\": 1";
    static const char scaled[] =
        "\"rope_theta\": 5e5, \"rope_scaling\": {\"rope_type\": \"llama3\", "
        "\"factor\": "
        "8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
        "\"original_max_position_embeddings\": 8192}, \"model_type\": \"llama\"";
    struct target_config c;
    struct buf b = {0};
    kit_ok(config_target(&c, put(target_text, "model_type", llama)));
    ck_assert(!c.bias && !c.head_norm && c.scaling.factor == 0 && c.rotary == 32);
    kit_ok(
        config_target(&c, put(target_text, "model_type", "\"model_type\": \"qwen2\"")));
    ck_assert(c.bias && !c.head_norm && !c.fp8);
    ck_assert_str_eq(c.type, "qwen2");
    const char *rest = strchr(strstr(target_text, "\"rope_parameters\""), '\n');
    buf_add(&b, target_text,
            (size_t)(strstr(target_text, "\"model_type\"") - target_text));
    buf_addf(&b,
             "%s, \"num_attention_heads\": 4, \"num_hidden_layers\": 2, "
             "\"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-05,%s",
             scaled, rest);
    const char *dir = kit_tmp_dir();
    kit_write(kit_path("%s/config.json", dir), b.p, b.len);
    kit_ok(config_target(&c, dir));
    ck_assert(c.scaling.factor == 8 && c.scaling.low == 1 && c.scaling.high == 4);
    ck_assert(c.scaling.original == 8192 && c.rope_theta == 5e5);
    char *at = strstr(b.p, "\"low_freq_factor\": 1.0");
    at[strlen("\"low_freq_factor\": ")] = '7';
    kit_write(kit_path("%s/config.json", dir), b.p, b.len);
    kit_fails(config_target(&c, dir), E_CONFIG, "frequencies 7 to 4");
    buf_drop(&b);
}
END_TEST

START_TEST(target_fp8)
{
    struct target_config c;
    kit_ok(config_target(
        &c, put(target_text, NULL,
                "\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": "
                "\"e4m3\", \"activation_scheme\": \"dynamic\", \"weight_block_size\": "
                "[128, 128]}")));
    ck_assert(c.fp8);
    kit_ok(config_target(&c, put(target_text, NULL, "\"quantization_config\": null")));
    ck_assert(!c.fp8);
}
END_TEST

/* A nested file: everything is read from text_config. */
START_TEST(target_reads_text_config)
{
    struct target_config c;
    struct buf b = {0};
    const char *dir = kit_tmp_dir();
    buf_addf(&b, "{\"model_type\": \"qwen3_vl\", \"text_config\": %s}", target_text);
    kit_write(kit_path("%s/config.json", dir), b.p, b.len);
    buf_drop(&b);
    kit_ok(config_target(&c, dir));
    ck_assert_int_eq(c.hidden, 64);
}
END_TEST

START_TEST(target_refuses)
{
    static const struct refusal list[] = {
        {"model_type", "\"model_type\": \"qwen3_5_moe_text\"", E_CONFIG,
         "\"qwen3_5_moe_text\" is not supported, only the dense models"},
        {"model_type", "\"model_type\": \"qwen4_exp\"", E_CONFIG, "\"qwen4_exp\""},
        {"model_type", "", E_FORMAT, "model_type"},
        {"hidden_act", "\"hidden_act\": \"gelu\"", E_CONFIG, "gelu"},
        {"attention_bias", "\"attention_bias\": true", E_CONFIG, "attention_bias"},
        {"use_sliding_window", "\"use_sliding_window\": true", E_CONFIG, "sliding"},
        {"layer_types", "\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
         E_CONFIG, "1 layers slide"},
        {"layer_types", "\"layer_types\": [\"full_attention\", \"linear_attention\"]",
         E_CONFIG, "layer 1 is \"linear_attention\""},
        {"layer_types", "\"layer_types\": [\"full_attention\"]", E_CONFIG, "1 entries"},
        {"layer_types", "\"layer_types\": [1, 2]", E_FORMAT, "layer_types"},
        {"rope_parameters",
         "\"rope_theta\": 1e6, \"rope_scaling\": {\"type\": "
         "\"yarn\", \"factor\": 4.0}",
         E_CONFIG, "yarn"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 5e5, "
         "\"rope_type\": \"llama3\", \"factor\": 8.0}",
         E_CONFIG, "llama3"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7, "
         "\"partial_rotary_factor\": 0.25}",
         E_CONFIG, "partial_rotary_factor is 0.25"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7, "
         "\"mrope_section\": [2, 1, 1]}",
         E_CONFIG, "mrope_section"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7}, "
         "\"rope_theta\": 1e6",
         E_CONFIG, "rope_theta is given twice"},
        {"rope_parameters", "", E_CONFIG, "rope_theta is missing"},
        {NULL, "\"partial_rotary_factor\": 0.5", E_CONFIG, "partial_rotary_factor"},
        {NULL, "\"quantization_config\": {\"quant_method\": \"fp8\"}", E_FORMAT,
         "quantization_config: no key \"weight_block_size\""},
        {NULL,
         "\"quantization_config\": {\"quant_method\": \"fp8\", "
         "\"weight_block_size\": [64, 128]}",
         E_CONFIG, "blocks of 64 x 128, supported are"},
        {NULL,
         "\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e5m2\", "
         "\"weight_block_size\": [128, 128]}",
         E_CONFIG, "e5m2"},
        {NULL, "\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4}",
         E_CONFIG, "quant_method \"awq\" is not supported, supported are"},
        {NULL,
         "\"quantization_config\": {\"quant_algo\": \"NVFP4\", "
         "\"quant_method\": \"modelopt\"}",
         E_CONFIG, "\"modelopt\""},
        {NULL, "\"logits_scaling\": 2.0", E_CONFIG, "logits_scaling"},
        {NULL, "\"num_experts\": 8", E_CONFIG, "num_experts"},
        {"hidden_size", "\"hidden_size\": 0", E_CONFIG, "hidden_size is 0"},
        {"hidden_size", "\"hidden_size\": 99999999", E_CONFIG, "hidden_size"},
        {"hidden_size", "\"hidden_size\": \"64\"", E_FORMAT, "hidden_size"},
        {"hidden_size", "", E_FORMAT, "hidden_size"},
        {"num_attention_heads", "\"num_attention_heads\": 3", E_CONFIG, "multiple"},
        {"head_dim", "\"head_dim\": 33", E_CONFIG, "even"},
        {"head_dim", "\"head_dim\": 514", E_CONFIG, "head_dim is 514"},
        {"vocab_size", "\"vocab_size\": -1", E_CONFIG, "vocab_size is -1"},
        {"rms_norm_eps", "\"rms_norm_eps\": 0", E_CONFIG, "rms_norm_eps"},
        {"eos_token_id", "\"eos_token_id\": [1, \"2\"]", E_FORMAT, "eos_token_id"},
        {"eos_token_id", "\"eos_token_id\": [1,2,3,4,5,6,7,8,9]", E_CONFIG, "9 ids"},
        {"head_dim", "\"head_dim\": 32, \"head_dim\": 64", E_FORMAT, "duplicate"},
    };
    refuse(target_text, list, sizeof list / sizeof *list, false);
}
END_TEST

START_TEST(hybrid_reads)
{
    static struct target_config c;
    kit_ok(config_target(&c, put(hybrid_text, NULL, "\"use_cache\": true")));
    ck_assert(c.hybrid && c.head_norm && !c.bias && c.rotary == 16 && c.layers == 2);
    ck_assert(c.linear[0] && !c.linear[1]);
    ck_assert(c.delta.k_heads == 2 && c.delta.v_heads == 6);
    ck_assert(c.delta.k_dim == 16 && c.delta.v_dim == 24);
    /* Without layer_types the interval says it; a quarter turns by default; the older
     * place of the share. */
    kit_ok(config_target(&c, put(hybrid_text, "layer_types", "")));
    ck_assert(c.linear[0] && c.linear[1]);
    kit_ok(config_target(
        &c, put(hybrid_text, "rope_parameters", "\"rope_theta\": 10000000")));
    ck_assert(c.rotary == 8 && c.rope_theta == 1e7);
    kit_ok(config_target(&c, put(hybrid_text, "rope_parameters",
                                 "\"rope_theta\": 10000000, "
                                 "\"partial_rotary_factor\": 1.0")));
    ck_assert_int_eq(c.rotary, 32);
}
END_TEST

/* A multimodal file keeps the key of quantised weights at its top. */
START_TEST(hybrid_reads_nested)
{
    static struct target_config c;
    struct buf b = {0};
    const char *dir = kit_tmp_dir();
    buf_addf(&b,
             "{\"model_type\": \"qwen3_5\", \"quantization_config\": "
             "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}, "
             "\"vision_config\": {\"depth\": 27}, \"text_config\": %s}",
             hybrid_text);
    kit_write(kit_path("%s/config.json", dir), b.p, b.len);
    buf_drop(&b);
    kit_ok(config_target(&c, dir));
    ck_assert(c.hybrid && c.fp8);
}
END_TEST

START_TEST(hybrid_refuses)
{
    static const struct refusal list[] = {
        {"attn_output_gate", "\"attn_output_gate\": false", E_CONFIG, "gated"},
        {"output_gate_type", "\"output_gate_type\": \"sigmoid\"", E_CONFIG,
         "output_gate_type is \"sigmoid\", supported are"},
        {"linear_conv_kernel_dim", "\"linear_conv_kernel_dim\": 2", E_CONFIG, "only 4"},
        {"linear_num_value_heads", "\"linear_num_value_heads\": 5", E_CONFIG,
         "5 is not a multiple of linear_num_key_heads 2"},
        {"linear_key_head_dim", "\"linear_key_head_dim\": 257", E_CONFIG, "1 to 256"},
        {"linear_num_key_heads", "", E_FORMAT, "linear_num_key_heads"},
        {"layer_types",
         "\"layer_types\": [\"linear_attention\", \"sliding_attention\"]", E_CONFIG,
         "layer 1 is \"sliding_attention\", supported are full_attention and "
         "linear_attention"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7, \"rope_type\": \"yarn\", "
         "\"factor\": 4.0}",
         E_CONFIG, "\"yarn\" is not supported, only \"default\""},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7, "
         "\"partial_rotary_factor\": 0.3}",
         E_CONFIG, "0.3 of heads of 32 channels"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7, "
         "\"partial_rotary_factor\": 0.5}, \"partial_rotary_factor\": 0.25",
         E_CONFIG, "partial_rotary_factor is given twice"},
        {"rope_parameters",
         "\"rope_parameters\": {\"rope_theta\": 1e7, "
         "\"partial_rotary_factor\": 1.5}",
         E_CONFIG, "must be in (0, 1]"},
        {"mlp_only_layers", "\"mlp_only_layers\": [1]", E_CONFIG, "mlp_only_layers"},
        {NULL, "\"num_experts\": 256", E_CONFIG, "num_experts"},
    };
    refuse(hybrid_text, list, sizeof list / sizeof *list, false);
}
END_TEST

/* Switched-off keys of other families are harmless. */
START_TEST(target_accepts_what_is_off)
{
    struct target_config c;
    kit_ok(config_target(&c, put(target_text, NULL,
                                 "\"mlp_bias\": false, "
                                 "\"attn_logit_softcapping\": null, "
                                 "\"rope_scaling\": null")));
}
END_TEST

START_TEST(config_missing)
{
    struct target_config c;
    kit_fails(config_target(&c, kit_tmp_dir()), E_MISSING, "config.json");
}
END_TEST

/* ---- drafters ---- */

START_TEST(drafter_reads)
{
    struct drafter_config c;
    kit_ok(config_drafter(&c, put(drafter_text, NULL, "\"bos_token_id\": null")));
    ck_assert(c.hidden == 64 && c.inter == 160 && c.layers == 2 && c.vocab == 512);
    ck_assert(c.heads == 4 && c.kv_heads == 2 && c.head_dim == 32);
    ck_assert(c.block == 8 && c.mask_id == 500 && c.target_layers == 8);
    ck_assert(c.taps == 3 && c.tap[0] == 1 && c.tap[1] == 3 && c.tap[2] == 5);
    ck_assert(c.sliding[0] && !c.sliding[1] && c.window == 12);
    ck_assert(c.causal == -1 && c.stop == 7 && c.rope_theta == 1e7);
    ck_assert(config_causal(&c, 0) && !config_causal(&c, 1));
}
END_TEST

/* The later files keep the block size inside, and causality in one of two places. */
START_TEST(drafter_reads_later_forms)
{
    struct drafter_config c;
    kit_ok(config_drafter(
        &c, put(drafter_text, "dflash_config",
                "\"dflash_config\": {\"mask_token_id\": 1, \"target_layer_ids\": [2], "
                "\"block_size\": 4, \"causal\": true}")));
    ck_assert(c.block == 4 && c.causal == 1 && c.taps == 1);
    ck_assert(config_causal(&c, 0) && config_causal(&c, 1));
    kit_ok(config_drafter(
        &c, put(drafter_text, "dflash_config",
                "\"dflash_config\": {\"mask_token_id\": 1, \"target_layer_ids\": [2], "
                "\"causal\": true}, \"is_causal\": false")));
    ck_assert(c.block == 8 && c.causal == 0);
    ck_assert(!config_causal(&c, 0) && !config_causal(&c, 1));
    kit_ok(config_drafter(&c, put(drafter_text, "block_size", "")));
    ck_assert_int_eq(c.block, 16);
    kit_ok(config_drafter(&c, put(drafter_text, "num_target_layers", "")));
    ck_assert_int_eq(c.target_layers, 0);
}
END_TEST

START_TEST(drafter_refuses)
{
#define INNER "\"dflash_config\": {\"mask_token_id\": 500, \"target_layer_ids\": "
    static const struct refusal list[] = {
        {"architectures", "\"architectures\": [\"DFlash2DraftModel\"]", E_CONFIG,
         "DFlash2DraftModel"},
        {"architectures", "", E_CONFIG, "DFlashDraftModel"},
        {"model_type", "\"model_type\": \"llama\"", E_CONFIG, "llama"},
        {NULL, "\"speculators_model_type\": \"dflash\"", E_CONFIG, "speculators"},
        {NULL, "\"aux_hidden_state_layer_ids\": [2, 4]", E_CONFIG, "z-lab"},
        {NULL, "\"draft_vocab_size\": 32000", E_CONFIG, "reduced vocabulary"},
        {NULL, "\"sample_from_anchor\": true", E_CONFIG, "sample_from_anchor"},
        {NULL, "\"final_logit_softcapping\": 30.0", E_CONFIG, "softcapping"},
        {NULL, "\"input_embedding_scale\": 8.0", E_CONFIG,
         "input_embedding_scale is 8"},
        {NULL, "\"is_neox_style\": false", E_CONFIG, "interleaved"},
        {NULL, "\"use_swa\": true", E_CONFIG, "use_swa"},
        {NULL, "\"surprise\": 1", E_CONFIG, "surprise"},
        {"rope_scaling", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
         E_CONFIG, "linear"},
        {"dflash_config", INNER "[1], \"selector_rank\": 256}", E_CONFIG, "DFlash 2"},
        {"dflash_config", INNER "[1], \"conv_kernel_size\": 2}", E_CONFIG,
         "dflash_config: conv_kernel_size"},
        {"dflash_config", INNER "[]}", E_CONFIG, "0 entries"},
        {"dflash_config", INNER "[3, 1]}", E_CONFIG, "tap 1 does not ascend"},
        {"dflash_config", INNER "[1, 1]}", E_CONFIG, "ascend"},
        {"dflash_config", INNER "[-1, 1]}", E_CONFIG, "tap -1"},
        {"dflash_config", INNER "[1, 7]}", E_CONFIG, "last layer cannot be tapped"},
        {"dflash_config", INNER "[1, \"2\"]}", E_FORMAT, "target_layer_ids"},
        {"dflash_config", "\"dflash_config\": {\"target_layer_ids\": [1]}", E_FORMAT,
         "mask_token_id"},
        {"dflash_config",
         "\"dflash_config\": {\"mask_token_id\": 512, \"target_layer_ids\": [1]}",
         E_CONFIG, "mask id 512"},
        {"dflash_config", "\"dflash_config\": 3", E_FORMAT, "dflash_config"},
        {"block_size", "\"block_size\": 1", E_CONFIG, "block size 1"},
        {"head_dim", "\"head_dim\": 514", E_CONFIG, "head_dim is 514"},
        {"num_hidden_layers", "\"num_hidden_layers\": 33", E_CONFIG, "at most 32"},
        {"use_sliding_window", "\"use_sliding_window\": false", E_CONFIG,
         "use_sliding_window is false but"},
        {"layer_types", "", E_CONFIG, "use_sliding_window is true but"},
        {"sliding_window", "", E_FORMAT, "sliding_window"},
        {"sliding_window", "\"sliding_window\": 0", E_CONFIG, "window of 0"},
    };
    refuse(drafter_text, list, sizeof list / sizeof *list, true);
}
END_TEST

/* What is written reads back equal, and has the keys that engines look for. */
START_TEST(drafter_writes)
{
    static const char *const want[] = {"\"architectures\"",
                                       "\"DFlashDraftModel\"",
                                       "\"auto_map\"",
                                       "\"rope_scaling\": null",
                                       "\"attention_bias\": false",
                                       "\"dtype\": \"bfloat16\"",
                                       "\"num_target_layers\": 8",
                                       "\"layer_types\"",
                                       "\"use_sliding_window\": true",
                                       "\"max_window_layers\"",
                                       "\"tie_word_embeddings\": false"};
    struct drafter_config a, b;
    struct buf text = {0};
    const char *dir = kit_tmp_dir();
    kit_ok(config_drafter(&a, put(drafter_text, NULL, "\"is_causal\": true")));
    config_drafter_write(&text, &a);
    kit_ok(buf_check(&text));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(strstr(text.p, want[i]) != NULL, "no %s", want[i]);
    kit_write(kit_path("%s/config.json", dir), text.p, text.len);
    kit_ok(config_drafter(&b, dir));
    kit_same("config", &b, &a, sizeof a);

    /* No window, unknown stop, causality by layer: null and absent keys. */
    a.sliding[0] = false;
    a.window = 0;
    a.causal = -1;
    a.stop = -1;
    buf_clear(&text);
    config_drafter_write(&text, &a);
    ck_assert(strstr(text.p, "\"sliding_window\": null") != NULL);
    ck_assert(strstr(text.p, "is_causal") == NULL);
    kit_write(kit_path("%s/config.json", dir), text.p, text.len);
    kit_ok(config_drafter(&b, dir));
    kit_same("config", &b, &a, sizeof a);
    buf_drop(&text);
}
END_TEST

START_TEST(drafter_against_target)
{
    struct drafter_config d;
    struct target_config t = {.hidden = 64, .vocab = 512, .layers = 8};
    kit_ok(config_drafter(&d, put(drafter_text, NULL, "\"use_cache\": true")));
    kit_ok(config_drafter_check(&d, &t));
    t.hidden = 32;
    kit_fails(config_drafter_check(&d, &t), E_CONFIG, "hidden size 64");
    t.hidden = 64;
    t.vocab = 600;
    kit_fails(config_drafter_check(&d, &t), E_CONFIG, "vocabulary 512");
    t.vocab = 512;
    t.layers = 6;
    kit_fails(config_drafter_check(&d, &t), E_CONFIG, "target layers 8");
    d.target_layers = 0; /* the file does not say: the taps must still fit */
    kit_fails(config_drafter_check(&d, &t), E_CONFIG, "tap 5 of a target with 6");
}
END_TEST

/* Published drafters' taps (spread from layer 1 to the third last). */
START_TEST(taps_spread)
{
    static const int64_t want[][6] = {
        {24, 1, 6, 11, 16, 21},  {28, 1, 7, 13, 19, 25},  {32, 1, 8, 15, 22, 29},
        {36, 1, 9, 17, 25, 33},  {40, 1, 10, 19, 28, 37}, {48, 1, 12, 23, 34, 45},
        {52, 1, 13, 25, 37, 49}, {64, 1, 16, 31, 46, 61}, {80, 1, 20, 39, 58, 77}};
    struct drafter_config c = {0};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        kit_ok(config_taps(&c, 5, want[i][0]));
        kit_same("taps", c.tap, want[i] + 1, 5 * sizeof c.tap[0]);
    }
    kit_ok(config_taps(&c, 1, 36));
    ck_assert(c.taps == 1 && c.tap[0] == 18);
    kit_ok(config_taps(&c, 3, 9)); /* 1, 3.5, 6: a tie goes to the even number */
    ck_assert_int_eq(c.tap[1], 4);
    kit_fails(config_taps(&c, 5, 6), E_CONFIG, "repeat");
    kit_fails(config_taps(&c, 17, 80), E_CONFIG, "17 taps");
}
END_TEST

KIT_MAIN("config", target_reads, target_reads_older_forms, target_reads_text_config,
         target_families, target_fp8, target_refuses, hybrid_reads, hybrid_reads_nested,
         hybrid_refuses, target_accepts_what_is_off, config_missing, drafter_reads,
         drafter_reads_later_forms, drafter_refuses, drafter_writes,
         drafter_against_target, taps_spread)
