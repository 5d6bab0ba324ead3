/* SPDX-License-Identifier: MIT */
/* target_stream.c - a target that does not fit: its layers come one after another.
 *
 * The embedding stays.  Of the layers two are on the device: one at work, and the next
 * as it is stored, which is copied from the mapped checkpoint while the first works:
 *
 *     place l      stage -> place            with the work, in order
 *     work         rows through layer l
 *     bring l + 1  checkpoint -> stage       beside the work of l
 *
 * A layer is brought once for all passes of a group (target_group), so the more rows a
 * group has, the less the bus matters.  The values are those of a target that is there
 * whole, by the same conversions: so are the bits. */
#include "target_parts.h"

#include "err.h"
#include "mem.h"
#include "num.h"

int target_stream_measure(struct target *t, struct weights *w,
                          struct target_stream_sizes *s)
{
    struct arena plan = arena_plan();
    *s = (struct target_stream_sizes){0};
    TRY(weights_load_part(w, t->dev, &plan, 0));
    TRY(target_open_rope(t, &plan));
    s->stays = plan.used;
    for (int64_t l = 0; l < t->layers; l++) {
        struct arena from = arena_plan(), to = arena_plan();
        weights_place(w, t->dev, &to, &from, target_part(l));
        s->stage = from.used > s->stage ? from.used : s->stage;
        s->place = to.used > s->place ? to.used : s->place;
    }
    return 0;
}

static int load(struct target *t, const struct target_stream_sizes *bytes)
{
    struct target_stream *s = t->stream;
    TRY(arena_open(&t->arena, t->dev, "the target", bytes->stays));
    TRY(arena_open(&s->stage, t->dev, "a layer", bytes->stage));
    TRY(arena_open(&s->place, t->dev, "a layer", bytes->place));
    TRY(weights_load_part(&s->weights, t->dev, &t->arena, 0));
    return target_open_rope(t, &t->arena);
}

int target_stream_open(struct target *t, struct st_model *m, struct weights *w,
                       size_t memory)
{
    char need[16], have[16];
    struct target_stream_sizes bytes;
    TRY(target_stream_measure(t, w, &bytes));
    if (t->sizes.parts > memory)
        return err_set(E_CONFIG,
                       "%s: embedding and two layers of the target take %s, %s are "
                       "allowed",
                       m->dir, num_bytes(need, sizeof need, (double)t->sizes.parts),
                       num_bytes(have, sizeof have, (double)memory));
    struct target_stream *s = t->stream = mem_zero(1, sizeof *s);
    if (!s)
        return E_MEMORY;
    s->model = *m;
    s->weights = *w;
    s->brought = -1;
    *m = (struct st_model){0};
    *w = (struct weights){0};
    return load(t, &bytes);
}

void target_stream_close(struct target *t)
{
    struct target_stream *s = t->stream;
    if (!s)
        return;
    arena_close(&s->stage);
    arena_close(&s->place);
    weights_drop(&s->weights);
    st_model_close(&s->model);
    mem_free(s);
    t->stream = NULL;
}

int target_stream_bring(struct target *t, int64_t l)
{
    struct target_stream *s = t->stream;
    if (!s || s->brought == l)
        return 0;
    arena_reset(&s->stage, 0);
    s->brought = -1;
    TRY(weights_bring(&s->weights, t->dev, &s->stage, target_part(l)));
    s->brought = l;
    dev_order(t->dev);
    return 0;
}

int target_stream_place(struct target *t, int64_t l)
{
    struct target_stream *s = t->stream;
    if (!s)
        return 0;
    TRY(target_stream_bring(t, l));
    arena_reset(&s->stage, 0);
    arena_reset(&s->place, 0);
    weights_place(&s->weights, t->dev, &s->place, &s->stage, target_part(l));
    dev_order(t->dev);
    return 0;
}
