/* SPDX-License-Identifier: MIT */
/* config.c - a target's config.json: the dense Qwen3 family, flat or in text_config.
 *
 * Whether the head is tied is not read here: the key has been wrong in published files,
 * so the presence of lm_head.weight decides (target.c). */
#include "config.h"

#include "config_read.h"
#include "err.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS_MAX = 1 << 10 }; /* config_read.c's bound */

static const struct config_rule target_rule[] = {
    {NULL, CONFIG_KNOWN, NULL},
};

static int check_family(const struct json *o)
{
    const char *type = "";
    TRY(json_need_text(o, "model_type", &type));
    if (strcmp(type, "qwen3") != 0)
        return err_set(E_CONFIG, "model_type \"%s\" is not supported, only \"qwen3\"",
                       type);
    return 0;
}

/* check_layers refuses targets with a window: all layers must be full attention. */
static int check_layers(int64_t layers, const struct json *o)
{
    bool sliding[LAYERS_MAX], use = false;
    TRY(json_have_bool(o, "use_sliding_window", &use));
    if (use)
        return err_set(E_CONFIG, "use_sliding_window is true: targets with a sliding "
                                 "window are not supported");
    int count = config_read_sliding(sliding, layers, o);
    if (count > 0)
        return err_set(E_CONFIG,
                       "layer_types: %d layers slide, targets with a sliding "
                       "window are not supported",
                       count);
    return count;
}

static int read_target(void *config, const struct json *root)
{
    struct target_config *c = config;
    const struct json *o = json_get(root, "text_config");
    struct config_sizes s = {0};
    if (!o)
        o = root;
    TRY(check_family(o));
    TRY(config_read_keys(o, target_rule));
    TRY(config_read_sizes(&s, o));
    TRY(config_read_body(&c->eps, &c->rope_theta, o));
    TRY(check_layers(s.layers, o));
    int stops = config_read_stops(c->stop, CONFIG_STOPS, o);
    if (stops < 0)
        return stops;
    snprintf(c->type, sizeof c->type, "qwen3");
    c->stops = stops;
    c->hidden = s.hidden;
    c->inter = s.inter;
    c->layers = s.layers;
    c->heads = s.heads;
    c->kv_heads = s.kv_heads;
    c->head_dim = s.head_dim;
    c->vocab = s.vocab;
    c->max_positions = s.max_positions;
    return 0;
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
