/* SPDX-License-Identifier: MIT */
/* recheck.c - draft-extract --verify.
 *
 *     shards -> texts of drawn rows -> rig (target) -> compared with the same shards
 *
 * Rows go the way of extraction, so several may be under way: the states to compare
 * with are read a second time, when they are needed.
 *
 * States from another device, or from passes cut elsewhere, differ by rounding: a tap
 * is compared by the norm of its difference over its own.  Rows of another target,
 * layer or text are off by tens of percent. */
#include "recheck.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "num.h"
#include "rng.h"
#include "tool.h"

/* Largest difference that is rounding: bf16 through many layers; e4m3 has steps of an
 * eighth. */
static const double limit_bf16 = 0.02, limit_fp8 = 0.06;

/* Where one goes through the shards. */
struct place {
    struct shard_reader *reader;
    struct shard_view view;
};

struct recheck {
    const struct recheck_plan *plan;
    struct log *log;
    struct place text, states; /* of what is computed, and what it is compared with */
    struct rig rig;
    struct rng rng;
    int64_t total, want;          /* rows of the input, and to be drawn */
    int64_t first, at, drawn;     /* index of the first row; rows passed and drawn */
    int64_t looked, same, beyond; /* rows: all, equal bit for bit, too far off */
    char worst[160];              /* says what the first of these is */
};

/* ---- opening ---- */

static int need_meta(const char **out, const struct recheck *x, const char *key)
{
    *out = shard_meta(x->text.reader, key);
    return *out ? 0 : err_set(E_FORMAT, "%s: no %s", x->text.view.name, key);
}

static int open_place(struct place *p, const struct recheck_plan *plan)
{
    TRY(shard_open(&p->reader, plan->path, plan->paths));
    shard_watch(p->reader, &tool_stop);
    if (shard_total_rows(p->reader) < 0)
        return err_set(E_USAGE, "a stream cannot be verified: its rows pass once");
    int rc = shard_next(p->reader, &p->view);
    if (rc < 1)
        return rc < 0 ? rc : err_set(E_FORMAT, "%s: no rows", plan->path[0]);
    return 0;
}

static int open_input(struct recheck *x)
{
    struct hidden_form *f = &x->rig.form;
    struct row row;
    TRY(open_place(&x->text, x->plan));
    x->total = shard_total_rows(x->text.reader);
    x->want = x->plan->rows < x->total ? x->plan->rows : x->total;
    x->first = x->text.view.first_row;
    TRY(row_view(&row, &x->text.view, 0));
    if (!row.aux)
        return err_set(E_FORMAT, "%s: packed rows, no hidden states",
                       x->text.view.name);
    f->length = row.text.length;
    f->fp8 = row.scale != NULL;
    return 0;
}

/* check_widths: the columns are as wide as the taps and the target make them. */
static int check_widths(const struct recheck *x)
{
    const struct hidden_form *f = &x->rig.form;
    const struct shard_view *v = &x->text.view;
    const struct st_tensor *last = NULL;
    struct row row;
    TRY(row_view(&row, v, 0));
    shard_column(v, "last", &last);
    if (row.width != f->taps * f->width || (f->fp8 && row.taps != f->taps))
        return err_set(E_FORMAT, "%s: aux is not %d taps of width %" PRId64, v->name,
                       f->taps, f->width);
    if (last && (last->type != ST_BF16 || last->rank != 3 ||
                 last->dim[1] != f->length || last->dim[2] != f->width))
        return err_set(E_FORMAT,
                       "%s: last is not bf16 [rows, %" PRId64 ", %" PRId64 "]", v->name,
                       f->length, f->width);
    return 0;
}

static int check_target(struct recheck *x)
{
    const struct shard_view *v = &x->text.view;
    const char *made_by, *taps, *dir = x->plan->rig.target;
    TRY(need_meta(&made_by, x, "target"));
    TRY(need_meta(&taps, x, "taps"));
    TRY(rig_check(&x->rig, &x->plan->rig, taps, shard_column(v, "last", NULL) != NULL));
    if (strcmp(made_by, x->rig.digest) != 0)
        return err_set(E_CONFIG, "%s: made by target %s, %s is %s", v->name, made_by,
                       dir, x->rig.digest);
    return check_widths(x);
}

static void close_all(struct recheck *x)
{
    rig_close(&x->rig);
    shard_close(x->text.reader);
    shard_close(x->states.reader);
}

/* ---- comparing ---- */

static double value(const struct hidden_form *f, const void *aux, const float *scale,
                    int64_t at, int64_t i)
{
    if (f->fp8)
        return (double)num_e4m3_f32(((const uint8_t *)aux)[at * f->width + i]) *
               (double)scale[at];
    return (double)num_bf16_f32(((const uint16_t *)aux)[at * f->width + i]);
}

/* How far stored values are from computed ones, by norms. */
struct gap {
    double sum, all;
};

static void gap_add(struct gap *g, double stored, double computed)
{
    g->sum += (stored - computed) * (stored - computed);
    g->all += computed * computed;
}

static double gap_share(const struct gap *g)
{
    double share = sqrt(g->sum / g->all);
    return isfinite(share) ? share : INFINITY;
}

/* apart is |stored - computed| / |computed| over the tokens of tap k; infinite where a
 * stored one is no number. */
