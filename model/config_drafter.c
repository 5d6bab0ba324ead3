/* SPDX-License-Identifier: MIT */
/* config_drafter.c - a drafter's config.json in z-lab's form: read, checked, written.
 *
 * The keys of the drafter itself stand in dflash_config or, in the older files, at the
 * top; the first place wins, as in the reference loader (z-lab/dflash, model.py). */
#include "config.h"

#include "config_read.h"
#include "err.h"
#include "op.h"

#include <math.h>
#include <string.h>

#define DFLASH2     "a module of DFlash 2"
#define SPECULATORS "the form of the speculators library, convert it to z-lab's"

static const struct config_rule drafter_rule[] = {
    {"attention_sink_bias", CONFIG_REFUSED, "learned sinks in the softmax"},
    {"aux_hidden_state_layer_ids", CONFIG_REFUSED, SPECULATORS},
    {"auto_map", CONFIG_KNOWN, NULL},
    {"block_size", CONFIG_KNOWN, NULL},
    {"causal", CONFIG_KNOWN, NULL},
    {"conv_group_size", CONFIG_REFUSED, DFLASH2},
    {"conv_kernel_size", CONFIG_REFUSED, DFLASH2},
    {"dflash_config", CONFIG_KNOWN, NULL},
    {"draft_vocab_size", CONFIG_REFUSED, "a reduced vocabulary"},
    {"final_logit_softcapping", CONFIG_REFUSED, "a cap on the logits"},
    {"input_embedding_scale", CONFIG_ONE, NULL},
    {"is_causal", CONFIG_KNOWN, NULL},
    {"is_neox_style", CONFIG_KNOWN, NULL},
    {"logit_scale", CONFIG_ONE, NULL},
    {"mask_embedding", CONFIG_REFUSED, "a mask that is no row of the embedding"},
    {"mask_token_id", CONFIG_KNOWN, NULL},
    {"num_target_layers", CONFIG_KNOWN, NULL},
    {"output_multiplier", CONFIG_ONE, NULL},
    {"sample_from_anchor", CONFIG_REFUSED, "slot k would predict the token after it"},
    {"selector_rank", CONFIG_REFUSED, DFLASH2},
    {"selector_top_k", CONFIG_REFUSED, DFLASH2},
    {"speculators_config", CONFIG_REFUSED, SPECULATORS},
    {"speculators_model_type", CONFIG_REFUSED, SPECULATORS},
    {"swa_window_size", CONFIG_REFUSED, "layer_types and sliding_window say it"},
    {"target_layer_ids", CONFIG_KNOWN, NULL},
    {"transformer_layer_config", CONFIG_REFUSED, SPECULATORS},
    {"use_swa", CONFIG_REFUSED, "layer_types and sliding_window say it"},
    {NULL, CONFIG_KNOWN, NULL},
};

/* ---- reading ---- */

/* place is the object that holds a drafter's key: dflash_config or the top. */
static const struct json *place(const struct json *o, const char *key)
{
    const struct json *inner = json_get(o, "dflash_config");
    return inner && json_get(inner, key) ? inner : o;
}

static int check_kind(const struct json *o)
{
    const struct json *list = json_get(o, "architectures"), *inner;
    const char *name = "", *type = "qwen3";
    bool neox = true;
    TRY(config_read_keys(o, drafter_rule));
    if (json_get(o, "dflash_config")) {
        TRY(json_need_object(o, "dflash_config", &inner));
        int rc = config_read_keys(inner, drafter_rule);
        if (rc < 0)
            return err_wrap(rc, "dflash_config");
    }
    if (!list || json_size(list) != 1 || json_to_text(json_at(list, 0), &name) < 0 ||
        strcmp(name, "DFlashDraftModel") != 0)
        return err_set(E_CONFIG, "architectures is not [\"DFlashDraftModel\"]%s%s",
                       *name ? " but " : "", name);
    TRY(json_have_text(o, "model_type", &type));
    if (strcmp(type, "qwen3") != 0)
        return err_set(E_CONFIG, "model_type \"%s\" is not supported, only \"qwen3\"",
                       type);
    TRY(json_have_bool(o, "is_neox_style", &neox));
    if (!neox)
        return err_set(E_CONFIG, "is_neox_style is false: interleaved rotation is not "
                                 "supported");
    return 0;
}

