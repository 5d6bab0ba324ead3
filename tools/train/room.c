/* SPDX-License-Identifier: MIT */
/* room.c - planned, taken, warmed up, checked. */
#include "room.h"

#include "err.h"
#include "op.h"

/* check_fit compares the plan with what the card has for us, all in all. */
static int check_fit(const struct plan *p, const struct plan_for *f)
{
    struct dev_memory m;
    int told = dev_memory(f->dev, &m);
    return told <= 0 ? told : plan_fits(p, f, m.available + f->dev->held);
}

static int take(struct room *r, const struct plan_for *f, struct tensor embed,
                struct tensor head)
{
    struct dev *d = f->dev;
    TRY(drafter_new(&r->drafter, d, f->shape.config, embed, head));
    TRY(optimizer_open(&r->optim, d, r->drafter.flat, f->accumulate));
    TRY(batch_open(&r->batch, d, &f->shape));
    return arena_open(&r->work, d, "activations", r->plan.work);
}

/* warm_up takes a step with zero weights and a rate of zero: all scores are equal, so
 * nothing overflows whatever the target's matrices hold. */
static int warm_up(struct room *r)
{
    struct dev *d = r->work.dev;
    struct optimizer *o = &r->optim;
    struct drafter_row row;
    struct drafter_result result = {.hit = r->batch.hit};
    double norm;
    op_fill(d, o->master, 0);
    optimizer_round(o);
    batch_full(&r->batch, &row);
    op_fill(d, r->batch.states, 0);
    TRY(drafter_step(&r->drafter, &row, o->grads, (struct tensor){0}, &result,
                     &r->work));
    TRY(optimizer_step(o, result.weight, 0, 1, &norm));
    op_fill(d, o->m, 0);
    op_fill(d, o->v, 0);
    return dev_sync(d);
}

static int check_arenas(const struct room *r)
{
    const struct arena *const list[] = {&r->drafter.arena, &r->optim.gradients,
                                        &r->optim.state, &r->batch.arena, &r->work};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        TRY(guard_arena(list[i]));
    return 0;
}

/* fill takes all memory; when the card cannot give what it seemed to have (another
 * process was faster) the message names an option for what is left. */
static int fill(struct room *r, const struct plan_for *f, struct tensor embed,
                struct tensor head)
{
    TRY(check_fit(&r->plan, f));
    int rc = take(r, f, embed, head);
    if (rc == E_CONFIG)
        TRY(check_fit(&r->plan, f));
    return rc;
}

int room_open(struct room *r, const struct plan_for *f, struct tensor embed,
              struct tensor head, const struct adamw *base, double clip,
              struct log *log)
{
    int rc;
    *r = (struct room){0};
    TRY(plan_make(&r->plan, f));
    TRY_GOTO(rc, fill(r, f, embed, head), out);
    r->optim.base = *base;
    r->optim.clip = clip;
    rc = warm_up(r);
    if (rc < 0) {
        err_wrap(rc, "the step before all others");
        goto out;
    }
    TRY_GOTO(rc, check_arenas(r), out);
    rc = guard_begin(&r->guard, f->dev, r->plan.bill.total, log);
out:
    if (rc < 0)
        room_close(r);
    return rc;
}

void room_close(struct room *r)
{
    arena_close(&r->work);
    batch_close(&r->batch);
    optimizer_close(&r->optim);
    drafter_drop(&r->drafter);
    *r = (struct room){0};
}
