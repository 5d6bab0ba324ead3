/* SPDX-License-Identifier: MIT */
/* config_read.c - rules, sizes, rotation and layer types of config.json. */
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
    bool on = true;
    return json_is_null(json_get(o, key)) || (json_have_bool(o, key, &on) == 1 && !on);
}

static int check_key(const struct json *o, const char *key,
                     const struct config_rule *rule)
{
    const struct config_rule *r = find(shared, key);
    double factor = 0;
    if (!r)
        r = find(rule, key);
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

static int read_size(int64_t *out, const struct json *o, const char *key, int64_t max)
{
    TRY(json_need_int(o, key, out));
    if (*out < 1 || *out > max)
        return err_set(E_CONFIG, "%s is %lld, supported are 1 to %lld", key,
                       (long long)*out, (long long)max);
    return 0;
}

int config_read_sizes(struct config_sizes *s, const struct json *o)
{
    TRY(read_size(&s->hidden, o, "hidden_size", 1 << 17));
    TRY(read_size(&s->inter, o, "intermediate_size", 1 << 19));
    TRY(read_size(&s->layers, o, "num_hidden_layers", 1 << 10));
    TRY(read_size(&s->heads, o, "num_attention_heads", 1 << 10));
    TRY(read_size(&s->kv_heads, o, "num_key_value_heads", 1 << 10));
    TRY(read_size(&s->vocab, o, "vocab_size", 1 << 24));
    TRY(read_size(&s->max_positions, o, "max_position_embeddings", INT32_MAX));
    const struct json *head = json_get(o, "head_dim");
    if (head && !json_is_null(head)) {
        TRY(read_size(&s->head_dim, o, "head_dim", OP_HEAD_MAX));
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

/* check_rope refuses every rotation but the plain one in a rope_parameters or
 * rope_scaling object. */
static int check_rope(const struct json *rope)
{
    static const char *const name[] = {"rope_type", "type"};
    static const struct config_rule plain[] = {
        {"rope_type", CONFIG_KNOWN, NULL},
        {"type", CONFIG_KNOWN, NULL},
        {NULL, CONFIG_KNOWN, NULL},
    };
    for (int i = 0; i < 2; i++) {
        const char *type = "default";
        TRY(json_have_text(rope, name[i], &type));
        if (strcmp(type, "default") != 0)
            return err_set(E_CONFIG,
                           "rotary scaling of type \"%s\" is not supported, only "
                           "\"default\"",
                           type);
    }
    return config_read_keys(rope, plain);
}

static int read_theta(double *theta, const struct json *o)
{
    static const char *const form[] = {"rope_parameters", "rope_scaling"};
    double inner = 0;
    *theta = 0;
    for (int i = 0; i < 2; i++) {
        const struct json *rope = json_get(o, form[i]);
        if (!rope || json_is_null(rope))
            continue;
        TRY(json_need_object(o, form[i], &rope));
        TRY(check_rope(rope));
        TRY(json_have_real(rope, "rope_theta", &inner));
    }
    TRY(json_have_real(o, "rope_theta", theta));
    if (inner != 0 && *theta != 0 && inner != *theta)
        return err_set(E_CONFIG, "rope_theta is given twice, as %g and as %g", *theta,
                       inner);
    if (inner != 0)
        *theta = inner;
    if (!(*theta > 1))
        return err_set(E_CONFIG, "rope_theta is %s, a number above 1 is needed",
                       *theta == 0 ? "missing" : "too small");
    return 0;
}

int config_read_body(double *eps, double *theta, const struct json *o)
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
    return read_theta(theta, o);
}

/* ---- layers and stops ---- */

int config_read_sliding(bool *sliding, int64_t layers, const struct json *o)
{
    const struct json *list = json_get(o, "layer_types");
    int count = 0;
    memset(sliding, 0, (size_t)layers * sizeof *sliding);
    if (!list || json_is_null(list))
        return 0;
    TRY(json_need_array(o, "layer_types", &list));
    if (json_size(list) != layers)
        return err_set(E_CONFIG, "layer_types has %lld entries for %lld layers",
                       (long long)json_size(list), (long long)layers);
    for (int64_t l = 0; l < layers; l++) {
        const char *type = "";
        if (json_to_text(json_at(list, l), &type) < 0)
            return err_wrap(E_FORMAT, "layer_types");
        sliding[l] = strcmp(type, "sliding_attention") == 0;
        if (!sliding[l] && strcmp(type, "full_attention") != 0)
            return err_set(E_CONFIG,
                           "layer_types: layer %lld is \"%s\", supported are "
                           "full_attention and sliding_attention",
                           (long long)l, type);
        count += sliding[l];
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
