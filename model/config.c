/* SPDX-License-Identifier: MIT */
/* config.c - a target's config.json, flat or in text_config: one table of families.
 *
 * Whether the head is tied is not read here: the key has been wrong in published files,
 * so the presence of lm_head.weight decides (target_load.c). */
#include "config.h"

#include "config_read.h"
#include "err.h"
#include "op.h"

#include <stdio.h>
#include <string.h>

#define END                                                                            \
    {                                                                                  \
        NULL, CONFIG_KNOWN, NULL                                                       \
    }

static const struct config_rule qwen_rule[] = {
    {"quantization_config", CONFIG_KNOWN, NULL},
    END,
};

static const struct config_rule llama_rule[] = {
    {"mlp_bias", CONFIG_REFUSED, "biases"}, /* false is fine */
    {"pretraining_tp", CONFIG_ONE, NULL},
    {"quantization_config", CONFIG_KNOWN, NULL},
    END,
};

static const struct family {
    const char *type;
    const struct config_rule *rule;
    unsigned turns;
    bool bias, head_norm, hybrid;
} families[] = {
    {"llama", llama_rule, CONFIG_LLAMA3, false, false, false},
    {"qwen2", qwen_rule, CONFIG_PLAIN, true, false, false},
    {"qwen3", qwen_rule, CONFIG_PLAIN, false, true, false},
    {"qwen3_5_text", config_hybrid_rule, CONFIG_PARTIAL, false, true, true},
};

enum { FAMILIES = sizeof families / sizeof *families };

static int find_family(const struct family **out, const struct json *o)
{
    const char *type = "";
    TRY(json_need_text(o, "model_type", &type));
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].type, type) == 0) {
            *out = &families[i];
            return 0;
        }
    return err_set(E_CONFIG,
                   "model_type \"%s\" is not supported, only the dense models "
                   "\"llama\", \"qwen2\", \"qwen3\" and \"qwen3_5_text\"",
                   type);
}

/* check_window refuses targets with a sliding window. */
static int check_window(int64_t layers, const struct json *o)
{
    bool sliding[CONFIG_TARGET_LAYERS], use = false;
    TRY(json_have_bool(o, "use_sliding_window", &use));
    if (use)
        return err_set(E_CONFIG, "use_sliding_window is true: targets with a sliding "
                                 "window are not supported");
    int count = config_read_layers(sliding, layers, o, "sliding_attention");
    if (count > 0)
        return err_set(E_CONFIG,
                       "layer_types: %d layers slide, targets with a sliding "
                       "window are not supported",
                       count);
    return count;
}

/* ---- quantised weights ---- */

static const char only_fp8[] = "supported are bf16, f32 and \"fp8\" with blocks of "
                               "128 x 128";

static int check_blocks(const struct json *q)
{
    const struct json *list = NULL;
    int64_t side[2] = {0, 0};
    TRY(json_need_array(q, "weight_block_size", &list));
    for (int64_t i = 0; i < json_size(list) && i < 2; i++)
        if (json_to_int(json_at(list, i), &side[i]) < 0)
            return err_wrap(E_FORMAT, "weight_block_size");
    if (json_size(list) != 2 || side[0] != 128 || side[1] != 128)
        return err_set(E_CONFIG, "blocks of %lld x %lld, %s", (long long)side[0],
                       (long long)side[1], only_fp8);
    return 0;
}

/* read_quantised looks at the file's top too: multimodal ones keep the key there. */
static int read_quantised(bool *fp8, const struct json *root, const struct json *o)
{
    const struct json *q = json_get(o, "quantization_config");
    const char *method = "", *format = "e4m3";
    if (!q || json_is_null(q))
        q = json_get(root, "quantization_config");
    if (!q || json_is_null(q))
        return 0;
    TRY(json_have_text(q, "quant_method", &method));
    TRY(json_have_text(q, "fmt", &format));
    int rc = 0;
    if (strcmp(method, "fp8") != 0)
        rc = err_set(E_CONFIG, "quant_method \"%s\" is not supported, %s", method,
                     only_fp8);
    else if (strcmp(format, "e4m3") != 0)
        rc = err_set(E_CONFIG, "fmt \"%s\" is not supported, only \"e4m3\"", format);
    else
        rc = check_blocks(q);
    *fp8 = rc == 0;
    return rc < 0 ? err_wrap(rc, "quantization_config") : 0;
}

/* ---- the file ---- */

static void set_sizes(struct target_config *c, const struct config_sizes *s)
{
    c->hidden = s->hidden;
    c->inter = s->inter;
    c->layers = s->layers;
    c->heads = s->heads;
    c->kv_heads = s->kv_heads;
    c->head_dim = s->head_dim;
    c->rotary = s->head_dim;
    c->vocab = s->vocab;
    c->max_positions = s->max_positions;
}

static int read_target(void *config, const struct json *root)
{
    struct target_config *c = config;
    const struct json *o = json_get(root, "text_config");
    const struct family *f = NULL;
    struct config_sizes s = {0};
    struct config_rope rope;
    if (!o)
        o = root;
    TRY(find_family(&f, o));
    TRY(config_read_keys(o, f->rule));
    TRY(read_quantised(&c->fp8, root, o));
    TRY(config_read_sizes(&s, o));
    TRY(config_read_body(&c->eps, &rope, o, f->turns));
    set_sizes(c, &s);
    snprintf(c->type, sizeof c->type, "%s", f->type);
    c->rope_theta = rope.theta;
    c->scaling = rope.scaling;
    c->bias = f->bias;
    c->head_norm = f->head_norm;
    c->hybrid = f->hybrid;
    TRY(f->hybrid ? config_read_hybrid(c, o, rope.share) : check_window(s.layers, o));
    c->stops = config_read_stops(c->stop, CONFIG_STOPS, o);
    return c->stops < 0 ? c->stops : 0;
}

int config_target(struct target_config *c, const char *dir)
{
    *c = (struct target_config){0};
    return config_read_file(dir, read_target, c);
}

int config_check_ids(int64_t vocab, const int32_t *id, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= vocab)
            return err_set(E_FORMAT,
                           "token %lld: id %d is not in the vocabulary of %lld",
                           (long long)i, (int)id[i], (long long)vocab);
    return 0;
}
