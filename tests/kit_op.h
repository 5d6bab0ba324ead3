/* SPDX-License-Identifier: MIT */
/* kit_op.h - a call of an operation as data: made from a line of cases.h, filled with
 * numbers that depend on the case alone, run on any device, read back as doubles.
 *
 * Types follow the device (dev.act), so the same code serves the double build.  A
 * failure fails the running test. */
#ifndef KIT_OP_H
#define KIT_OP_H

#include <stdbool.h>

#include "cases.h"
#include "op.h"

enum { CALL_ARGS = 16, CALL_NAME = 12 };

struct call_arg {
    char name[CALL_NAME];
    char role; /* '=' written, '+' updated, ':' read, '*' made by the run itself */
    struct tensor t; /* no data: absent */
    int64_t count;
    double *host; /* what was put in; NaN for '=' where the type has one */
    double *want; /* the reference's output, same count; starts as host */
};

struct call {
    const struct op_case *c;
    struct dev *d;
    int64_t dim[128]; /* by letter, see cases.h */
    int n;
    struct call_arg arg[CALL_ARGS];
    void (*run)(const struct call *);
};

/* call_wanted: the environment variable OP, when set, names the only op to test. */
bool call_wanted(const struct op_case *c);

/* call_open parses the case and fills and uploads its tensors; call_close frees. */
void call_open(struct call *k, struct dev *d, const struct op_case *c);
void call_close(struct call *k);

/* call_open_large is for timing alone: numbers repeat after a million, nothing is kept
 * on the host (no host, no want), what is written is not filled before. */
void call_open_large(struct call *k, struct dev *d, const struct op_case *c);

/* call_run issues the op and waits, k->run(k) only issues it; call_find finds an
 * argument, NULL when there is none of that name; call_get reads one back (mem_free
 * it); call_put uploads values. */
void call_run(struct call *k);
struct call_arg *call_find(struct call *k, const char *name);
double *call_get(struct call *k, const struct call_arg *a);
void call_put(struct call *k, const struct call_arg *a, const double *v);

/* call_block is what an attention case says of its blocks. */
struct attn_block call_block(const struct call *k);

/* call_reset uploads all of host again: the state before a run. */
void call_reset(struct call *k);

/* ref_run computes every want from host, naively and in f64 (kit_ref.c). */
void ref_run(struct call *k);

#endif
