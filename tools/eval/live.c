/* SPDX-License-Identifier: MIT */
/* live.c - four phases over the same prompts, compared and reported. */
#include "live.h"

#include <string.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "lines.h"
#include "mem.h"
#include "op.h"
#include "param.h"
#include "phase.h"
#include "report.h"

enum { PLAIN, DRAFTER, UNTRAINED, LOOKUP, PHASES };

/* Everything a run holds; closed by close_all in any state. */
struct live {
    struct tool *tool;
    const struct eval_options *o;
    struct par *par;
    struct dev *dev;
    struct target *target;
    struct drafter trained, untrained;
    struct models models;
    struct prompts prompts;
    struct decode_rule rule;
    struct lanes lanes;
    struct phase phase[PHASES];
    struct buf made_of;
};

/* ---- setting up ---- */

/* read_input returns 1 when the results are there already. */
static int read_input(struct live *x)
{
    const struct eval_options *o = x->o;
    const char *files[] = {o->ids, o->emit, o->rounds, NULL};

    TRY(models_find(&x->models, o->device, o->target, TARGET_LOGITS, o->drafter));
    TRY(prompt_read(&x->prompts, x->tool->input[0],
                    target_config(x->models.shape)->vocab, o->prompts));
    TRY(report_origin(&x->made_of, &x->models, x->prompts.digest));
    return report_done(o->output, buf_text(&x->made_of), files);
}

static int open_target(struct live *x)
{
    const struct eval_options *o = x->o;
    struct dev_memory m;
    int told;

    TRY(par_open(&x->par, (int)tool_common.threads));
    TRY(dev_open(&x->dev, o->device, x->par));
    TRY(told = dev_memory(x->dev, &m));
    if (told)
        TRY(models_fit(&x->models, m.available));
    TRY(target_open(&x->target, x->dev, o->target, -1, true));
    x->rule = (struct decode_rule){.tokens = o->tokens,
                                   .ignore_stop = o->ignore_stop,
                                   .sample = {o->temperature, o->top_p},
                                   .seed = (uint64_t)o->seed};
    return 0;
}

/* open_untrained is the baseline: the same shape, weights as training begins. */
static int open_untrained(struct live *x)
{
    struct drafter *m = &x->untrained;
    struct tensor f = {0};
    float *flat;
    void *room = NULL;
    int rc;

    TRY(drafter_new(m, x->dev, &x->trained.config, x->trained.embed, x->trained.head));
    size_t bytes = (size_t)m->table.count * sizeof *flat;
    flat = mem_zero(1, bytes);
    if (!flat)
        return E_MEMORY;
    param_init(flat, &m->table, x->rule.seed, NULL);
    TRY_GOTO(rc, dev_alloc(x->dev, &room, bytes), out);
    TRY_GOTO(rc, dev_put(x->dev, room, flat, bytes), out);
    f = tensor_of(room, DT_F32, T1(m->table.count));
    op_convert(x->dev, m->flat, f);
    TRY_GOTO(rc, dev_sync(x->dev), out);
out:
    dev_free(x->dev, room, bytes);
    mem_free(flat);
    return rc;
}

static int open_drafters(struct live *x)
{
    struct tensor embed = target_embed(x->target), head = target_head(x->target);

    TRY(drafter_load(&x->trained, x->dev, x->models.drafter_dir, embed, head));
    return open_untrained(x);
}

static int open_lanes(struct live *x)
{
    const struct eval_options *o = x->o;
    const struct target_config *c = target_config(x->target);
    const char *path = x->tool->input[0];
    int64_t longest = x->prompts.longest + o->tokens;

    if (longest > c->max_positions)
        return err_set(E_CONFIG,
                       "%s: a prompt of %lld and %lld new tokens exceed the "
                       "target's %lld positions",
                       path, (long long)x->prompts.longest, (long long)o->tokens,
                       (long long)c->max_positions);
    const struct drafter *m = o->plain ? NULL : &x->trained;
    int64_t block = m ? m->config.block : 1;
    return lanes_open(&x->lanes, x->par, x->prompts.n, o->device, x->target, m,
                      longest + block);
}

static void close_all(struct live *x)
{
    for (int i = 0; i < PHASES; i++)
        phase_drop(&x->phase[i]);
    lanes_close(&x->lanes);
    drafter_drop(&x->untrained);
    drafter_drop(&x->trained);
    prompt_free(&x->prompts);
    target_close(x->target);
    dev_close(x->dev);
    par_close(x->par);
    models_drop(&x->models);
    buf_drop(&x->made_of);
}

/* ---- running ---- */

