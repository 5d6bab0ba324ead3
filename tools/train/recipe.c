/* SPDX-License-Identifier: MIT */
/* recipe.c - resolving what the options leave open.
 *
 * Defaults: shape from the target (five layers, as published drafters have), decay of
 * the weights by block size and the rest from arXiv 2602.06036, appendix A.1. */
#include "recipe.h"

#include "err.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_LAYERS = 5, DEFAULT_EPOCHS = 6 };

/* A bound of one option; `open` says that low itself is not allowed. */
struct bound {
    const char *name;
    double value, low, high;
    bool open;
};

static int check_bounds(const struct bound *b, int n)
{
    for (int i = 0; i < n; i++) {
        bool low = b[i].open ? b[i].value > b[i].low : b[i].value >= b[i].low;
        if (!low || b[i].value > b[i].high)
            return err_set(E_USAGE, "--%s %g: must be %s %g and at most %g", b[i].name,
                           b[i].value, b[i].open ? "above" : "at least", b[i].low,
                           b[i].high);
    }
    return 0;
}

static int causal_value(const char *text)
{
    static const char *const name[] = {"sliding", "none", "all"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, name[i]) == 0)
            return i - 1; // -1, 0, 1 as struct drafter_config has it
    return err_set(E_USAGE, "--causal %s: must be sliding, all or none", text);
}

int recipe_check(const struct recipe *r)
{
    const double many = 1e9;
    const struct bound bound[] = {
        {"layers", (double)r->layers, 0, CONFIG_LAYERS, false},
        {"inter", (double)r->inter, 0, 524288, false},
        {"heads", (double)r->heads, 0, 1024, false},
        {"kv-heads", (double)r->kv_heads, 0, 1024, false},
        {"head-dim", (double)r->head_dim, 0, many, false},
        {"block", (double)r->block, 2, RECIPE_BLOCK_MAX, false},
        {"mask-id", (double)r->mask_id, 0, many, false},
        {"window", (double)r->window, 0, many, false},
        {"sliding", (double)r->sliding, -1, CONFIG_LAYERS, false},
        {"rope-theta", r->rope_theta, 0, 1e15, false},
        {"anchors", (double)r->anchors, 1, 1e6, false},
        {"gamma", r->gamma, -1, many, false},
        {"accumulate", (double)r->accumulate, 1, many, false},
        {"seed", (double)r->seed, 0, 9e18, false},
        {"steps", (double)r->steps, 0, 99999999, false},
        {"epochs", (double)r->epochs, 0, many, false},
        {"lr", r->lr, 0, 1, true},
        {"beta1", r->beta1, 0, 0.999999, false},
        {"beta2", r->beta2, 0, 0.9999999, false},
        {"eps", r->eps, 0, 1, true},
        {"decay", r->decay, 0, 1, false},
        {"clip", r->clip, 0, 1e9, false},
        {"warmup", r->warmup, 0, many, false},
    };
    if (r->mask_id == -1)
        return err_set(E_USAGE,
                       "--mask-id is needed: a reserved id of the target's "
                       "vocabulary (Qwen3: 151669, Qwen3.5 and later: 248070)");
    if (r->steps && r->epochs)
        return err_set(E_USAGE, "--steps and --epochs exclude each other");
    if (r->rope_theta > 0 && r->rope_theta <= 1)
        return err_set(E_USAGE, "--rope-theta %g: 0 or above 1", r->rope_theta);
    if (r->sliding > 0 && !r->window)
        return err_set(E_USAGE, "--sliding %lld: needs --window",
                       (long long)r->sliding);
    int causal = causal_value(r->causal);
    if (causal < -1)
        return causal;
    return check_bounds(bound, (int)(sizeof bound / sizeof *bound));
}

static void fill(int64_t *value, int64_t open, int64_t resolved)
{
    if (*value == open)
        *value = resolved;
}

/* decay_by_block: appendix A.1 names 7, 5 and 4 for blocks of 16, 10 and 8; others are
 * given the slope of the first. */
static double decay_by_block(int64_t block)
{
    return block == 10 ? 5 : block == 8 ? 4 : 7 * (double)block / 16;
}

int recipe_shape(struct recipe *r, struct drafter_config *c,
                 const struct target_config *t, const int64_t *tap, int taps)
{
    fill(&r->layers, 0, DEFAULT_LAYERS);
    fill(&r->inter, 0, t->inter);
    fill(&r->heads, 0, t->heads);
    fill(&r->kv_heads, 0, t->kv_heads);
    fill(&r->head_dim, 0, t->head_dim);
    fill(&r->sliding, -1, r->window ? r->layers - 1 : 0);
    if (r->sliding > r->layers)
        return err_set(E_CONFIG, "--sliding %lld: the drafter has %lld layers",
                       (long long)r->sliding, (long long)r->layers);
    if (r->rope_theta == 0)
        r->rope_theta = t->rope_theta;
    if (r->gamma < 0)
        r->gamma = decay_by_block(r->block);
    *c = (struct drafter_config){.hidden = t->hidden,
                                 .inter = r->inter,
                                 .layers = r->layers,
                                 .heads = r->heads,
                                 .kv_heads = r->kv_heads,
                                 .head_dim = r->head_dim,
                                 .vocab = t->vocab,
                                 .max_positions = t->max_positions,
                                 .eps = t->eps,
                                 .rope_theta = r->rope_theta,
                                 .block = r->block,
                                 .mask_id = r->mask_id,
                                 .taps = taps,
                                 .target_layers = t->layers,
                                 .window = r->sliding ? r->window : 0,
                                 .causal = causal_value(r->causal),
                                 .stop = t->stops ? t->stop[0] : -1};
    for (int i = 0; i < taps; i++)
        c->tap[i] = tap[i];
    for (int64_t l = 0; l < r->sliding; l++)
        c->sliding[l] = true;
    return config_drafter_check(c, t);
}

int recipe_steps(struct recipe *r, int64_t rows)
{
    if (rows < 0 && r->epochs > 1)
        return err_set(E_USAGE, "--epochs %lld: a stream is read once",
                       (long long)r->epochs);
    if (rows < 0 && !r->steps)
        return err_set(E_USAGE, "--steps is needed: a stream does not say how long it "
                                "is, and the learning rate's schedule must know");
    if (!r->steps) {
        fill(&r->epochs, 0, DEFAULT_EPOCHS);
        r->steps = r->epochs * rows / r->accumulate;
    }
    if (!r->steps)
        return err_set(E_CONFIG,
                       "%lld rows x %lld epochs: less than one step of "
                       "--accumulate %lld rows",
                       (long long)rows, (long long)r->epochs, (long long)r->accumulate);
    if (r->warmup < 1)
        r->warmup = round(r->warmup * (double)r->steps);
    if (r->warmup > (double)r->steps)
        return err_set(E_CONFIG, "--warmup %g: the run has %lld steps", r->warmup,
                       (long long)r->steps);
    return 0;
}

int recipe_differs(char *name, int64_t size, const char *was, const char *now)
{
    while (*was || *now) {
        size_t a = strcspn(was, " "), b = strcspn(now, " ");
        if (a != b || memcmp(was, now, a) != 0) {
            const char *from = b ? now : was;
            size_t n = strcspn(from, "= ");
            if (n >= (size_t)size)
                n = (size_t)size - 1;
            memcpy(name, from, n);
            name[n] = '\0';
            return 1;
        }
        was += a + (was[a] == ' ');
        now += b + (now[b] == ' ');
    }
    return 0;
}
