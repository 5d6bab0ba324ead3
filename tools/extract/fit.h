/* SPDX-License-Identifier: MIT */
/* fit.h - how rows go through the target in the memory that there is, decided and
 * written down to the byte before any of it is asked for.
 *
 * In order of preference: the whole target on the device, for rows that are whole too
 * or in pieces that keep it busy; its layers one by one, each for a group of rows;
 * whole or by layers, for pieces that are as small as need be. */
#ifndef FIT_H
#define FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "bill.h"
#include "hidden.h"
#include "target.h"

enum {
    FIT_ROWS = 3,   /* under way at once, at most: computed, looked at, written */
    FIT_GROUP = 16, /* computed at once, at most */
};

/* What it is for and what may be used; sizes of 0: any. */
struct fit_ask {
    const struct target *target; /* an outline is enough */
    const struct dev *dev;       /* likewise: of the kind of device meant */
    struct hidden_form form;
    int rows;       /* under way at once, at most FIT_ROWS */
    size_t weights; /* --weights */
    size_t passes;  /* --memory */
    size_t host;    /* --host */
    size_t device;  /* what the device has for weights and passes */
    size_t spare;   /* what the host has for rows */
};

struct fit {
    bool streams;   /* the target's layers come one by one */
    bool leaves;    /* a row's states stay on the device until they are looked at */
    int rows;       /* under way, beside those of a group that wait for their turn */
    int group;      /* rows computed at once */
    int sets;       /* of states on the device */
    int64_t piece;  /* tokens of a row computed at once */
    size_t weights; /* memory for target_open_within */
    size_t held;    /* of the device, while rows are computed */
    struct bill device, host; /* all that is taken of either */
};

/* fit_make decides.  E_CONFIG names what is needed, what is there, and the option that
 * stands in the way, if one does. */
int fit_make(struct fit *f, const struct fit_ask *a);

/* fit_print appends both tables. */
void fit_print(struct buf *out, const struct fit *f);

#endif
