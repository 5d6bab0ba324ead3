/* SPDX-License-Identifier: MIT */
/* offline.c - shards through the walk; rounds come out in the order of the source. */
#include "offline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "lines.h"
#include "mem.h"
#include "report.h"
#include "walk.h"

/* The rounds of one run, kept for sorting: packing has shuffled the documents. */
struct kept {
    int64_t file, record, anchor, rounds;
    int32_t *accepted; /* owned */
};

struct offline {
    struct tool *tool;
    const struct eval_options *o;
    struct models models;
    struct par *par;
    struct dev *dev;
    struct target *vocabulary;
    struct drafter drafter;
    struct shard_reader *shards;
    struct walk walk;
    struct tally tally;
    struct kept *kept;
    int64_t runs, room;
    int64_t rows;
};

/* ---- setting up ---- */

static int open_models(struct offline *x)
{
    const struct eval_options *o = x->o;
    struct target **t = &x->vocabulary;

    TRY(par_open(&x->par, (int)tool_common.threads));
    TRY(dev_open(&x->dev, o->device, x->par));
    TRY(target_vocabulary(t, x->dev, o->target));
    TRY(drafter_load(&x->drafter, x->dev, x->models.drafter_dir, target_embed(*t),
                     target_head(*t)));
    return tally_open(&x->tally, x->drafter.config.block);
}

static int check_target(const struct offline *x)
{
    const char *found = shard_meta(x->shards, "target");

    if (!found)
        return err_set(E_FORMAT, "%s: not hidden shards: no target in the metadata",
                       x->tool->input[0]);
    if (strcmp(found, x->models.target) != 0)
        return err_set(E_FORMAT, "%s: states of target %s, %s is %s", x->tool->input[0],
                       found, x->o->target, x->models.target);
    return 0;
}

static int check_taps(const struct offline *x)
{
    const struct drafter_config *c = &x->drafter.config;
    const char *found = shard_meta(x->shards, "taps");
    char want[CONFIG_TAPS * 8];

    for (int i = 0, at = 0; i < c->taps; i++)
        at += snprintf(want + at, sizeof want - (size_t)at, "%s%lld", i ? "," : "",
                       (long long)c->tap[i]);
    if (!found || strcmp(found, want) != 0)
        return err_set(E_CONFIG, "%s: taps %s, the drafter reads %s", x->tool->input[0],
                       found ? found : "are not named", want);
    return 0;
}

static int check_row(struct offline *x, const struct row *r)
{
    const struct drafter_config *c = &x->drafter.config;
    int64_t vocab = target_config(x->vocabulary)->vocab;

    if (!r->aux || r->width != c->taps * c->hidden)
        return err_set(E_FORMAT,
                       "row %lld: states of width %lld, the drafter reads "
                       "%lld x %lld",
                       (long long)r->index, (long long)r->width, (long long)c->taps,
                       (long long)c->hidden);
    if (x->walk.length && x->walk.length != r->text.length)
        return err_set(E_FORMAT, "row %lld: %lld tokens after rows of %lld",
                       (long long)r->index, (long long)r->text.length,
                       (long long)x->walk.length);
    for (int64_t s = 0; s < r->text.length; s++)
        if (r->text.ids[s] < 0 || r->text.ids[s] >= vocab)
            return err_set(E_FORMAT,
                           "row %lld: token %lld: id %d of a vocabulary of "
                           "%lld",
                           (long long)r->index, (long long)s, r->text.ids[s],
                           (long long)vocab);
    return 0;
}

static void close_all(struct offline *x)
{
    for (int64_t i = 0; i < x->runs; i++)
        mem_free(x->kept[i].accepted);
    mem_free(x->kept);
    tally_close(&x->tally);
    walk_close(&x->walk);
    drafter_drop(&x->drafter);
    target_close(x->vocabulary);
    shard_close(x->shards);
    dev_close(x->dev);
    par_close(x->par);
    models_drop(&x->models);
}

/* ---- walking ---- */

static int keep(void *ctx, const struct walk_run *r)
{
    struct offline *x = ctx;
    size_t bytes = (size_t)r->rounds * sizeof *r->accepted;

    TRY(tally_add(&x->tally, r->ids, r->n, r->accepted, r->rounds));
    struct kept *at = mem_room(x->kept, x->runs, &x->room, sizeof *at);
    if (!at)
        return E_MEMORY;
    x->kept = at;
    int32_t *accepted = mem_alloc(bytes);
    if (!accepted)
        return E_MEMORY;
    memcpy(accepted, r->accepted, bytes);
    x->kept[x->runs++] =
        (struct kept){r->file, r->record, r->anchor, r->rounds, accepted};
    return 0;
}

