/* SPDX-License-Identifier: MIT */
/* train.c - hidden states in, a drafter out: options, what must fit together, the run.
 *
 * Nothing is computed before everything has been checked: the shards against the
 * target, the shape against both, the folder against what it holds, the memory against
 * the plan. Then the loop has only steps to take. */
#include "batch.h"
#include "ckpt.h"
#include "comm.h"
#include "err.h"
#include "file.h"
#include "intake.h"
#include "lock.h"
#include "mem.h"
#include "metrics.h"
#include "num.h"
#include "optimizer.h"
#include "par.h"
#include "plan.h"
#include "recipe.h"
#include "room.h"
#include "selftest.h"
#include "step.h"
#include "steps.h"
#include "target.h"
#include "tool.h"
#include "valid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct recipe recipe = {.block = 16,
                               .mask_id = -1,
                               .sliding = -1,
                               .causal = "sliding",
                               .anchors = 512,
                               .accumulate = 1,
                               .gamma = -1,
                               .lr = 6e-4,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .clip = 1.0,
                               .warmup = 0.04};

static struct {
    const char *run, *target, *device, *valid, *log;
    int64_t valid_every, save_every, keep;
    bool plan, selftest;
} cfg = {.device = "cpu", .valid_every = 500, .save_every = 500, .keep = 3};

static const struct opt options[] = {
    OPT_HEAD("input and output"),
    OPT_TEXT('o', "output", &cfg.run, "RUN", "folder of the run and its checkpoints",
             0),
    OPT_TEXT('m', "target", &cfg.target, "DIR", "checkpoint of the target", 0),
    OPT_TEXT(0, "valid", &cfg.valid, "DIR", "hidden states to validate on", 0),
    OPT_INT(0, "valid-every", &cfg.valid_every, "STEPS",
            "steps between validations; 0: after the last", 0),
    OPT_INT(0, "save-every", &cfg.save_every, "STEPS",
            "steps between checkpoints; 0: after the last", 0),
    OPT_INT(0, "keep", &cfg.keep, "N", "checkpoints that stay; 0: all", 0),
    OPT_TEXT(0, "log", &cfg.log, "FILE", "JSON lines; RUN/log.jsonl when not given", 0),
    OPT_HEAD("the drafter (0: as the target's)"),
    OPT_INT(0, "layers", &recipe.layers, "N", "layers; 0: 5", OPT_CONTENT),
    OPT_INT(0, "inter", &recipe.inter, "N", "width of the MLP", OPT_CONTENT),
    OPT_INT(0, "heads", &recipe.heads, "N", "query heads", OPT_CONTENT),
    OPT_INT(0, "kv-heads", &recipe.kv_heads, "N", "key and value heads", OPT_CONTENT),
    OPT_INT(0, "head-dim", &recipe.head_dim, "N", "width of a head", OPT_CONTENT),
    OPT_REAL(0, "rope-theta", &recipe.rope_theta, "X", "base of RoPE", OPT_CONTENT),
    OPT_INT(0, "block", &recipe.block, "N", "tokens of a block, its anchor included",
            OPT_CONTENT),
    OPT_INT(0, "mask-id", &recipe.mask_id, "ID",
            "reserved id of the target's vocabulary that stands for a token to draft",
            OPT_CONTENT),
    OPT_INT(0, "window", &recipe.window, "TOKENS",
            "reach of sliding layers; 0: none slides", OPT_CONTENT),
    OPT_INT(0, "sliding", &recipe.sliding, "N",
            "how many layers slide, from the first; -1: all but the last", OPT_CONTENT),
    OPT_TEXT(0, "causal", &recipe.causal, "WHICH",
             "layers that look only back inside a block: sliding, all or none",
             OPT_CONTENT),
    OPT_HEAD("training"),
    OPT_INT(0, "anchors", &recipe.anchors, "N", "blocks a row, at most", OPT_CONTENT),
    OPT_REAL(0, "gamma", &recipe.gamma, "X",
             "decay of the loss over a block's slots; 0: none, -1: by --block",
             OPT_CONTENT),
    OPT_INT(0, "epochs", &recipe.epochs, "N", "passes over the rows; 0: 6", 0),
    OPT_INT(0, "steps", &recipe.steps, "N", "optimizer steps; 0: by --epochs",
            OPT_CONTENT),
    OPT_INT(0, "accumulate", &recipe.accumulate, "ROWS", "rows of a step", OPT_CONTENT),
    OPT_REAL(0, "lr", &recipe.lr, "X", "highest learning rate", OPT_CONTENT),
    OPT_REAL(0, "warmup", &recipe.warmup, "X",
             "warm-up: share of the steps, or steps from 1 on", OPT_CONTENT),
    OPT_REAL(0, "beta1", &recipe.beta1, "X", "decay of the first moment", OPT_CONTENT),
    OPT_REAL(0, "beta2", &recipe.beta2, "X", "decay of the second moment", OPT_CONTENT),
    OPT_REAL(0, "eps", &recipe.eps, "X", "added to the root of the second moment",
             OPT_CONTENT),
    OPT_REAL(0, "decay", &recipe.decay, "X", "weight decay", OPT_CONTENT),
    OPT_REAL(0, "clip", &recipe.clip, "X", "longest gradient; 0: any", OPT_CONTENT),
    OPT_INT('s', "seed", &recipe.seed, "N", "of weights and anchors", OPT_CONTENT),
    OPT_HEAD("device"),
    OPT_TEXT('d', "device", &cfg.device, "NAME", "cpu, cuda or cuda:N", 0),
    OPT_FLAG(0, "plan", &cfg.plan, "print the memory that is needed, and end", 0),
    OPT_FLAG(0, "selftest", &cfg.selftest,
             "take steps with drawn numbers, check and time them, and end", 0),
    TOOL_OPTIONS,
    OPT_END};

