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

/* config_read_keys looks up every key of o: among those that all configs share, then in
 * `rule`. */
int config_read_keys(const struct json *o, const struct config_rule *rule);

/* The eight sizes, in this order, each at least 1 and below a bound that keeps products
 * of three of them inside 63 bits. */
struct config_sizes {
    int64_t hidden, inter, layers, heads, kv_heads, head_dim, vocab, max_positions;
};
int config_read_sizes(struct config_sizes *s, const struct json *o);

/* config_read_body checks what makes a body of the Qwen3 kind (silu, no biases) and
 * reads rms_norm_eps and the rotary base, from rope_parameters or from rope_theta with
 * rope_scaling; scaled and partial rotation are refused. */
int config_read_body(double *eps, double *theta, const struct json *o);

/* config_read_sliding reads layer_types into sliding[0 .. layers) and returns how many
 * slide; without the key none does. */
int config_read_sliding(bool *sliding, int64_t layers, const struct json *o);

/* config_read_stops reads eos_token_id, a number or a list, and returns the count. */
int config_read_stops(int64_t *stop, int max, const struct json *o);

#endif
