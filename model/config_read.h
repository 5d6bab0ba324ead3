/* SPDX-License-Identifier: MIT */
/* config_read.h - what the configs of targets and drafters have in common.
 *
 * Private to config*.c.  Nothing is skipped silently: every key of a file is looked up
 * in a list of rules, and one that is not there is refused unless it is switched off
 * (null or false).  Failures are E_CONFIG for what is not supported and E_FORMAT for
 * what is malformed; callers add the file's name. */
#ifndef CONFIG_READ_H
#define CONFIG_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "json.h"

enum config_use {
    CONFIG_KNOWN,  /* read elsewhere, or without influence on the mathematics */
    CONFIG_ONE,    /* a factor that must be 1 */
    CONFIG_REFUSED /* not supported, `why` says what it would mean */
};

struct config_rule {
    const char *key; /* NULL ends a list */
    enum config_use use;
    const char *why;
};

/* config_read_file hands the root of DIR/config.json to `read`; failures name the file.
 */
typedef int config_reader(void *config, const struct json *root);
int config_read_file(const char *dir, config_reader *read, void *config);

/* config_read_keys looks up every key of o: in `rule`, then among those that all
 * configs share. */
int config_read_keys(const struct json *o, const struct config_rule *rule);

/* config_read_size reads an integer in [1, max]. */
int config_read_size(int64_t *out, const struct json *o, const char *key, int64_t max);

/* The eight sizes, in this order, each at least 1 and below a bound that keeps products
 * of three of them inside 63 bits. */
struct config_sizes {
    int64_t hidden, inter, layers, heads, kv_heads, head_dim, vocab, max_positions;
};
int config_read_sizes(struct config_sizes *s, const struct json *o);

/* How a family may turn its heads by position (config_rope.c): all channels alike, or
 * also with Llama 3's scaling, or also only a share of them, a quarter by default. */
enum config_turns { CONFIG_PLAIN = 0, CONFIG_LLAMA3 = 1, CONFIG_PARTIAL = 2 };
struct config_rope {
    double theta;
    double share; /* of the channels, that turn */
    struct config_scaling scaling;
};

/* config_read_rope reads the rotation, from rope_parameters or from rope_theta with
 * rope_scaling; what is not in `turns` is refused. */
int config_read_rope(struct config_rope *r, const struct json *o, unsigned turns);

/* config_read_body checks what makes a body of the Qwen3 kind (silu, no
 * attention_bias) and reads rms_norm_eps and the rotation. */
int config_read_body(double *eps, struct config_rope *rope, const struct json *o,
                     unsigned turns);

/* config_read_layers reads layer_types: is[l] for l in [0, layers) says whether layer l
 * is of type `other` and not full_attention; returns how many are.  Without the key
 * none is. */
int config_read_layers(bool *is, int64_t layers, const struct json *o,
                       const char *other);

/* config_read_hybrid reads what only targets of the Qwen3.5 kind have
 * (config_hybrid.c), c's sizes being there: rotary, from the share of a head that
 * turns, linear, delta. */
extern const struct config_rule config_hybrid_rule[];
int config_read_hybrid(struct target_config *c, const struct json *o, double share);

/* config_read_stops reads eos_token_id, a number or a list, and returns the count. */
int config_read_stops(int64_t *stop, int max, const struct json *o);

#endif
