/* SPDX-License-Identifier: MIT */
/* steps.c - step, record, validate, save; nothing else happens while training.
 *
 * The place of a run is its step: rows taken = step x rows a step, whatever the epoch,
 * and anchors, rate and bias correction are functions of it. */
#include "steps.h"

#include "err.h"
#include "schedule.h"
#include "num.h"
#include "tool.h"

#include <stdio.h>
#include <string.h>

/* place says where the run stands after `step`; row is counted inside the epoch of the
 * last row taken, so that it is the same for a folder and a stream. */
static struct ckpt_place place(const struct steps *l, int64_t step)
{
    int64_t taken = step * l->recipe->accumulate, rows = l->in->about.rows;
    int64_t epoch = rows > 0 && taken > 0 ? (taken - 1) / rows : 0;
    return (struct ckpt_place){step, epoch, rows > 0 ? taken - epoch * rows : taken};
}

/* gather adds up the gradients of one step's rows, over all ranks.  The weights stay
 * those of the step before. */
static int gather(struct steps *l)
{
    struct metrics *m = &l->last;
    *m = (struct metrics){0};
    for (int64_t i = 0; i < l->recipe->accumulate; i++) {
        struct intake_row row;
        TRY(intake_next(l->in, &row));
        TRY(batch_pass(l->batch, l->drafter, &row, row.epoch, l->optim->grads, l->work,
                       m));
    }
    TRY(comm_sum(l->comm, (double *)m, METRICS_SUMS));
    return comm_sum_tensor(l->comm, l->optim->state.dev, l->optim->grads);
}

/* one_step takes step t, once gathered, and records it.  Rows without an anchor teach
 * nothing: a step of such rows alone leaves the weights as they are. */
static int one_step(struct steps *l, int64_t t)
{
    const struct recipe *r = l->recipe;
    struct metrics *m = &l->last;
    struct ckpt_place at = place(l, t);
    struct metrics_record record = {.step = t, .epoch = at.epoch, .row = at.row};
    record.rate = schedule_lr(t, r->steps, (int64_t)r->warmup, r->lr);
    if (m->weight > 0) {
        int rc = optimizer_step(l->optim, m->weight, record.rate, t, &record.norm);
        if (rc < 0)
            return err_wrap(rc, "step %lld, rows up to %lld of %s", (long long)t,
                            (long long)at.row - 1, l->in->view.name);
    }
    l->tokens += m->tokens;
    return metrics_step(l->record, &record, m);
}

static bool is_due(const struct steps *l, int64_t every, int64_t t)
{
    return t == l->recipe->steps || (every > 0 && t % every == 0);
}

static int validate(struct steps *l, int64_t t)
{
    struct metrics m;
    char text[128];
    TRY(valid_run(l->valid, l->batch, l->drafter, l->work, &m));
    metrics_say(text, sizeof text, &m);
    log_note(l->log, "step %lld: validation %s", (long long)t, text);
    return metrics_valid(l->record, t, &m);
}

static int save(struct steps *l, int64_t t)
{
    struct ckpt_place at = place(l, t);
    TRY(metrics_sync(l->record));
    int rc = ckpt_save(l->ckpt, l->drafter, l->optim, &at);
    if (rc < 0)
        return err_wrap(rc, "saving step %lld", (long long)t);
    log_more(l->log, "step %lld saved", (long long)t);
    return 0;
}

static void progress(struct steps *l, int64_t t, double begun)
{
    char text[192], count[32];
    double time = log_now() - begun;
    metrics_say(text, sizeof text - 64, &l->last);
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, ", %s tokens/s",
             num_count(count, sizeof count, time > 0 ? l->tokens / time : 0));
    log_progress(l->log, t, l->recipe->steps, "steps", text);
}

/* stopped ends a run that a signal interrupts after step t. */
static int stopped(struct steps *l, int64_t t)
{
    if (t > l->ckpt->step)
        TRY(save(l, t));
    return err_set(
        E_AGAIN, "stopped by a signal after step %lld of %lld%s; the same call goes on",
        (long long)t, (long long)l->recipe->steps, t ? ": saved" : "");
}

/* unfed ends a run whose rows of step t could not be had, for `rc`, and keeps what the
 * steps before have made: an input that ends, or is damaged, costs no more. */
static int unfed(struct steps *l, int64_t t, int rc)
{
    char why[ERR_TEXT_MAX];
    err_wrap(rc, "step %lld", (long long)t);
    if (rc == E_DEVICE || l->work->dev->error)
        return rc;
    if (tool_stop)
        return stopped(l, t - 1);
    if (t - 1 <= l->ckpt->step)
        return rc;
    snprintf(why, sizeof why, "%s", err_text());
    if (save(l, t - 1) < 0)
        return err_set(rc, "%s", why);
    return err_set(rc, "%s (step %lld is saved)", why, (long long)t - 1);
}

int steps_run(struct steps *l)
{
    double begun = log_now();
    int64_t steps = l->recipe->steps;
    for (int64_t t = l->ckpt->step + 1; t <= steps; t++) {
        int rc = gather(l);
        if (rc < 0)
            return unfed(l, t, rc);
        TRY(one_step(l, t));
        TRY(guard_step(l->guard, t, l->log));
        progress(l, t, begun);
        if (l->valid->in.reader && is_due(l, l->valid_every, t))
            TRY(validate(l, t));
        if (is_due(l, l->ckpt->every, t))
            TRY(save(l, t));
        if (tool_stop && t < steps)
            return stopped(l, t);
    }
    return 0;
}
