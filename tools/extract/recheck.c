/* SPDX-License-Identifier: MIT */
/* recheck.c - draft-extract --verify.
 *
 * States from another device, or from passes cut elsewhere, differ by rounding: a tap
 * is compared by the norm of its difference over its own.  Rows of another target,
 * layer or text are off by tens of percent. */
#include "recheck.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "num.h"
#include "rng.h"
#include "tool.h"

/* Largest difference that is rounding: bf16 through many layers; e4m3 has steps of an
 * eighth. */
static const double limit_bf16 = 0.02, limit_fp8 = 0.06;

struct recheck {
    const struct recheck_plan *plan;
    struct log *log;
    struct shard_reader *reader;
    struct shard_view view;
    struct par *par;
    struct dev *dev;
    struct target *target;
    struct taps taps;
    struct hidden_form form;
    struct capture capture;
    struct hidden_row row;
    int64_t first, total;         /* rows of the input */
    int64_t looked, same, beyond; /* rows: all, equal bit for bit, too far off */
    char worst[160];              /* says what the first of these is */
};

/* ---- opening ---- */

static int need_meta(const char **out, const struct recheck *x, const char *key)
{
    *out = shard_meta(x->reader, key);
    return *out ? 0 : err_set(E_FORMAT, "%s: no %s", x->view.name, key);
}

static int open_input(struct recheck *x)
{
    struct row row;
    TRY(shard_open(&x->reader, x->plan->path, x->plan->paths));
    shard_watch(x->reader, &tool_stop);
    x->total = shard_total_rows(x->reader);
    if (x->total < 0)
        return err_set(E_USAGE, "a stream cannot be verified: its rows pass once");
    int rc = shard_next(x->reader, &x->view);
    if (rc < 1)
        return rc < 0 ? rc : err_set(E_FORMAT, "%s: no rows", x->plan->path[0]);
    x->first = x->view.first_row;
    TRY(row_view(&row, &x->view, 0));
    if (!row.aux)
        return err_set(E_FORMAT, "%s: packed rows, no hidden states", x->view.name);
    x->form.length = row.text.length;
    x->form.fp8 = row.scale != NULL;
    x->form.last = shard_column(&x->view, "last", NULL) != NULL;
    return 0;
}

/* check_widths: the columns are as wide as the taps and the target make them. */
static int check_widths(const struct recheck *x)
{
    const struct hidden_form *f = &x->form;
    const struct st_tensor *last = NULL;
    struct row row;
    TRY(row_view(&row, &x->view, 0));
    shard_column(&x->view, "last", &last);
    if (row.width != f->taps * f->width || (f->fp8 && row.taps != f->taps))
        return err_set(E_FORMAT, "%s: aux is not %d taps of width %" PRId64,
                       x->view.name, f->taps, f->width);
    if (last && (last->type != ST_BF16 || last->rank != 3 ||
                 last->dim[1] != f->length || last->dim[2] != f->width))
        return err_set(E_FORMAT,
                       "%s: last is not bf16 [rows, %" PRId64 ", %" PRId64 "]",
                       x->view.name, f->length, f->width);
    return 0;
}

static int open_target(struct recheck *x)
{
    const struct recheck_plan *p = x->plan;
    struct target_config c;
    char digest[HASH_TEXT];
    const char *made_by, *taps;
    TRY(capture_identify(&c, digest, p->target));
    TRY(need_meta(&made_by, x, "target"));
    if (strcmp(made_by, digest) != 0)
        return err_set(E_CONFIG, "%s: made by target %s, %s is %s", x->view.name,
                       made_by, p->target, digest);
    TRY(need_meta(&taps, x, "taps"));
    TRY(taps_parse(&x->taps, taps, c.layers));
    x->form.taps = x->taps.n;
    x->form.width = c.hidden;
    TRY(check_widths(x));
    TRY(par_open(&x->par, (int)p->threads));
    TRY(dev_open(&x->dev, p->device, x->par));
    TRY(target_open(&x->target, x->dev, p->target,
                    x->form.last ? -1 : x->taps.layer[x->taps.n - 1], false));
    TRY(hidden_row_new(&x->row, &x->form, x->dev));
    return capture_open(&x->capture, x->target, x->dev, &x->taps, &x->form, p->memory,
                        1);
}

