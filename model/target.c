/* SPDX-License-Identifier: MIT */
/* target.c - opening a target: its config, its checkpoint, what others may ask of it.
 */
#include "target_parts.h"

#include "err.h"
#include "mem.h"

/* read_shape reads the config and settles that the first `layers` layers (-1: all) are
 * wanted. */
static int read_shape(struct target *t, const char *dir, int64_t layers,
                      enum target_head head)
{
    TRY(config_target(&t->config, dir));
    t->layers = layers < 0 ? t->config.layers : layers;
    if (head == TARGET_LOGITS && t->layers != t->config.layers)
        bug("a head behind %lld of %lld layers", (long long)t->layers,
            (long long)t->config.layers);
    if (t->layers > t->config.layers)
        return err_set(E_CONFIG, "%s: layer %lld is wanted, the last one is %lld", dir,
                       (long long)t->layers - 1, (long long)t->config.layers - 1);
    t->layer = mem_zero((size_t)t->config.layers, sizeof *t->layer);
    return t->layer ? 0 : E_MEMORY;
}

/* How much of opening is done. */
enum extent { OUTLINE, WEIGHTS };

/* open_with opens that many layers and the head in the given form.  Everything that can
 * be wrong with a checkpoint is found before the device is asked for memory. */
static int open_with(struct target **out, struct dev *d, const char *dir,
                     int64_t layers, enum target_head head, size_t memory,
                     enum extent extent)
{
    struct st_model m = {0};
    struct target *t = mem_zero(1, sizeof *t);
    int rc = E_MEMORY;
    if (!t)
        return rc;
    t->dev = d;
    TRY_GOTO(rc, read_shape(t, dir, layers, head), out);
    TRY_GOTO(rc, st_model_open(&m, dir), out);
    rc = extent == OUTLINE ? target_measure(t, &m, head)
                           : target_load(t, &m, head, memory);
out:
    st_model_close(&m);
    if (rc < 0)
        target_close(t);
    else
        *out = t;
    return rc;
}

/* layers_to is how many layers there are up to `last`; -1 stays: all. */
static int64_t layers_to(int64_t last)
{
    return last < 0 ? -1 : last + 1;
}

int target_outline(struct target **out, struct dev *d, const char *dir,
                   int64_t last_layer, enum target_head head)
{
    int64_t layers = head == TARGET_VOCABULARY ? 0 : layers_to(last_layer);
    return open_with(out, d, dir, layers, head, 0, OUTLINE);
}

int target_open(struct target **out, struct dev *d, const char *dir, int64_t last_layer,
                bool head)
{
    return open_with(out, d, dir, layers_to(last_layer),
                     head ? TARGET_LOGITS : TARGET_HEADLESS, 0, WEIGHTS);
}

int target_random(struct target **out, struct dev *d, const struct target_config *c,
                  int64_t layers, uint64_t seed)
{
    struct target *t = mem_zero(1, sizeof *t);
    int rc = E_MEMORY;
    if (layers < 1 || layers > c->layers)
        bug("%lld layers of a target of %lld", (long long)layers, (long long)c->layers);
    if (!t)
        return rc;
    t->dev = d;
    t->config = *c;
    t->layers = layers;
    t->layer = mem_zero((size_t)c->layers, sizeof *t->layer);
    rc = t->layer ? target_load_drawn(t, seed) : E_MEMORY;
    if (rc < 0)
        target_close(t);
    else
        *out = t;
    return rc;
}

int target_open_within(struct target **out, struct dev *d, const char *dir,
                       int64_t last_layer, size_t memory)
{
    return open_with(out, d, dir, layers_to(last_layer), TARGET_HEADLESS, memory,
                     WEIGHTS);
}

bool target_streams(const struct target *t)
{
    return t->stream != NULL;
}

int target_vocabulary(struct target **out, struct dev *d, const char *dir)
{
    return open_with(out, d, dir, 0, TARGET_VOCABULARY, 0, WEIGHTS);
}

void target_close(struct target *t)
{
    if (!t)
        return;
    if (!t->shared) {
        target_stream_close(t);
        arena_close(&t->arena);
        mem_free(t->layer);
    }
    mem_free(t);
}

int target_share(struct target **out, const struct target *t, struct dev *d)
{
    if (t->stream)
        bug("a target that is there in parts cannot be shared");
    struct target *view = mem_alloc(sizeof *view);
    if (!view)
        return E_MEMORY;
    *view = *t;
    view->dev = d;
    view->shared = true;
    *out = view;
    return 0;
}

const struct target_config *target_config(const struct target *t)
{
    return &t->config;
}

struct target_sizes target_sizes(const struct target *t)
{
    return t->sizes;
}

uint64_t target_digest(const struct target *t)
{
    return t->digest;
}

struct tensor target_embed(const struct target *t)
{
    return t->embed;
}

struct tensor target_head(const struct target *t)
{
    return t->head;
}
