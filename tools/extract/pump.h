/* SPDX-License-Identifier: MIT */
/* pump.h - rows through the target while others are looked at and written.
 *
 *     next -> target | check | sink
 *
 * Several rows are under way, each with its own place on the device, so the target
 * waits only for a sink that is slower than it is; how long it waited is measured. */
#ifndef PUMP_H
#define PUMP_H

#include "capture.h"
#include "par.h"

struct pump_ends {
    int (*next)(void *ctx, struct hidden_row *row); /* fills the text: 1, or 0 at the
                                                       end */
    int (*sink)(void *ctx, const struct hidden_row *row); /* in order */
    void *ctx;
};

struct pump {
    struct capture capture;
    struct par *threads;
    const struct pump_ends *ends;
    struct hidden_row row[FIT_ROWS];
    struct hidden_row *spare; /* [fit.group - 1]: computed, not yet taken */
    int rows, spares, taken;
    bool ended;
    double begun, left, waited; /* seconds: the first row, the last one's end */
};

/* pump_open makes room as capture_open does; target, device and taps are borrowed. With
 * one row everything runs in turn. */
int pump_open(struct pump *f, struct target *t, struct dev *d, const struct taps *taps,
              const struct hidden_form *form, const struct fit *fit);
void pump_close(struct pump *f);

/* pump_run moves all rows of `ends`. */
int pump_run(struct pump *f, const struct pump_ends *ends);

/* pump_waiting is the share of the time since the first row in which the target had
 * nothing to do but wait for the sink. */
double pump_waiting(const struct pump *f);

#endif
