/* SPDX-License-Identifier: MIT */
/* rig.c - see rig.h. */
#include "rig.h"

#include "err.h"
#include "num.h"

int rig_check(struct rig *r, const struct rig_options *o, const char *taps, bool last)
{
    struct target_config c;

    r->o = *o;
    TRY(dev_outline(&r->card, o->device));
    TRY(config_target(&c, o->target));
    TRY(taps_parse(&r->taps, taps, c.layers));
    TRY(target_outline(&r->shape, &r->card, o->target,
                       last ? -1 : r->taps.layer[r->taps.n - 1], TARGET_HEADLESS));
    hash_text(r->digest, target_digest(r->shape));
    r->form.width = c.hidden;
    r->form.taps = r->taps.n;
    r->form.last = last;
    return 0;
}

/* weights_memory is what the target may keep on the device: as was said, else what is
 * there beside the working memory of a pass. */
static int weights_memory(const struct rig *r, size_t *memory)
{
    struct dev_memory m;
    *memory = r->o.weights;
    int told = *memory ? 0 : dev_memory(r->dev, &m);
    if (told > 0) {
        size_t work = r->o.memory;
        work = work && work < m.available / 2 ? work : m.available / 2;
        *memory = m.available - work;
    }
    return told;
}

/* tell_memory says what is taken, of which `target` by weights and the device itself:
 * nothing is added while rows are computed. */
static void tell_memory(struct rig *r, size_t target, struct log *log)
{
    char weights[32], passes[32], all[32];
    num_bytes(weights, sizeof weights, (double)target);
    num_bytes(passes, sizeof passes, (double)(r->dev->held - target));
    num_bytes(all, sizeof all, (double)r->dev->held);
    if (target_streams(r->target))
        log_note(log,
                 "the target does not fit: its layers are brought one by one, each for "
                 "%d rows; it takes %s, their passes %s, %s in all",
                 r->pump.capture.group, weights, passes, all);
    else
        log_more(log, "the target takes %s, passes %s, %s in all", weights, passes,
                 all);
}

int rig_open(struct rig *r, struct log *log)
{
    int64_t last = r->form.last ? -1 : r->taps.layer[r->taps.n - 1];
    size_t weights;

    TRY(par_open(&r->compute, (int)r->o.threads));
    TRY(dev_open(&r->dev, r->o.device, r->compute));
    TRY(weights_memory(r, &weights));
    TRY(target_open_within(&r->target, r->dev, r->o.target, last, weights));
    size_t target = r->dev->held;
    TRY(pump_open(&r->pump, r->target, r->dev, &r->taps, &r->form, r->o.memory));
    r->held = r->dev->held;
    tell_memory(r, target, log);
    return 0;
}

void rig_close(struct rig *r)
{
    pump_close(&r->pump);
    target_close(r->target);
    target_close(r->shape);
    dev_close(r->dev);
    par_close(r->compute);
    *r = (struct rig){0};
}

int rig_run(struct rig *r, const struct pump_ends *ends)
{
    TRY(pump_run(&r->pump, ends));
    if (r->dev->held != r->held)
        bug("%zu bytes of the device in use, %zu were planned", r->dev->held, r->held);
    return 0;
}
