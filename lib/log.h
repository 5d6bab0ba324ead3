/* SPDX-License-Identifier: MIT */
/* log.h - messages and progress on a stream that the tool hands over.
 *
 * A log is a plain struct owned by the tool and passed to what reports; there is no
 * global, and one thread at a time uses it.  On a terminal progress is one rewritten
 * line; elsewhere a line every 30 s.  With json = true everything is one JSON object a
 * line, progress every 5 s.  quiet silences all but warnings and errors. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct log {
    FILE *to;            /* stderr, or NULL: silent */
    const char *tool;    /* prefix of messages */
    const char *version; /* shown by log_end; may be NULL */
    bool terminal, quiet, verbose, json, no_progress;
    double begun, shown; /* seconds of log_now: start of the run, last progress */
    double since;        /* when progress was first asked for, 0: not yet */
    int64_t from;        /* what was done then: rates count from there */
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

/* log_error writes a failure's message, quiet or not. */
void log_error(struct log *l, const char *text);

/* log_progress shows done of total (0: unknown) in `unit`, the rate and the time left,
 * and `extra` (may be NULL) behind; cheap when called often. */
void log_progress(struct log *l, int64_t done, int64_t total, const char *unit,
                  const char *extra);

/* log_skip: so much of what will be reported as done cost nothing, because it was
 * there; rates and the time left leave it out. */
void log_skip(struct log *l, int64_t done);

/* log_end writes the closing line: version, wall time, what was done, peak memory. */
void log_end(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