/* All that a run holds; a zero struct is closed. */
struct run {
    struct tool *tool;
    struct intake in;
    struct valid valid;
    struct drafter_config config;
    struct par *par;
    struct dev *dev, card;         /* card: an outline, for the plan */
    struct target *target, *shape; /* shape: looked at, not loaded */
    struct plan_for ask;
    struct buf options; /* the record of options, resolved */
    char *log_path;
    struct lock lock; /* of the run's folder */
    struct ckpt ckpt;
    struct room room;
    struct comm comm;
    struct metrics_log record;
};

static int check_call(const struct tool *t)
{
    if (!t->inputs)
        return err_set(E_USAGE, "no input: folders of hidden states, or -");
    if (!cfg.target)
        return err_set(E_USAGE, "-m TARGET is needed");
    if (!cfg.run && !cfg.plan)
        return err_set(E_USAGE, "-o RUN is needed");
    if (cfg.valid_every < 0 || cfg.save_every < 0 || cfg.keep < 0)
        return err_set(E_USAGE, "--valid-every, --save-every, --keep: below zero");
    return recipe_check(&recipe);
}

/* look finds what is wrong with the target's files; no device is needed. */
static int look(struct run *r)
{
    TRY(dev_outline(&r->card, cfg.device));
    return target_outline(&r->shape, &r->card, cfg.target, -1, TARGET_VOCABULARY);
}

/* resolve opens the input and settles shape and steps. */
static int resolve(struct run *r)
{
    const struct target_config *target = target_config(r->shape);
    const struct intake_about *a = &r->in.about;
    TRY(intake_open(&r->in, r->tool->input, r->tool->inputs));
    shard_watch(r->in.reader, &tool_stop);
    if (a->hidden != target->hidden)
        return err_set(E_FORMAT, "%s: hidden states of width %lld, the target has %lld",
                       r->in.view.name, (long long)a->hidden,
                       (long long)target->hidden);
    TRY(recipe_shape(&recipe, &r->config, target, a->tap, a->taps));
    TRY(recipe_steps(&recipe, a->rows));
    opt_record(&r->options, options);
    return buf_check(&r->options);
}

