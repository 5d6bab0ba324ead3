/* SPDX-License-Identifier: MIT */
/* config_hybrid.c - what config.json says of the Qwen3.5 kind beyond a dense decoder:
 * which layers are Gated DeltaNet, their heads, and how much of a head turns.
 *
 * Keys of multi-token prediction are known and ignored: its tensors are skipped. */
#include "config_read.h"

#include "err.h"
#include "op.h"

#include <string.h>

const struct config_rule config_hybrid_rule[] = {
    {"attn_output_gate", CONFIG_KNOWN, NULL},
    {"full_attention_interval", CONFIG_KNOWN, NULL},
    {"linear_conv_kernel_dim", CONFIG_KNOWN, NULL},
    {"linear_key_head_dim", CONFIG_KNOWN, NULL},
    {"linear_num_key_heads", CONFIG_KNOWN, NULL},
    {"linear_num_value_heads", CONFIG_KNOWN, NULL},
    {"linear_value_head_dim", CONFIG_KNOWN, NULL},
    {"mamba_ssm_dtype", CONFIG_KNOWN, NULL},       /* the state is f32 here, always */
    {"mtp_num_hidden_layers", CONFIG_KNOWN, NULL}, /* mtp.* is skipped */
    {"mtp_use_dedicated_embeddings", CONFIG_KNOWN, NULL},
    {"output_gate_type", CONFIG_KNOWN, NULL},
    {"partial_rotary_factor", CONFIG_KNOWN, NULL},
    {"quantization_config", CONFIG_KNOWN, NULL},
    {NULL, CONFIG_KNOWN, NULL},
};

static int check_gates(const struct json *o)
{
    const char *gate = "silu";
    bool gated = true;
    TRY(json_have_bool(o, "attn_output_gate", &gated));
    if (!gated)
        return err_set(E_CONFIG, "attn_output_gate is false, only gated attention is "
                                 "supported");
    /* The activation inside the norm of DeltaNet; attention's own gate is a sigmoid. */
    TRY(json_have_text(o, "output_gate_type", &gate));
    if (strcmp(gate, "silu") != 0 && strcmp(gate, "swish") != 0)
        return err_set(E_CONFIG,
                       "output_gate_type is \"%s\", supported are \"silu\" and "
                       "\"swish\"",
                       gate);
    return 0;
}

static int read_delta(struct config_delta *g, const struct json *o)
{
    int64_t taps = 4;
    TRY(config_read_size(&g->k_heads, o, "linear_num_key_heads", 1 << 10));
    TRY(config_read_size(&g->v_heads, o, "linear_num_value_heads", 1 << 10));
    TRY(config_read_size(&g->k_dim, o, "linear_key_head_dim", OP_DELTA_MAX));
    TRY(config_read_size(&g->v_dim, o, "linear_value_head_dim", OP_DELTA_MAX));
    if (g->v_heads % g->k_heads)
        return err_set(E_CONFIG,
                       "linear_num_value_heads %lld is not a multiple of "
                       "linear_num_key_heads %lld",
                       (long long)g->v_heads, (long long)g->k_heads);
    TRY(json_have_int(o, "linear_conv_kernel_dim", &taps));
    if (taps != OP_TAPS)
        return err_set(E_CONFIG, "linear_conv_kernel_dim is %lld, only %d is supported",
                       (long long)taps, OP_TAPS);
    return 0;
}

/* read_linear: layer_types wins, else every interval-th layer is full attention. */
static int read_linear(struct target_config *c, const struct json *o)
{
    const struct json *list = json_get(o, "layer_types");
    int64_t interval = 4;
    if (list && !json_is_null(list))
        return config_read_layers(c->linear, c->layers, o, "linear_attention");
    if (json_get(o, "full_attention_interval"))
        TRY(config_read_size(&interval, o, "full_attention_interval",
                             CONFIG_TARGET_LAYERS));
    for (int64_t l = 0; l < c->layers; l++)
        c->linear[l] = (l + 1) % interval != 0;
    return 0;
}

int config_read_hybrid(struct target_config *c, const struct json *o, double share)
{
    double turned = share * (double)c->head_dim;
    c->rotary = (int64_t)turned;
    if ((double)c->rotary != turned || c->rotary % 2 || c->rotary < 2)
        return err_set(E_CONFIG,
                       "partial_rotary_factor %g of heads of %lld channels is not an "
                       "even count",
                       share, (long long)c->head_dim);
    TRY(check_gates(o));
    TRY(read_delta(&c->delta, o));
    return read_linear(c, o);
}