static int read_taps(struct drafter_config *c, const struct json *o)
{
    const struct json *list;
    TRY(json_need_array(place(o, "target_layer_ids"), "target_layer_ids", &list));
    int64_t n = json_size(list);
    if (n < 1 || n > CONFIG_TAPS)
        return err_set(E_CONFIG,
                       "target_layer_ids has %lld entries, supported are 1 to %d",
                       (long long)n, CONFIG_TAPS);
    c->taps = (int)n;
    for (int64_t i = 0; i < n; i++)
        if (json_to_int(json_at(list, i), &c->tap[i]) < 0)
            return err_wrap(E_FORMAT, "target_layer_ids");
    return 0;
}

static int read_causal(struct drafter_config *c, const struct json *o)
{
    const struct json *inner = json_get(o, "dflash_config");
    bool causal = false;
    int found = json_have_bool(o, "is_causal", &causal);
    if (found == 0 && inner)
        found = json_have_bool(inner, "causal", &causal);
    TRY(found);
    c->causal = found ? causal : -1;
    return 0;
}

static int read_window(struct drafter_config *c, const struct json *o)
{
    bool use = true;
    int slide = config_read_layers(c->sliding, c->layers, o, "sliding_attention");
    TRY(slide);
    int found = json_have_bool(o, "use_sliding_window", &use);
    TRY(found);
    if (found && use != (slide > 0))
        return err_set(E_CONFIG,
                       "use_sliding_window is %s but layer_types names %d sliding "
                       "layers",
                       use ? "true" : "false", slide);
    if (slide > 0)
        TRY(json_need_int(o, "sliding_window", &c->window));
    return 0;
}

static int read_drafter(void *config, const struct json *o)
{
    struct drafter_config *c = config;
    struct config_sizes s = {0};
    struct config_rope rope;
    int64_t stop[CONFIG_STOPS];
    TRY(check_kind(o));
    TRY(config_read_sizes(&s, o));
    if (s.layers > CONFIG_LAYERS)
        return err_set(E_CONFIG, "num_hidden_layers is %lld, a drafter has at most %d",
                       (long long)s.layers, CONFIG_LAYERS);
    c->hidden = s.hidden;
    c->inter = s.inter;
    c->layers = s.layers;
    c->heads = s.heads;
    c->kv_heads = s.kv_heads;
    c->head_dim = s.head_dim;
    c->vocab = s.vocab;
    c->max_positions = s.max_positions;
    TRY(config_read_body(&c->eps, &rope, o, CONFIG_PLAIN));
    c->rope_theta = rope.theta;
    c->block = 16;
    TRY(json_have_int(place(o, "block_size"), "block_size", &c->block));
    TRY(json_need_int(place(o, "mask_token_id"), "mask_token_id", &c->mask_id));
    TRY(read_taps(c, o));
    TRY(json_have_int(o, "num_target_layers", &c->target_layers));
    TRY(read_window(c, o));
    TRY(read_causal(c, o));
    int stops = config_read_stops(stop, CONFIG_STOPS, o);
    TRY(stops);
    c->stop = stops ? stop[0] : -1;
    return config_drafter_check(c, NULL);
}

int config_drafter(struct drafter_config *c, const char *dir)
{
    *c = (struct drafter_config){0};
    return config_read_file(dir, read_drafter, c);
}

/* ---- checking ---- */

