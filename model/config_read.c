/* SPDX-License-Identifier: MIT */
/* config_read.c - rules, sizes and layer types of config.json. */
#include "config_read.h"

#include "err.h"
#include "file.h"
#include "mem.h"
#include "op.h"

#include <string.h>

/* ---- keys ---- */

static const struct config_rule shared[] = {
    {"architectures", CONFIG_KNOWN, NULL},
    {"attention_bias", CONFIG_KNOWN, NULL},
    {"attention_dropout", CONFIG_KNOWN, NULL},
    {"bos_token_id", CONFIG_KNOWN, NULL},
    {"dtype", CONFIG_KNOWN, NULL},
    {"eos_token_id", CONFIG_KNOWN, NULL},
    {"head_dim", CONFIG_KNOWN, NULL},
    {"hidden_act", CONFIG_KNOWN, NULL},
    {"hidden_size", CONFIG_KNOWN, NULL},
    {"initializer_range", CONFIG_KNOWN, NULL},
    {"intermediate_size", CONFIG_KNOWN, NULL},
    {"layer_types", CONFIG_KNOWN, NULL},
    {"max_position_embeddings", CONFIG_KNOWN, NULL},
    {"max_window_layers", CONFIG_KNOWN, NULL}, /* layer_types says it */
    {"model_type", CONFIG_KNOWN, NULL},
    {"name_or_path", CONFIG_KNOWN, NULL},
    {"num_attention_heads", CONFIG_KNOWN, NULL},
    {"num_hidden_layers", CONFIG_KNOWN, NULL},
    {"num_key_value_heads", CONFIG_KNOWN, NULL},
    {"pad_token_id", CONFIG_KNOWN, NULL},
    {"partial_rotary_factor", CONFIG_ONE, NULL},
    {"quantization_config", CONFIG_REFUSED, "quantised weights"},
    {"rms_norm_eps", CONFIG_KNOWN, NULL},
    {"rope_parameters", CONFIG_KNOWN, NULL},
    {"rope_scaling", CONFIG_KNOWN, NULL},
    {"rope_theta", CONFIG_KNOWN, NULL},
    {"sliding_window", CONFIG_KNOWN, NULL},
    {"tie_word_embeddings", CONFIG_KNOWN, NULL}, /* the tensors say it */
    {"torch_dtype", CONFIG_KNOWN, NULL},
    {"transformers_version", CONFIG_KNOWN, NULL},
    {"use_cache", CONFIG_KNOWN, NULL},
    {"use_sliding_window", CONFIG_KNOWN, NULL},
    {"vocab_size", CONFIG_KNOWN, NULL},
    {NULL, CONFIG_KNOWN, NULL},
};

static const struct config_rule *find(const struct config_rule *rule, const char *key)
{
    while (rule->key && strcmp(rule->key, key) != 0)
        rule++;
    return rule->key ? rule : NULL;
}

static bool is_off(const struct json *o, const char *key)
{
    const struct json *v = json_get(o, key);
    bool on = true;
    if (json_is_null(v) || (json_is_array(v) && json_size(v) == 0))
        return true;
    return json_have_bool(o, key, &on) == 1 && !on;
}

static int check_key(const struct json *o, const char *key,
                     const struct config_rule *rule)
{
    const struct config_rule *r = find(rule, key);
    double factor = 0;
    if (!r)
        r = find(shared, key);
    if ((r && r->use == CONFIG_KNOWN) || key[0] == '_' || is_off(o, key))
        return 0;
    if (!r)
        return err_set(E_CONFIG,
                       "key %s is not understood and may change the mathematics", key);
    if (r->use == CONFIG_REFUSED)
        return err_set(E_CONFIG, "%s is not supported: %s", key, r->why);
    TRY(json_need_real(o, key, &factor));
    if (factor != 1)
        return err_set(E_CONFIG, "%s is %g, only 1 is supported", key, factor);
    return 0;
}

int config_read_file(const char *dir, config_reader *read, void *config)
{
    struct json *root = NULL;
    char *path = file_path(dir, "config.json");
    if (!path)
        return E_MEMORY;
    int rc = json_load(&root, path);
    if (rc == 0) {
        rc = read(config, root);
        if (rc < 0)
            err_wrap(rc, "%s", path);
    }
    json_free(root);
    mem_free(path);
    return rc;
}

int config_read_keys(const struct json *o, const struct config_rule *rule)
{
    void *at = NULL;
    const char *key;
    const struct json *value;
    while (json_each(o, &at, &key, &value))
        TRY(check_key(o, key, rule));
    return 0;
}

/* ---- sizes ---- */