static struct batch_shape batch_shape(const struct run *r)
{
    int64_t length = r->in.about.length, valid = r->valid.in.about.length;
    return (struct batch_shape){.config = &r->config,
                                .length = valid > length ? valid : length,
                                .anchors = recipe.anchors,
                                .seed = recipe.seed,
                                .gamma = recipe.gamma,
                                .fp8 = r->in.about.fp8};
}

/* ask_plan finds out what is to be planned for, from the target's files and the rows',
 * which must belong together. */
static int ask_plan(struct run *r)
{
    char was[HASH_TEXT], now[HASH_TEXT];
    hash_text(was, r->in.about.target);
    hash_text(now, target_digest(r->shape));
    if (strcmp(was, now) != 0)
        return err_set(E_FORMAT, "%s: hidden states of another target (%s; %s is %s)",
                       r->in.view.name, was, cfg.target, now);
    if (cfg.valid)
        TRY(valid_open(&r->valid, cfg.valid, &r->in.about));
    r->ask.dev = &r->card;
    r->ask.vocabulary = target_sizes(r->shape).whole;
    r->ask.shape = batch_shape(r);
    r->ask.accumulate = recipe.accumulate > 1;
    return 0;
}

/* open_device opens the device and the frozen matrices there. */
static int open_device(struct run *r)
{
    TRY(par_open(&r->par, (int)tool_common.threads));
    TRY(dev_open(&r->dev, cfg.device, r->par));
    r->ask.dev = r->dev;
    return target_vocabulary(&r->target, r->dev, cfg.target);
}

static int print_plan(const struct run *r)
{
    struct plan plan;
    struct buf text = {0};
    TRY(plan_make(&plan, &r->ask));
    plan_print(&text, &plan);
    int rc = buf_check(&text);
    if (rc == 0)
        fputs(text.p, stdout);
    buf_drop(&text);
    return rc;
}

/* find looks at what the run's folder holds; 1: it is complete. */
static int find(struct run *r)
{
    struct ckpt *c = &r->ckpt;
    uint64_t whole, valid;
    c->run = cfg.run;
    c->every = cfg.save_every;
    c->keep = cfg.keep;
    c->about.options = r->options.p;
    c->about.taps = r->in.about.taps_text;
    hash_text(c->about.target, r->in.about.target);
    if (r->in.view.first_row == 0)
        memcpy(c->about.input, r->in.about.first, HASH_TEXT);
    TRY(intake_digest(&r->in, &whole));
    if (r->in.about.rows >= 0)
        hash_text(c->about.whole, whole);
    if (r->valid.in.reader) {
        TRY(intake_digest(&r->valid.in, &valid));
        hash_text(c->about.valid, valid);
    }
    TRY(file_make_dirs(cfg.run));
    TRY(lock_take(&r->lock, cfg.run, ".train.lock", 0, 1));
    TRY(ckpt_open(c));
    return c->step >= recipe.steps;
}

static int make_room(struct run *r)
{
    const struct adamw base = {.beta1 = (float)recipe.beta1,
                               .beta2 = (float)recipe.beta2,
                               .eps = (float)recipe.eps,
                               .decay = (float)recipe.decay};
    TRY(open_device(r));
    TRY(room_open(&r->room, &r->ask, target_embed(r->target), target_head(r->target),
                  &base, recipe.clip, &r->tool->log));
    dev_identity(r->dev, r->ckpt.about.device);
    return 0;
}

static int init_weights(struct run *r)
{
    float *master = mem_alloc((size_t)r->room.drafter.table.count * sizeof *master);
    if (!master)
        return E_MEMORY;
    param_init(master, &r->room.drafter.table, (uint64_t)recipe.seed, r->par);
    int rc = optimizer_start(&r->room.optim, master);
    mem_free(master);
    return rc;
}

