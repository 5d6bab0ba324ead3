/* SPDX-License-Identifier: MIT */
/* phase.c - prompts handed out to lanes, results taken back in order. */
#include "phase.h"

#include <string.h>

#include "err.h"
#include "mem.h"
#include "tie.h"
#include "tool.h"

/* ---- lanes ---- */

int lanes_open(struct lanes *l, struct par *par, int64_t most, const char *device,
               struct target *target, const struct drafter *drafter, int64_t capacity)
{
    int threads = strcmp(device, "cpu") == 0 ? par_threads(par) : 1;
    int n = most < threads ? (int)most : threads, rc = 0;

    *l = (struct lanes){.par = n > 1 ? par : NULL};
    l->lane = mem_zero((size_t)n, sizeof *l->lane);
    if (!l->lane)
        return E_MEMORY;
    while (rc == 0 && l->n < n) {
        rc = lane_open(&l->lane[l->n], device, n > 1 ? NULL : par, target, drafter,
                       capacity);
        l->n += rc == 0;
    }
    if (rc < 0)
        lanes_close(l);
    return rc;
}

void lanes_close(struct lanes *l)
{
    for (int i = 0; i < l->n; i++)
        lane_close(&l->lane[i]);
    mem_free(l->lane);
    *l = (struct lanes){0};
}

/* ---- the stream ---- */

/* A phase while it runs; the items of the stream are prompt numbers. */
struct running {
    struct phase *p;
    struct lanes *l;
    struct log *log;
    int64_t next;
};

static int hand_out(void *ctx, void *item)
{
    struct running *r = ctx;

    if (tool_stop)
        return err_set(E_AGAIN, "stopped by a signal while decoding %s", r->p->name);
    if (r->next == r->p->count)
        return 0;
    *(int64_t *)item = r->next++;
    return 1;
}

static int decode_one(void *ctx, void *item, int worker)
{
    struct running *r = ctx;
    struct phase *p = r->p;
    struct lane *lane = &r->l->lane[worker];
    int64_t i = *(int64_t *)item;
    const struct prompt *q = &p->prompts->prompt[i];
    int rc;

    if (p->proposer)
        rc = decode_prompt(&p->out[i], lane, p->proposer, q, p->rule);
    else
        rc = decode_plain(&p->out[i], lane, q, p->rule, i);
    return rc < 0 ? err_wrap(rc, "prompt %lld (line %lld)", (long long)i,
                             (long long)q->line)
                  : 0;
}

/* compare remembers the first token that differs from plain decoding.  A device that
 * rounds to bf16 may part from it at a tie; its only lane is idle here. */
static int compare(struct running *r, int64_t i)
{
    struct phase *p = r->p;
    struct lane *lane = &r->l->lane[0];
    const struct decoded *got = &p->out[i], *want = &p->want[i];
    int64_t n = got->n < want->n ? got->n : want->n, at = 0;
    double gap = 1;

    while (at < n && got->ids[at] == want->ids[at])
        at++;
    if (at == got->n && at == want->n)
        return 0;
    if (at < n && lane->dev->act == DT_BF16)
        TRY(tie_gap(lane, &p->prompts->prompt[i], want, at, got->ids[at], &gap));
    if (gap <= TIE_GAP) {
        p->ties++;
    } else if (p->wrong_prompt < 0) {
        p->wrong_prompt = i;
        p->wrong_token = at;
    }
    return 0;
}

static int take_back(void *ctx, void *item)
{
    struct running *r = ctx;
    int64_t i = *(int64_t *)item;
    const struct decoded *d = &r->p->out[i];

    if (r->p->want)
        TRY(compare(r, i));
    log_progress(r->log, i + 1, r->p->count, "prompts", r->p->name);
    return tally_add(&r->p->tally, d->ids, d->n, d->accepted, d->rounds);
}

int phase_run(struct phase *p, struct lanes *l, struct log *log)
{
    static const struct par_stages stages = {hand_out, decode_one, take_back};
    struct running r = {.p = p, .l = l, .log = log};
    int items = 2 * l->n;
    int64_t *number = mem_zero((size_t)items, sizeof *number);
    void **item = mem_alloc((size_t)items * sizeof *item);
    int rc;

    p->wrong_prompt = -1;
    p->out = mem_zero((size_t)p->count, sizeof *p->out);
    if (!number || !item || !p->out) {
        rc = E_MEMORY;
        goto out;
    }
    TRY_GOTO(rc, tally_open(&p->tally, l->lane[0].block), out);
    for (int i = 0; i < l->n; i++)
        lane_use(&l->lane[i], p->drafter);
    for (int i = 0; i < items; i++)
        item[i] = &number[i];
    double begun = log_now();
    TRY_GOTO(rc, par_stream(l->par, &stages, &r, item, items), out);
    p->tally.seconds = log_now() - begun;
out:
    mem_free(number);
    mem_free(item);
    return rc;
}

void phase_drop(struct phase *p)
{
    for (int64_t i = 0; p->out && i < p->count; i++)
        decode_free(&p->out[i]);
    mem_free(p->out);
    tally_close(&p->tally);
    *p = (struct phase){0};
}