static int check_taps(const struct drafter_config *c, int64_t layers)
{
    if (c->taps < 1 || c->taps > CONFIG_TAPS)
        return err_set(E_CONFIG, "drafter: %d taps, supported are 1 to %d", c->taps,
                       CONFIG_TAPS);
    for (int i = 0; i < c->taps; i++) {
        if (c->tap[i] < 0 || (i > 0 && c->tap[i] <= c->tap[i - 1]))
            return err_set(E_CONFIG, "drafter: tap %lld does not ascend from layer 0",
                           (long long)c->tap[i]);
        /* Some engines tap the last layer before the final norm, some after it. */
        if (layers > 0 && c->tap[i] >= layers - 1)
            return err_set(E_CONFIG,
                           "drafter: tap %lld of a target with %lld layers; the last "
                           "layer cannot be tapped",
                           (long long)c->tap[i], (long long)layers);
    }
    return 0;
}

static int check_target(const struct drafter_config *c, const struct target_config *t)
{
    const struct {
        const char *name;
        int64_t drafter, target;
    } same[] = {{"hidden size", c->hidden, t->hidden},
                {"vocabulary", c->vocab, t->vocab},
                {"target layers", c->target_layers, t->layers}};
    for (int i = 0; i < 3; i++) /* 0: the drafter's file does not say */
        if (same[i].drafter && same[i].drafter != same[i].target)
            return err_set(E_CONFIG, "drafter: %s %lld differs from the target's %lld",
                           same[i].name, (long long)same[i].drafter,
                           (long long)same[i].target);
    return 0;
}

int config_drafter_check(const struct drafter_config *c, const struct target_config *t)
{
    bool slides = false;
    for (int64_t l = 0; l < c->layers && l < CONFIG_LAYERS; l++)
        slides = slides || c->sliding[l];
    if (c->layers < 1 || c->layers > CONFIG_LAYERS)
        return err_set(E_CONFIG, "drafter: %lld layers, supported are 1 to %d",
                       (long long)c->layers, CONFIG_LAYERS);
    if (c->hidden < 1 || c->inter < 1 || c->vocab < 1)
        return err_set(E_CONFIG, "drafter: widths %lld and %lld, vocabulary %lld",
                       (long long)c->hidden, (long long)c->inter, (long long)c->vocab);
    if (c->heads < 1 || c->kv_heads < 1 || c->heads % c->kv_heads)
        return err_set(E_CONFIG, "drafter: %lld heads over %lld key/value heads",
                       (long long)c->heads, (long long)c->kv_heads);
    if (c->head_dim < 2 || c->head_dim % 2 || c->head_dim > OP_HEAD_MAX)
        return err_set(E_CONFIG,
                       "drafter: heads of width %lld, even ones up to %d are supported",
                       (long long)c->head_dim, OP_HEAD_MAX);
    if (c->block < 2 || c->block > CONFIG_BLOCK)
        return err_set(E_CONFIG, "drafter: block size %lld, supported are 2 to %d",
                       (long long)c->block, CONFIG_BLOCK);
    if (c->mask_id < 0 || c->mask_id >= c->vocab)
        return err_set(E_CONFIG,
                       "drafter: mask id %lld is not in the vocabulary of %lld",
                       (long long)c->mask_id, (long long)c->vocab);
    if (slides && (c->window < 1 || c->window > INT32_MAX))
        return err_set(E_CONFIG, "drafter: sliding layers with a window of %lld",
                       (long long)c->window);
    if (t)
        TRY(check_target(c, t));
    return check_taps(c, t ? t->layers : c->target_layers);
}