static int walk_shard(struct offline *x, const struct shard_view *v)
{
    struct row row;

    for (int64_t i = 0; i < v->rows; i++) {
        if (tool_stop)
            return err_set(E_AGAIN, "stopped by a signal after %lld rows",
                           (long long)x->rows);
        TRY(row_view(&row, v, i));
        TRY(check_row(x, &row));
        if (!x->walk.length) {
            TRY(walk_open(&x->walk, &x->drafter, target_config(x->vocabulary),
                          row.text.length, row.scale != NULL));
            x->walk.tokens = x->o->tokens;
            x->walk.ignore_stop = x->o->ignore_stop;
        }
        TRY(walk_row(&x->walk, &row, keep, x));
        x->rows++;
        int64_t total = shard_total_rows(x->shards);
        log_progress(&x->tool->log, x->rows, total < 0 ? 0 : total, "rows", NULL);
    }
    return 0;
}

static int walk_all(struct offline *x)
{
    struct shard_view view;
    double begun = log_now();
    int rc;

    while ((rc = shard_next(x->shards, &view)) == 1) {
        if (x->rows == 0) {
            TRY(check_target(x));
            TRY(check_taps(x));
        }
        TRY(walk_shard(x, &view));
    }
    x->tally.seconds = log_now() - begun;
    if (rc == 0 && x->runs == 0)
        return err_set(E_FORMAT, "%s: no supervised tokens", x->tool->input[0]);
    return rc;
}

/* ---- results ---- */

static int by_source(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->record != y->record)
        return x->record < y->record ? -1 : 1;
    return (x->anchor > y->anchor) - (x->anchor < y->anchor);
}

static int write_rounds(struct offline *x)
{
    struct buf text = {0};

    qsort(x->kept, (size_t)x->runs, sizeof *x->kept, by_source);
    for (int64_t i = 0; i < x->runs; i++) {
        const struct kept *k = &x->kept[i];
        lines_rounds(&text, k->file, k->record, k->anchor, k->accepted, k->rounds);
    }
    int rc = buf_check(&text);
    if (rc == 0)
        rc = file_write(x->o->rounds, text.p, text.len);
    buf_drop(&text);
    return rc;
}

static int finish(struct offline *x)
{
    struct buf made_of = {0};
    uint64_t input;
    int rc;

    TRY_GOTO(rc, shard_digest(x->shards, &input), out);
    TRY_GOTO(rc, report_origin(&made_of, &x->models, input), out);
    struct report r = {.mode = "walk",
                       .made_of = buf_text(&made_of),
                       .drafter = &x->tally,
                       .lanes = 1};
    if (*x->o->rounds)
        TRY_GOTO(rc, write_rounds(x), out);
    TRY_GOTO(rc, report_put(&r, x->o->output, &x->tool->log), out);
out:
    buf_drop(&made_of);
    return rc;
}

/* is_done looks at folders alone: a stream's digest shows only at its end. */
static int is_done(struct offline *x)
{
    const char *files[] = {x->o->rounds, NULL};
    struct buf made_of = {0};
    uint64_t input;

    if (shard_total_rows(x->shards) < 0)
        return 0;
    int rc = shard_digest(x->shards, &input);
    if (rc == 0)
        rc = report_origin(&made_of, &x->models, input);
    if (rc == 0)
        rc = report_done(x->o->output, buf_text(&made_of), files);
    buf_drop(&made_of);
    return rc;
}

int offline_run(struct tool *tool, const struct eval_options *o)
{
    struct offline x = {.tool = tool, .o = o};
    int rc;

    TRY_GOTO(
        rc, models_find(&x.models, o->device, o->target, TARGET_VOCABULARY, o->drafter),
        out);
    TRY_GOTO(rc, shard_open(&x.shards, tool->input, tool->inputs), out);
    shard_watch(x.shards, &tool_stop);
    TRY_GOTO(rc, is_done(&x), out);
    if (rc == 1) {
        log_note(&tool->log, "%s: complete, nothing to do", o->output);
        rc = 0;
        goto out;
    }
    TRY_GOTO(rc, open_models(&x), out);
    TRY_GOTO(rc, walk_all(&x), out);
    TRY_GOTO(rc, finish(&x), out);
    log_end(&tool->log, "%lld rows, %lld runs, %lld tokens", (long long)x.rows,
            (long long)x.runs, (long long)x.tally.tokens);
out:
    close_all(&x);
    return rc;
}
