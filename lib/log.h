/* SPDX-License-Identifier: MIT */
/* log.h - messages and progress on a stream that the tool hands over.
 *
 * A log is a plain struct owned by the tool and passed to what reports; there is no
 * global.  On a terminal progress is one rewritten line; elsewhere a line every 30 s;
 * as JSON (json = true) one object a line.  quiet silences all but warnings. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct log {
    FILE *to;         /* stderr, or NULL: silent */
    const char *tool; /* prefix of messages */
    bool terminal, quiet, verbose, json;
    double begun, shown; /* seconds of log_now: start of the run, last progress */
    bool open_line;      /* a progress line stands unfinished on the terminal */
};

double log_now(void); /* monotonic seconds */
void log_start(struct log *l, FILE *to, const char *tool, bool terminal);

void log_note(struct log *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_warn(struct log *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_more(struct log *l, const char *fmt, ...) /* only when verbose */
    __attribute__((format(printf, 2, 3)));

/* log_progress shows done of total (0: unknown) in `unit`, the rate and the time left,
 * and `extra` (may be NULL) behind; cheap when called often. */
void log_progress(struct log *l, int64_t done, int64_t total, const char *unit,
                  const char *extra);

/* log_end writes the closing line: version, wall time, what was done, peak memory. */
void log_end(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