int config_taps(struct drafter_config *c, int n, int64_t target_layers)
{
    if (n < 1 || n > CONFIG_TAPS)
        return err_set(E_CONFIG, "drafter: %d taps, supported are 1 to %d", n,
                       CONFIG_TAPS);
    c->taps = n;
    c->target_layers = target_layers;
    for (int j = 0; j < n; j++)
        /* nearbyint rounds ties to even, as the formula's authors do in Python */
        c->tap[j] =
            n == 1 ? target_layers / 2
                   : (int64_t)nearbyint(1 + j * (double)(target_layers - 4) / (n - 1));
    for (int j = 1; j < n; j++)
        if (c->tap[j] <= c->tap[j - 1])
            return err_set(E_CONFIG,
                           "drafter: %d taps spread over %lld layers repeat layer "
                           "%lld; name the layers",
                           n, (long long)target_layers, (long long)c->tap[j]);
    return check_taps(c, target_layers);
}

bool config_causal(const struct drafter_config *c, int64_t l)
{
    return c->causal < 0 ? c->sliding[l] : c->causal;
}

/* ---- writing ---- */

static void write_lists(struct json_out *o, const struct drafter_config *c)
{
    json_open_array(o, "layer_types");
    for (int64_t l = 0; l < c->layers; l++)
        json_add_text(o, NULL, c->sliding[l] ? "sliding_attention" : "full_attention");
    json_close_array(o);
    json_open_object(o, "dflash_config");
    json_add_int(o, "block_size", c->block);
    json_add_int(o, "mask_token_id", c->mask_id);
    json_open_array(o, "target_layer_ids");
    for (int i = 0; i < c->taps; i++)
        json_add_int(o, NULL, c->tap[i]);
    json_close_array(o);
    json_close_object(o);
}

static void write_body(struct json_out *o, const struct drafter_config *c)
{
    json_add_int(o, "hidden_size", c->hidden);
    json_add_int(o, "intermediate_size", c->inter);
    json_add_int(o, "num_hidden_layers", c->layers);
    json_add_int(o, "num_attention_heads", c->heads);
    json_add_int(o, "num_key_value_heads", c->kv_heads);
    json_add_int(o, "head_dim", c->head_dim);
    json_add_int(o, "vocab_size", c->vocab);
    json_add_int(o, "block_size", c->block);
    json_add_real(o, "rms_norm_eps", c->eps);
    json_add_real(o, "rope_theta", c->rope_theta);
    json_add_null(o, "rope_scaling");
    json_add_int(o, "max_position_embeddings", c->max_positions);
    json_add_text(o, "hidden_act", "silu");
    json_add_bool(o, "attention_bias", false);
    json_add_real(o, "attention_dropout", 0);
    json_add_real(o, "initializer_range", 0.02);
    json_add_bool(o, "tie_word_embeddings", false);
    json_add_bool(o, "use_cache", true);
    json_add_text(o, "dtype", "bfloat16");
    json_add_int(o, "num_target_layers", c->target_layers);
}

void config_drafter_write(struct buf *out, const struct drafter_config *c)
{
    struct json_out o = {.to = out, .indent = 2};
    bool slides = false;
    for (int64_t l = 0; l < c->layers; l++)
        slides = slides || c->sliding[l];
    json_open_object(&o, NULL);
    json_open_array(&o, "architectures");
    json_add_text(&o, NULL, "DFlashDraftModel");
    json_close_array(&o);
    json_add_text(&o, "model_type", "qwen3");
    json_open_object(&o, "auto_map");
    json_add_text(&o, "AutoModel", "dflash.DFlashDraftModel");
    json_close_object(&o);
    write_body(&o, c);
    write_lists(&o, c);
    json_add_bool(&o, "use_sliding_window", slides);
    if (slides)
        json_add_int(&o, "sliding_window", c->window);
    else
        json_add_null(&o, "sliding_window");
    json_add_int(&o, "max_window_layers", c->layers);
    if (c->causal >= 0)
        json_add_bool(&o, "is_causal", c->causal);
    json_add_null(&o, "bos_token_id");
    if (c->stop >= 0)
        json_add_int(&o, "eos_token_id", c->stop);
    else
        json_add_null(&o, "eos_token_id");
    json_add_null(&o, "pad_token_id");
    json_close_object(&o);
    buf_addc(out, '\n');
}