static double apart(const struct hidden_form *f, const struct row *stored,
                    const struct hidden_row *r, int k)
{
    struct gap g = {0};
    for (int64_t s = 0; s < f->length; s++)
        for (int64_t i = 0; i < f->width && r->doc[s] >= 0; i++) {
            int64_t at = s * f->taps + k;
            gap_add(&g, value(f, stored->aux, stored->scale, at, i),
                    value(f, r->aux, r->scale, at, i));
        }
    return gap_share(&g);
}

/* apart_last is the same for `last`. */
static double apart_last(const struct hidden_form *f, const uint16_t *stored,
                         const uint16_t *computed)
{
    struct gap g = {0};
    for (int64_t i = 0; i < f->length * f->width; i++)
        gap_add(&g, (double)num_bf16_f32(stored[i]), (double)num_bf16_f32(computed[i]));
    return gap_share(&g);
}

static bool same_bytes(const struct hidden_form *f, const struct row *stored,
                       const uint16_t *last, const struct hidden_row *r)
{
    size_t n = (size_t)(f->length * f->taps), w = (size_t)f->width;
    return memcmp(stored->aux, r->aux, n * w * (f->fp8 ? 1 : 2)) == 0 &&
           (!f->fp8 || memcmp(stored->scale, r->scale, n * sizeof(float)) == 0) &&
           (!f->last || memcmp(last, r->last, (size_t)f->length * w * 2) == 0);
}

/* judge prints what came of a row whose bytes differ. */
static void judge(struct recheck *x, const struct row *stored, const uint16_t *last,
                  const struct hidden_row *r)
{
    const struct hidden_form *f = &x->rig.form;
    double limit = f->fp8 ? limit_fp8 : limit_bf16, worst = 0;
    char where[32] = "padding";
    for (int k = 0; k < f->taps; k++) {
        double off = apart(f, stored, r, k);
        if (off > worst)
            snprintf(where, sizeof where, "tap %" PRId64, x->rig.taps.layer[k]);
        worst = off > worst ? off : worst;
    }
    double off = f->last ? apart_last(f, last, r->last) : 0;
    if (off > worst)
        snprintf(where, sizeof where, "last");
    worst = off > worst ? off : worst;
    printf("row %" PRId64 ": %s off by %.2g of its norm\n", r->index, where, worst);
    if (worst > limit && x->beyond++ == 0)
        snprintf(x->worst, sizeof x->worst,
                 "row %" PRId64
                 ": %s is off by %.2g of its norm, rounding is at most %g",
                 r->index, where, worst, limit);
}

/* ---- rows ---- */

/* go_to finds the shard that holds a row, and returns its place there. */
static int go_to(int64_t *at, struct place *p, int64_t index)
{
    const struct shard_view *v = &p->view;
    if (index < v->first_row || index >= v->first_row + v->rows) {
        TRY(shard_seek(p->reader, index));
        TRY(shard_next(p->reader, &p->view));
    }
    *at = index - v->first_row;
    return 0;
}

/* draw takes rows in ascending order (Knuth 3.4.2, algorithm S): 1, or 0 at the end. */
static int draw(struct recheck *x, int64_t *index)
{
    while (x->drawn < x->want) {
        uint64_t left = (uint64_t)(x->total - x->at), want = x->want - x->drawn;
        *index = x->first + x->at++;
        if (rng_below(&x->rng, left) >= want)
            continue;
        x->drawn++;
        return 1;
    }
    return 0;
}

static int next_row(void *ctx, struct hidden_row *out)
{
    struct recheck *x = ctx;
    struct row stored;
    int64_t index, at;
    int rc = draw(x, &index);
    if (rc < 1)
        return rc;
    if (tool_stop)
        return err_set(E_AGAIN, "stopped by a signal at row %" PRId64, index);
    TRY(go_to(&at, &x->text, index));
    TRY(row_view(&stored, &x->text.view, at));
    hidden_row_text(out, &stored);
    return 1;
}

static int compare_row(void *ctx, const struct hidden_row *r)
{
    struct recheck *x = ctx;
    const struct hidden_form *f = &x->rig.form;
    struct row stored;
    int64_t at;
    TRY(go_to(&at, &x->states, r->index));
    TRY(row_view(&stored, &x->states.view, at));
    const uint16_t *last = shard_column(&x->states.view, "last", NULL);
    if (last)
        last += at * f->length * f->width;
    x->looked++;
    if (same_bytes(f, &stored, last, r)) {
        x->same++;
        printf("row %" PRId64 ": identical\n", r->index);
    } else {
        judge(x, &stored, last, r);
    }
    log_progress(x->log, x->looked, x->want, "rows", NULL);
    return 0;
}

static int run_rows(struct recheck *x)
{
    const struct pump_ends ends = {next_row, compare_row, x};
    x->rng = rng_new(rng_key(&x->plan->seed, 1));
    return rig_run(&x->rig, &ends);
}

int recheck_rows(const struct recheck_plan *p, struct log *log)
{
    struct recheck x = {.plan = p, .log = log};
    int rc;
    TRY_GOTO(rc, open_input(&x), out);
    TRY_GOTO(rc, check_target(&x), out);
    TRY_GOTO(rc, open_place(&x.states, p), out);
    TRY_GOTO(rc, rig_open(&x.rig, log), out);
    TRY_GOTO(rc, run_rows(&x), out);
    log_end(log, "%" PRId64 " of %" PRId64 " rows verified, %" PRId64 " identical",
            x.looked, x.total, x.same);
    if (x.beyond)
        rc = err_set(E_FORMAT, "%s (%" PRId64 " such rows)", x.worst, x.beyond);
out:
    close_all(&x);
    return rc;
}
