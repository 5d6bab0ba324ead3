/* SPDX-License-Identifier: MIT */
/* guard.c - planned and held, full arenas, free memory before and after. */
#include "guard.h"

#include "err.h"
#include "num.h"

int guard_arena(const struct arena *a)
{
    if (a->high == a->size)
        return 0;
    return err_set(E_DEVICE, "memory for %s: %zu bytes are planned, %zu are used",
                   a->name, a->size, a->high);
}

static int check_held(const struct guard *g)
{
    if (g->dev->held == g->planned)
        return 0;
    return err_set(E_DEVICE, "memory: %zu bytes are planned, %zu are held", g->planned,
                   g->dev->held);
}

/* say tells once why free memory is not compared. */
static void say_shared(struct log *log)
{
    log_note(log, "free memory is not checked: another process is on the card");
}

int guard_begin(struct guard *g, struct dev *d, size_t planned, struct log *log)
{
    char rest[32], spare[32];
    *g = (struct guard){.dev = d, .planned = planned};
    TRY(check_held(g));
    int told = dev_memory(d, &g->mark);
    if (told <= 0)
        return told;
    const struct dev_memory *m = &g->mark;
    log_note(log, "driver, code and libraries take %s of the card, %s are free",
             num_bytes(rest, sizeof rest, (double)(m->total - m->available - d->held)),
             num_bytes(spare, sizeof spare, (double)m->available));
    g->left = m->shared ? 0 : GUARD_STEPS;
    if (m->shared)
        say_shared(log);
    return 0;
}

int guard_step(struct guard *g, int64_t t, struct log *log)
{
    struct dev_memory now;
    TRY(check_held(g));
    if (g->left == 0)
        return 0;
    TRY(dev_memory(g->dev, &now));
    struct dev_memory was = g->mark;
    g->mark = now;
    if (now.shared) {
        g->left = 0;
        say_shared(log);
    } else if (now.shapes == was.shapes) {
        if (now.available != was.available)
            return err_set(E_DEVICE,
                           "step %lld: %zu bytes of the card were free before it, %zu "
                           "after: something allocates inside a step",
                           (long long)t, was.available, now.available);
        if (--g->left == 0)
            log_more(log, "step %lld: %zu bytes of the card are free, as before steps",
                     (long long)t, now.available);
    }
    return 0;
}