/* begin brings weights, input and log to where the run stands. */
static int begin(struct run *r)
{
    int64_t step = r->ckpt.step;
    TRY(step ? ckpt_load(&r->ckpt, &r->room.optim) : init_weights(r));
    if (step || r->in.about.rows < 0)
        TRY(intake_seek(&r->in, step * recipe.accumulate));
    r->log_path = cfg.log ? mem_text(cfg.log) : file_path(cfg.run, "log.jsonl");
    if (!r->log_path)
        return E_MEMORY;
    if (step)
        log_note(&r->tool->log, "going on after step %lld of %lld", (long long)step,
                 (long long)recipe.steps);
    if (step && strcmp(r->ckpt.made_on, r->ckpt.about.device) != 0)
        log_warn(&r->tool->log,
                 "begun on %s, going on with %s: the bits will not be those of a run "
                 "that was left alone",
                 r->ckpt.made_on, r->ckpt.about.device);
    return metrics_open(&r->record, r->log_path, step, recipe.block);
}

static int learn(struct run *r)
{
    struct steps steps = {.recipe = &recipe,
                          .in = &r->in,
                          .batch = &r->room.batch,
                          .drafter = &r->room.drafter,
                          .optim = &r->room.optim,
                          .work = &r->room.work,
                          .guard = &r->room.guard,
                          .comm = &r->comm,
                          .ckpt = &r->ckpt,
                          .valid = &r->valid,
                          .valid_every = cfg.valid_every,
                          .record = &r->record,
                          .log = &r->tool->log};
    char text[128], tokens[32], name[STEP_NAME];
    TRY(steps_run(&steps));
    metrics_say(text, sizeof text, &steps.last);
    log_end(&r->tool->log, "%lld steps, %s tokens, last %s: %s/%s",
            (long long)recipe.steps, num_count(tokens, sizeof tokens, steps.tokens),
            text, cfg.run, step_name(name, r->ckpt.step));
    return 0;
}

static void close_run(struct run *r)
{
    metrics_close(&r->record);
    room_close(&r->room);
    comm_close(&r->comm);
    target_close(r->target);
    target_close(r->shape);
    dev_close(r->dev);
    par_close(r->par);
    valid_close(&r->valid);
    intake_close(&r->in);
    buf_drop(&r->options);
    mem_free(r->log_path);
    lock_give(&r->lock);
}

static int selftest(struct tool *t)
{
    if (t->inputs)
        return err_set(E_USAGE, "--selftest reads nothing");
    if (recipe.mask_id < 0)
        recipe.mask_id = 0; // what stands for it is the published target's
    TRY(recipe_check(&recipe));
    return selftest_run(cfg.device, &recipe, &t->log);
}

static int train(struct tool *t)
{
    struct run r = {.tool = t, .record = {.fd = -1}};
    int rc;
    TRY_GOTO(rc, check_call(t), out);
    TRY_GOTO(rc, look(&r), out);
    TRY_GOTO(rc, resolve(&r), out);
    TRY_GOTO(rc, ask_plan(&r), out);
    if (cfg.plan) {
        rc = print_plan(&r);
        goto out;
    }
    TRY_GOTO(rc, find(&r), out);
    if (rc > 0) {
        log_note(&t->log, "%s is complete: %lld steps; nothing to do", cfg.run,
                 (long long)r.ckpt.step);
        rc = 0;
        goto out;
    }
    TRY_GOTO(rc, comm_open(&r.comm), out);
    TRY_GOTO(rc, make_room(&r), out);
    TRY_GOTO(rc, begin(&r), out);
    rc = learn(&r);
out:
    close_run(&r);
    return rc;
}

int main(int argc, char **argv)
{
    struct tool tool = {.about = {"draft-train",
                                  "train a DFlash drafter on hidden states",
                                  "[options] SHARDS...|- -o RUN -m TARGET"},
                        .options = options};
    int rc = tool_begin(&tool, argc, argv);
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // else code takes memory when first used
    if (rc == 0)
        rc = cfg.selftest ? selftest(&tool) : train(&tool);
    return tool_end(&tool, rc);
}
