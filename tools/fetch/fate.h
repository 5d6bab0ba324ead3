/* SPDX-License-Identifier: MIT */
/* fate.h - what became of each object: told, counted, and the one status of them all.
 *
 * With --json each object is a line on standard output.  One thread at a time. */
#ifndef FATE_H
#define FATE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "log.h"
#include "object.h"

enum fate { FATE_THERE, FATE_WANTED, FATE_FETCHED, FATE_UPLOADED, FATE_FAILED, FATES };

struct fates {
    struct log *log;
    bool json;
    int64_t count[FATES], bytes; /* bytes: of the wanted, fetched and uploaded */
    int code; /* of the first failure that trying again does not mend, else of the first
                 one, and its message; 0: there was none */
    char why[ERR_TEXT_MAX];
};

/* fate_add counts an object and prints its line; fate_fail does so for one that has
 * failed with `code`, and warns of it. */
void fate_add(struct fates *t, const struct object *o, enum fate fate);
void fate_fail(struct fates *t, const struct object *o, int code, const char *why);

/* fate_end is the result of a run over `all` objects, with err_text(): the failure
 * that stands for all, E_AGAIN when a signal has stopped it. */
int fate_end(const struct fates *t, int64_t all, bool stopped);

/* fate_may_mend: may a failure of this code pass when the same is tried again? */
bool fate_may_mend(int code);

#endif
