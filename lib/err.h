/* SPDX-License-Identifier: MIT */
/* err.h - one code and one message per failure.
 *
 * A function that can fail returns 0, a positive count or end mark, or one of the
 * negative codes below.  Who knows most writes the message, once, into a slot that
 * each thread owns; callers pass the code up and may put what they know in front.
 * The tool prints the slot when it ends.  Codes are negated sysexits.h values, so a
 * tool's exit status is -code. */
#ifndef ERR_H
#define ERR_H

enum {
    E_USAGE = -64,   /* the call is wrong */
    E_FORMAT = -65,  /* bad data: malformed, checksum, NaN, id out of range */
    E_MISSING = -66, /* an input does not exist */
    E_REMOTE = -69,  /* a service stays unavailable */
    E_DEVICE = -70,  /* the device failed, or we have a bug */
    E_MEMORY = -71,  /* host memory is exhausted */
    E_IO = -74,      /* reading or writing failed, disk full, reader gone */
    E_AGAIN = -75,   /* stopped or interrupted: the same call may succeed later */
    E_ACCESS = -77,  /* no permission */
    E_CONFIG = -78   /* options, recipe, model and machine do not fit together */
};

#define ERR_TEXT_MAX 1024

/* err_set stores the message of a failure and returns `code`.  Messages read
 * "what failed: why", lower case, no full stop; control bytes become '?'. */
int err_set(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_errno is err_set with the code that fits `errnum` (ENOENT: E_MISSING, EACCES and
 * EPERM and EROFS: E_ACCESS, ENOMEM: E_MEMORY, else E_IO) and ": strerror" appended. */
int err_errno(int errnum, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_wrap puts "text: " in front of the stored message and returns `code`. */
int err_wrap(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_text is the calling thread's message, valid until its next failure. */
const char *err_text(void);

/* err_copy stores a message that another thread left (see par.h); returns `code`. */
int err_copy(int code, const char *text);

/* bug reports a broken invariant of ours (file, line, text) and exits with 70.  It is
 * the one function below tools/ that prints or exits. */
__attribute__((noreturn)) void bug_at(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* TRY returns a failure to the caller; TRY_GOTO jumps to a label that cleans up. */
#define TRY(call)                                                                      \
    do {                                                                               \
        int try_rc = (call);                                                           \
        if (try_rc < 0)                                                                \
            return try_rc;                                                             \
    } while (0)
#define TRY_GOTO(rc, call, label)                                                      \
    do {                                                                               \
        (rc) = (call);                                                                 \
        if ((rc) < 0)                                                                  \
            goto label;                                                                \
    } while (0)

#endif