int config_read_size(int64_t *out, const struct json *o, const char *key, int64_t max)
{
    TRY(json_need_int(o, key, out));
    if (*out < 1 || *out > max)
        return err_set(E_CONFIG, "%s is %lld, supported are 1 to %lld", key,
                       (long long)*out, (long long)max);
    return 0;
}

int config_read_sizes(struct config_sizes *s, const struct json *o)
{
    TRY(config_read_size(&s->hidden, o, "hidden_size", 1 << 17));
    TRY(config_read_size(&s->inter, o, "intermediate_size", 1 << 19));
    TRY(config_read_size(&s->layers, o, "num_hidden_layers", CONFIG_TARGET_LAYERS));
    TRY(config_read_size(&s->heads, o, "num_attention_heads", 1 << 10));
    TRY(config_read_size(&s->kv_heads, o, "num_key_value_heads", 1 << 10));
    TRY(config_read_size(&s->vocab, o, "vocab_size", 1 << 24));
    TRY(config_read_size(&s->max_positions, o, "max_position_embeddings", INT32_MAX));
    const struct json *head = json_get(o, "head_dim");
    if (head && !json_is_null(head)) {
        TRY(config_read_size(&s->head_dim, o, "head_dim", OP_HEAD_MAX));
    } else {
        s->head_dim = s->hidden / s->heads;
        if (s->hidden % s->heads || s->head_dim > OP_HEAD_MAX)
            return err_set(E_CONFIG,
                           "hidden_size %lld over %lld heads, without head_dim, "
                           "gives no width of a head",
                           (long long)s->hidden, (long long)s->heads);
    }
    if (s->head_dim % 2)
        return err_set(E_CONFIG, "head_dim is %lld, rotation needs an even one",
                       (long long)s->head_dim);
    if (s->heads % s->kv_heads)
        return err_set(E_CONFIG,
                       "num_attention_heads %lld is not a multiple of "
                       "num_key_value_heads %lld",
                       (long long)s->heads, (long long)s->kv_heads);
    return 0;
}

/* ---- body ---- */

int config_read_body(double *eps, struct config_rope *rope, const struct json *o,
                     unsigned turns)
{
    const char *act = "";
    bool bias = false;
    TRY(json_need_text(o, "hidden_act", &act));
    if (strcmp(act, "silu") != 0)
        return err_set(E_CONFIG, "hidden_act is \"%s\", only \"silu\" is supported",
                       act);
    TRY(json_have_bool(o, "attention_bias", &bias));
    if (bias)
        return err_set(E_CONFIG, "attention_bias is true: biases are not supported");
    TRY(json_need_real(o, "rms_norm_eps", eps));
    if (!(*eps > 0 && *eps < 1))
        return err_set(E_CONFIG, "rms_norm_eps is %g, must be between 0 and 1", *eps);
    return config_read_rope(rope, o, turns);
}

/* ---- layers and stops ---- */

static int layer_type(const struct json *v, int64_t l, const char *other)
{
    const char *type = "";
    if (json_to_text(v, &type) < 0)
        return err_wrap(E_FORMAT, "layer_types");
    if (strcmp(type, other) == 0)
        return 1;
    if (strcmp(type, "full_attention") == 0)
        return 0;
    return err_set(E_CONFIG,
                   "layer_types: layer %lld is \"%s\", supported are full_attention "
                   "and %s",
                   (long long)l, type, other);
}

int config_read_layers(bool *is, int64_t layers, const struct json *o,
                       const char *other)
{
    const struct json *list = json_get(o, "layer_types");
    int count = 0;
    memset(is, 0, (size_t)layers * sizeof *is);
    if (!list || json_is_null(list))
        return 0;
    TRY(json_need_array(o, "layer_types", &list));
    if (json_size(list) != layers)
        return err_set(E_CONFIG, "layer_types has %lld entries for %lld layers",
                       (long long)json_size(list), (long long)layers);
    for (int64_t l = 0; l < layers; l++) {
        int found = layer_type(json_at(list, l), l, other);
        TRY(found);
        is[l] = found;
        count += found;
    }
    return count;
}

int config_read_stops(int64_t *stop, int max, const struct json *o)
{
    const struct json *v = json_get(o, "eos_token_id");
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_array(v)) {
        TRY(json_need_int(o, "eos_token_id", stop));
        return 1;
    }
    if (json_size(v) > max)
        return err_set(E_CONFIG,
                       "eos_token_id lists %lld ids, at most %d are supported",
                       (long long)json_size(v), max);
    for (int64_t i = 0; i < json_size(v); i++)
        if (json_to_int(json_at(v, i), &stop[i]) < 0)
            return err_wrap(E_FORMAT, "eos_token_id");
    return (int)json_size(v);
}