static void close_all(struct recheck *x)
{
    hidden_row_free(&x->row);
    capture_close(&x->capture);
    target_close(x->target);
    dev_close(x->dev);
    par_close(x->par);
    shard_close(x->reader);
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

/* apart is |stored - computed| / |computed| over the tokens of tap k; infinite where a
 * stored one is no number. */
static double apart(const struct recheck *x, const struct row *stored, int k)
{
    const struct hidden_form *f = &x->form;
    double sum = 0, all = 0;
    for (int64_t s = 0; s < f->length; s++)
        for (int64_t i = 0; i < f->width && x->row.doc[s] >= 0; i++) {
            int64_t at = s * f->taps + k;
            double a = value(f, stored->aux, stored->scale, at, i);
            double b = value(f, x->row.aux, x->row.scale, at, i);
            sum += (a - b) * (a - b);
            all += b * b;
        }
    double r = sqrt(sum / all);
    return isfinite(r) ? r : INFINITY;
}

/* apart_last is the same for `last`. */
static double apart_last(const struct recheck *x, const uint16_t *stored)
{
    const struct hidden_form *f = &x->form;
    double sum = 0, all = 0;
    for (int64_t i = 0; i < f->length * f->width; i++) {
        double a = (double)num_bf16_f32(stored[i]);
        double b = (double)num_bf16_f32(((const uint16_t *)x->row.last)[i]);
        sum += (a - b) * (a - b);
        all += b * b;
    }
    double r = sqrt(sum / all);
    return isfinite(r) ? r : INFINITY;
}

static bool same_bytes(const struct recheck *x, const struct row *stored,
                       const uint16_t *last)
{
    const struct hidden_form *f = &x->form;
    size_t n = (size_t)(f->length * f->taps), w = (size_t)f->width;
    return memcmp(stored->aux, x->row.aux, n * w * (f->fp8 ? 1 : 2)) == 0 &&
           (!f->fp8 || memcmp(stored->scale, x->row.scale, n * sizeof(float)) == 0) &&
           (!f->last || memcmp(last, x->row.last, (size_t)f->length * w * 2) == 0);
}

/* judge prints what came of a row whose bytes differ. */
static void judge(struct recheck *x, const struct row *stored, const uint16_t *last)
{
    double limit = x->form.fp8 ? limit_fp8 : limit_bf16, worst = 0;
    char where[32] = "padding";
    for (int k = 0; k < x->taps.n; k++) {
        double r = apart(x, stored, k);
        if (r > worst)
            snprintf(where, sizeof where, "tap %" PRId64, x->taps.layer[k]);
        worst = r > worst ? r : worst;
    }
    double r = x->form.last ? apart_last(x, last) : 0;
    if (r > worst)
        snprintf(where, sizeof where, "last");
    worst = r > worst ? r : worst;
    printf("row %" PRId64 ": %s off by %.2g of its norm\n", x->row.index, where, worst);
    if (worst > limit && x->beyond++ == 0)
        snprintf(x->worst, sizeof x->worst,
                 "row %" PRId64
                 ": %s is off by %.2g of its norm, rounding is at most %g",
                 x->row.index, where, worst, limit);
}

static int look(struct recheck *x, int64_t index)
{
    struct row stored;
    bool here = index >= x->view.first_row && index < x->view.first_row + x->view.rows;
    if (!here) {
        TRY(shard_seek(x->reader, index));
        TRY(shard_next(x->reader, &x->view));
    }
    int64_t i = index - x->view.first_row;
    TRY(row_view(&stored, &x->view, i));
    const uint16_t *last = shard_column(&x->view, "last", NULL);
    if (last)
        last += i * x->form.length * x->form.width;
    hidden_row_text(&x->row, &stored);
    struct hidden_row *row = &x->row;
    TRY(capture_rows(&x->capture, &row, 1));
    TRY(capture_check(&x->capture, &x->row));
    x->looked++;
    if (same_bytes(x, &stored, last)) {
        x->same++;
        printf("row %" PRId64 ": identical\n", x->row.index);
    } else {
        judge(x, &stored, last);
    }
    return 0;
}

/* look_at draws the rows in ascending order (Knuth 3.4.2, algorithm S). */
static int look_at(struct recheck *x)
{
    struct rng rng = rng_new(rng_key(&x->plan->seed, 1));
    int64_t want = x->plan->rows < x->total ? x->plan->rows : x->total;
    for (int64_t i = 0; i < x->total && x->looked < want; i++) {
        int64_t left = x->total - i;
        if ((int64_t)rng_below(&rng, (uint64_t)left) >= want - x->looked)
            continue;
        if (tool_stop)
            return err_set(E_AGAIN, "stopped by a signal at row %" PRId64,
                           x->first + i);
        TRY(look(x, x->first + i));
        log_progress(x->log, x->looked, want, "rows", NULL);
    }
    return 0;
}

int recheck_rows(const struct recheck_plan *p, struct log *log)
{
    struct recheck x = {.plan = p, .log = log};
    int rc;
    TRY_GOTO(rc, open_input(&x), out);
    TRY_GOTO(rc, open_target(&x), out);
    TRY_GOTO(rc, look_at(&x), out);
    log_end(log, "%" PRId64 " of %" PRId64 " rows verified, %" PRId64 " identical",
            x.looked, x.total, x.same);
    if (x.beyond)
        rc = err_set(E_FORMAT, "%s (%" PRId64 " such rows)", x.worst, x.beyond);
out:
    close_all(&x);
    return rc;
}