static int run_phase(struct live *x, int which, const struct phase *what)
{
    struct phase *p = &x->phase[which];
    bool baseline = which == UNTRAINED || which == LOOKUP;
    int64_t n = x->prompts.n, few = x->o->baselines;

    *p = *what;
    p->prompts = &x->prompts;
    p->count = baseline && few > 0 && few < n ? few : n;
    p->rule = &x->rule;
    p->want = x->phase[PLAIN].out;
    return phase_run(p, &x->lanes, &x->tool->log);
}

static int run_phases(struct live *x)
{
    const struct phase what[PHASES] = {
        [PLAIN] = {.name = "plain"},
        [DRAFTER] = {.name = "drafter",
                     .proposer = &propose_drafter,
                     .drafter = &x->trained},
        [UNTRAINED] = {.name = "untrained",
                       .proposer = &propose_drafter,
                       .drafter = &x->untrained},
        [LOOKUP] = {.name = "lookup", .proposer = &propose_lookup}};
    int last = x->o->plain ? PLAIN : LOOKUP;

    for (int i = PLAIN; i <= last; i++)
        TRY(run_phase(x, i, &what[i]));
    return 0;
}

/* ---- results ---- */

static int write_lines(const char *path, struct buf *text)
{
    TRY(buf_check(text));
    return file_write(path, buf_text(text), text->len);
}

static int write_files(const struct live *x)
{
    const struct eval_options *o = x->o;
    const struct phase *p = &x->phase[o->plain ? PLAIN : DRAFTER];
    struct buf ids = {0}, text = {0}, rounds = {0};
    int rc = 0;

    for (int64_t i = 0; i < p->count; i++) {
        const struct decoded *d = &p->out[i];
        const struct prompt *q = &x->prompts.prompt[i];
        lines_ids(&ids, i, d->ids, d->n);
        lines_text(&text, q, d);
        lines_rounds(&rounds, 0, i, q->n, d->accepted, d->rounds);
    }
    if (*o->ids)
        TRY_GOTO(rc, write_lines(o->ids, &ids), out);
    if (*o->emit)
        TRY_GOTO(rc, write_lines(o->emit, &text), out);
    if (*o->rounds)
        TRY_GOTO(rc, write_lines(o->rounds, &rounds), out);
out:
    buf_drop(&ids);
    buf_drop(&text);
    buf_drop(&rounds);
    return rc;
}

/* differs names the first sequence that is not the target's own. */
static int differs(const struct live *x)
{
    for (int i = DRAFTER; i < PHASES; i++) {
        const struct phase *p = &x->phase[i];
        int64_t at = p->wrong_prompt;
        if (!p->out || at < 0)
            continue;
        return err_set(E_DEVICE,
                       "prompt %lld (line %lld): token %lld decoded with %s differs "
                       "from plain decoding",
                       (long long)at, (long long)x->prompts.prompt[at].line,
                       (long long)p->wrong_token, p->name);
    }
    return 0;
}

static const struct tally *tally_of(const struct live *x, int which)
{
    return x->phase[which].out ? &x->phase[which].tally : NULL;
}

static int report(struct live *x)
{
    int wrong = differs(x);
    int64_t ties = 0;
    for (int i = DRAFTER; i < PHASES; i++)
        ties += x->phase[i].ties;
    struct report r = {.mode = x->o->plain ? "plain" : "live",
                       .made_of = buf_text(&x->made_of),
                       .drafter = tally_of(x, DRAFTER),
                       .untrained = tally_of(x, UNTRAINED),
                       .lookup = tally_of(x, LOOKUP),
                       .plain = tally_of(x, PLAIN),
                       .identical = wrong == 0,
                       .ties = ties,
                       .lanes = x->lanes.n};

    TRY(write_files(x));
    TRY(report_put(&r, x->o->output, &x->tool->log));
    if (r.drafter && tally_tau(r.drafter) < 1.2)
        log_warn(&x->tool->log,
                 "hardly anything is accepted: too little training, taps off by one, "
                 "another RoPE base, mask id or label convention, or text unlike the "
                 "training's; --walk over extracted states tells them apart");
    return wrong < 0 ? differs(x) : 0;
}

int live_run(struct tool *tool, const struct eval_options *o)
{
    struct live x = {.tool = tool, .o = o};
    int rc;

    TRY_GOTO(rc, read_input(&x), out);
    if (rc == 1) {
        log_note(&tool->log, "%s: complete, nothing to do", o->output);
        rc = 0;
        goto out;
    }
    TRY_GOTO(rc, open_target(&x), out);
    if (!o->plain)
        TRY_GOTO(rc, open_drafters(&x), out);
    TRY_GOTO(rc, open_lanes(&x), out);
    TRY_GOTO(rc, run_phases(&x), out);
    TRY_GOTO(rc, report(&x), out);
    log_end(&tool->log, "%lld prompts, %lld tokens", (long long)x.prompts.n,
            (long long)x.phase[PLAIN].tally.tokens);
out:
    close_all(&x);
    return rc;
}
