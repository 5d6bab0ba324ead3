/* SPDX-License-Identifier: MIT */
/* rig.c - see rig.h. */
#include "rig.h"

#include <string.h>

#include "err.h"
#include "num.h"
#include "spare.h"

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

/* Of a card so much is left alone: for the code of kernels that come when they are
 * first used, and for the rounding of allocations. */
static const size_t reserve = (size_t)256 << 20;

static size_t usable(size_t available)
{
    return available > reserve ? available - reserve : 1;
}

/* ask_fit: with `device` bytes on a device of its own; without (0), of what the host
 * has a quarter is for rows, and, where the CPU is the device, the rest for it. */
static struct fit_ask ask_fit(const struct rig *r, size_t device)
{
    size_t told = spare_memory(""), spare = told < 4 ? 4 : told; // 0 would be any
    bool host = strcmp(r->o.device, "cpu") == 0;
    int threads = r->o.threads ? (int)r->o.threads : par_processors();
    return (struct fit_ask){.target = r->shape,
                            .dev = &r->card,
                            .form = r->form,
                            .rows = threads > 1 ? FIT_ROWS : 1,
                            .weights = r->o.weights,
                            .passes = r->o.memory,
                            .host = r->o.host,
                            .device = host ? spare - spare / 4 : device,
                            .spare = r->o.host ? spare : spare / 4};
}

int rig_plan(struct rig *r, struct buf *out)
{
    const struct fit_ask a = ask_fit(r, 0);
    TRY(fit_make(&r->fit, &a));
    fit_print(out, &r->fit);
    return buf_check(out);
}

/* tell says what is taken: nothing is added while rows are computed. */
static void tell(const struct rig *r, struct log *log)
{
    char target[32], device[32], host[32];
    num_bytes(target, sizeof target, (double)r->fit.weights);
    num_bytes(device, sizeof device, (double)r->fit.device.total);
    num_bytes(host, sizeof host, (double)r->fit.host.total);
    if (r->fit.streams)
        log_note(log,
                 "the target does not fit: its layers are brought one by one, each for "
                 "%d rows; it takes %s, %s in all, rows %s of the host's memory",
                 r->fit.group, target, device, host);
    else
        log_more(log, "the target takes %s, %s in all, rows %s of the host's memory",
                 target, device, host);
}

int rig_open(struct rig *r, struct log *log)
{
    int64_t last = r->form.last ? -1 : r->taps.layer[r->taps.n - 1];
    struct dev_memory m;

    TRY(par_open(&r->compute, (int)r->o.threads));
    TRY(dev_open(&r->dev, r->o.device, r->compute));
    int told = dev_memory(r->dev, &m);
    TRY(told);
    const struct fit_ask a = ask_fit(r, told ? usable(m.available) : 0);
    TRY(fit_make(&r->fit, &a));
    tell(r, log);
    TRY(target_open_within(&r->target, r->dev, r->o.target, last, r->fit.weights));
    TRY(pump_open(&r->pump, r->target, r->dev, &r->taps, &r->form, &r->fit));
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
    if (r->dev->held != r->fit.held)
        bug("%zu bytes of the device in use, %zu were planned", r->dev->held,
            r->fit.held);
    return 0;
}
