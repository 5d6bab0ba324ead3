/* SPDX-License-Identifier: MIT */
/* pump.c - see pump.h.
 *
 * The target works inside the stream's ordered first step.  With a group, that step
 * computes as many rows as there are for it and hands them on one after another: the
 * first is the stream's own row, the others change places with it. */
#include "pump.h"

#include "err.h"
#include "log.h"
#include "mem.h"

static void swap(struct hidden_row *a, struct hidden_row *b)
{
    struct hidden_row keep = *a;
    *a = *b;
    *b = keep;
}

/* compute reads a group of rows, the first into `first`, and runs them; 0: no more. */
static int compute(struct pump *f, struct hidden_row *first)
{
    struct hidden_row *row[FIT_GROUP];
    int n = 0;
    while (n < f->capture.fit.group && !f->ended) {
        row[n] = n ? &f->spare[n - 1] : first;
        int rc = f->ends->next(f->ends->ctx, row[n]);
        TRY(rc);
        f->ended = rc == 0;
        n += rc;
    }
    f->spares = n ? n - 1 : 0;
    f->taken = 0;
    if (n)
        TRY(capture_rows(&f->capture, row, n));
    return n > 0;
}

static int read_row(void *ctx, void *item)
{
    struct pump *f = ctx;
    double now = log_now();
    int rc = 1;
    if (f->begun == 0)
        f->begun = now;
    else
        f->waited += now - f->left;
    if (f->taken < f->spares)
        swap(item, &f->spare[f->taken++]);
    else
        rc = compute(f, item);
    f->left = log_now();
    return rc;
}

static int check_row(void *ctx, void *item, int worker)
{
    const struct pump *f = ctx;
    (void)worker;
    return capture_check(&f->capture, item);
}

static int write_row(void *ctx, void *item)
{
    const struct pump *f = ctx;
    return f->ends->sink(f->ends->ctx, item);
}

int pump_open(struct pump *f, struct target *t, struct dev *d, const struct taps *taps,
              const struct hidden_form *form, const struct fit *fit)
{
    int rc;
    *f = (struct pump){.rows = fit->rows};
    TRY_GOTO(rc, capture_open(&f->capture, t, d, taps, form, fit), out);
    TRY_GOTO(rc, par_open(&f->threads, f->rows), out);
    size_t more = (size_t)fit->group - 1;
    f->spare = more ? mem_zero(more, sizeof *f->spare) : NULL;
    if (more && !f->spare)
        rc = E_MEMORY;
    for (int i = 0; i < f->rows && rc == 0; i++) {
        rc = hidden_row_new(&f->row[i], form, d);
        f->row[i].set = i;
    }
    for (size_t i = 0; i < more && rc == 0; i++)
        rc = hidden_row_new(&f->spare[i], form, d);
out:
    if (rc < 0)
        pump_close(f);
    return rc;
}

void pump_close(struct pump *f)
{
    for (int i = 0; i < f->rows; i++)
        hidden_row_free(&f->row[i]);
    for (int i = 0; f->spare && i < f->capture.fit.group - 1; i++)
        hidden_row_free(&f->spare[i]);
    mem_free(f->spare);
    par_close(f->threads);
    capture_close(&f->capture);
    *f = (struct pump){0};
}

int pump_run(struct pump *f, const struct pump_ends *ends)
{
    static const struct par_stages stages = {read_row, check_row, write_row};
    void *item[FIT_ROWS];
    for (int i = 0; i < f->rows; i++)
        item[i] = &f->row[i];
    f->ends = ends;
    f->ended = false;
    f->begun = f->left = f->waited = 0;
    return par_stream(f->threads, &stages, f, item, f->rows);
}

double pump_waiting(const struct pump *f)
{
    double all = f->left - f->begun;
    return all > 0 ? f->waited / all : 0;
}
