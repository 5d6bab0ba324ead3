/* SPDX-License-Identifier: MIT */
/* config_rope.c - how heads turn with the position: rope_parameters, or the older keys
 * rope_theta, rope_scaling and partial_rotary_factor beside each other.
 *
 * A file may say a thing in both places, but not two things.  The keys of multimodal
 * positions (mrope_*) choose among three position rows that are equal for text, so they
 * change nothing here. */
#include "config_read.h"

#include "err.h"

#include <math.h>
#include <string.h>

#define TYPE                                                                           \
    {"rope_type", CONFIG_KNOWN, NULL},                                                 \
    {                                                                                  \
        "type", CONFIG_KNOWN, NULL                                                     \
    }
#define END                                                                            \
    {                                                                                  \
        NULL, CONFIG_KNOWN, NULL                                                       \
    }

static const struct config_rule plain[] = {TYPE, END};
static const struct config_rule llama3[] = {
    TYPE,
    {"factor", CONFIG_KNOWN, NULL},
    {"high_freq_factor", CONFIG_KNOWN, NULL},
    {"low_freq_factor", CONFIG_KNOWN, NULL},
    {"original_max_position_embeddings", CONFIG_KNOWN, NULL},
    END,
};
static const struct config_rule partial[] = {
    TYPE,
    {"mrope_interleaved", CONFIG_KNOWN, NULL},
    {"mrope_section", CONFIG_KNOWN, NULL},
    {"partial_rotary_factor", CONFIG_KNOWN, NULL},
    END,
};

/* rope_type returns 1 for Llama 3's scaling, 0 for none. */
static int rope_type(const struct json *rope, unsigned turns)
{
    static const char *const name[] = {"rope_type", "type"};
    int scaled = 0;
    for (int i = 0; i < 2; i++) {
        const char *type = "default";
        TRY(json_have_text(rope, name[i], &type));
        if ((turns & CONFIG_LLAMA3) && strcmp(type, "llama3") == 0)
            scaled = 1;
        else if (strcmp(type, "default") != 0)
            return err_set(E_CONFIG,
                           "rotary scaling of type \"%s\" is not supported, only "
                           "\"default\"%s",
                           type, turns & CONFIG_LLAMA3 ? " and \"llama3\"" : "");
    }
    return scaled;
}

static int read_scaling(struct config_scaling *s, const struct json *rope)
{
    TRY(json_need_real(rope, "factor", &s->factor));
    TRY(json_need_real(rope, "low_freq_factor", &s->low));
    TRY(json_need_real(rope, "high_freq_factor", &s->high));
    TRY(json_need_real(rope, "original_max_position_embeddings", &s->original));
    bool good = s->factor >= 1 && isfinite(s->factor) && s->low > 0 &&
                s->high > s->low && isfinite(s->high) && s->original >= 1;
    if (!good || !isfinite(s->original))
        return err_set(E_CONFIG,
                       "rotary scaling with factor %g, frequencies %g to %g and %g "
                       "positions makes no sense",
                       s->factor, s->low, s->high, s->original);
    return 0;
}

/* agree takes a number that may stand in two places; *have is 0 while it is unknown. */
static int agree(double *have, const struct json *o, const char *key)
{
    double v = 0;
    int found = json_have_real(o, key, &v);
    TRY(found);
    if (found && *have != 0 && v != *have)
        return err_set(E_CONFIG, "%s is given twice, as %g and as %g", key, *have, v);
    if (found)
        *have = v;
    return 0;
}

static int read_object(struct config_rope *r, const struct json *rope, unsigned turns)
{
    int scaled = rope_type(rope, turns);
    TRY(scaled);
    TRY(config_read_keys(rope, scaled                   ? llama3
                               : turns & CONFIG_PARTIAL ? partial
                                                        : plain));
    if (scaled)
        TRY(read_scaling(&r->scaling, rope));
    TRY(agree(&r->theta, rope, "rope_theta"));
    return turns & CONFIG_PARTIAL ? agree(&r->share, rope, "partial_rotary_factor") : 0;
}

int config_read_rope(struct config_rope *r, const struct json *o, unsigned turns)
{
    static const char *const form[] = {"rope_parameters", "rope_scaling"};
    *r = (struct config_rope){0};
    for (int i = 0; i < 2; i++) {
        const struct json *rope = json_get(o, form[i]);
        if (!rope || json_is_null(rope))
            continue;
        TRY(json_need_object(o, form[i], &rope));
        TRY(read_object(r, rope, turns));
    }
    TRY(agree(&r->theta, o, "rope_theta"));
    if (turns & CONFIG_PARTIAL)
        TRY(agree(&r->share, o, "partial_rotary_factor"));
    if (!(r->theta > 1) || !isfinite(r->theta))
        return err_set(E_CONFIG, "rope_theta is %s, a number above 1 is needed",
                       r->theta == 0  ? "missing"
                       : r->theta > 1 ? "infinite"
                                      : "too small");
    if (r->share == 0)
        r->share = turns & CONFIG_PARTIAL ? 0.25 : 1;
    if (!(r->share > 0 && r->share <= 1))
        return err_set(E_CONFIG, "partial_rotary_factor is %g, must be in (0, 1]",
                       r->share);
    return 0;
}
