/* SPDX-License-Identifier: MIT */
/* target.c - opening a target: its config, its checkpoint, what others may ask of it.
 */
#include "target_parts.h"

#include "err.h"
#include "mem.h"

/* open_with opens the first `layers` layers (-1: all) and the head in the given form,
 * or, with `only`, tells what they would take and leaves the device alone. Everything
 * that can be wrong with a checkpoint is found before the device is asked for memory.
 */
static int open_with(struct target **out, struct dev *d, const char *dir,
                     int64_t layers, enum target_head head, size_t memory, size_t *only)
{
    struct st_model m = {0};
    struct target *t = mem_zero(1, sizeof *t);
    int rc = E_MEMORY;
    if (!t)
        return rc;
    t->dev = d;
    TRY_GOTO(rc, config_target(&t->config, dir), out);
    t->layers = layers < 0 ? t->config.layers : layers;
    if (head == TARGET_LOGITS && layers >= 0 && t->layers != t->config.layers)
        bug("a head behind %lld of %lld layers", (long long)t->layers,
            (long long)t->config.layers);
    if (t->layers > t->config.layers) {
        rc = err_set(E_CONFIG, "%s: layer %lld is wanted, the last one is %lld", dir,
                     (long long)t->layers - 1, (long long)t->config.layers - 1);
        goto out;
    }
    t->layer = mem_zero((size_t)t->config.layers, sizeof *t->layer);
    if (!t->layer) {
        rc = E_MEMORY;
        goto out;
    }
    TRY_GOTO(rc, st_model_open(&m, dir), out);
    rc = target_load(t, &m, head, memory, only);
out:
    st_model_close(&m);
    if (rc < 0)
        target_close(t);
    else
        *out = t;
    return rc;
}

int target_open(struct target **out, struct dev *d, const char *dir, int64_t last_layer,
                bool head)
{
    return open_with(out, d, dir, last_layer < 0 ? -1 : last_layer + 1,
                     head ? TARGET_LOGITS : TARGET_HEADLESS, 0, NULL);
}

int target_random(struct target **out, struct dev *d, const struct target_config *c,
                  int64_t layers, uint64_t seed)
{
    struct target *t = mem_zero(1, sizeof *t);
    int rc = E_MEMORY;
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
    return open_with(out, d, dir, last_layer < 0 ? -1 : last_layer + 1, TARGET_HEADLESS,
                     memory, NULL);
}

bool target_streams(const struct target *t)
{
    return t->stream != NULL;
}

int target_vocabulary(struct target **out, struct dev *d, const char *dir)
{
    return open_with(out, d, dir, 0, TARGET_VOCABULARY, 0, NULL);
}

int target_vocabulary_bytes(size_t *bytes, uint64_t *digest, struct dev *d,
                            const char *dir)
{
    struct target *t;
    TRY(open_with(&t, d, dir, 0, TARGET_VOCABULARY, 0, bytes));
    *digest = t->digest;
    target_close(t);
    return 0;
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
