/* SPDX-License-Identifier: MIT */
/* tool.h - what every program's main shares: options, log, signals, the one exit.
 *
 *     int main(int argc, char **argv)
 *     {
 *         struct tool tool = {.about = {"draft-pack", "...", "[options] input..."},
 *                             .options = options};
 *         int rc = tool_begin(&tool, argc, argv);
 *         if (rc == 0)
 *             rc = pack(&tool);
 *         return tool_end(&tool, rc);
 *     }
 *
 * This is the only place that prints, reads the environment, or handles signals.  Each
 * tool's table ends with TOOL_OPTIONS: -j (threads), -q, -v, --progress, and what only
 * prints: --help, --version, --options. */
#ifndef TOOL_H
#define TOOL_H

#include <signal.h>

#include "err.h"
#include "log.h"
#include "opt.h"

#define TOOL_VERSION "0.1.0"

struct tool_common {
    bool quiet, verbose, help, version, options;
    const char *progress; /* "auto", "json", "none" */
    int64_t threads;      /* 0: one per processor */
};
extern struct tool_common tool_common;

#define TOOL_OPTIONS                                                                   \
    OPT_HEAD("running"),                                                               \
        OPT_INT('j', "threads", &tool_common.threads, "N",                             \
                "threads; 0 means one per processor", 0),                              \
        OPT_FLAG('q', "quiet", &tool_common.quiet, "only warnings and errors", 0),     \
        OPT_FLAG('v', "verbose", &tool_common.verbose, "say more", 0),                 \
        OPT_TEXT(0, "progress", &tool_common.progress, "HOW",                          \
                 "progress on stderr: auto, json or none", 0),                         \
        OPT_FLAG('h', "help", &tool_common.help, "print this text", 0),                \
        OPT_FLAG(0, "version", &tool_common.version, "print the version", 0),          \
        OPT_FLAG(0, "options", &tool_common.options,                                   \
                 "print the options, one a line, for scripts", 0)

struct tool {
    struct opt_about about;
    const struct opt *options;
    struct log log;
    char **input; /* operands, NULL-terminated */
    int inputs;
};

/* tool_begin parses; 0 goes on, 1 means that --help, --version or --options (opt_list,
 * for the man-page test) was printed and the tool ends well, negative is E_USAGE, or
 * E_CONFIG on a processor without AVX2 and FMA, which all is compiled for.
 * SIGPIPE is ignored; SIGINT and SIGTERM set tool_stop, a second one kills. */
int tool_begin(struct tool *t, int argc, char **argv);

/* tool_end prints "tool: message" for a failure, closes stdout and checks it, and
 * returns the exit status (negated code). */
int tool_end(struct tool *t, int rc);

/* tool_stop is set by SIGINT or SIGTERM; long loops look at it. */
extern volatile sig_atomic_t tool_stop;

/* tool_stopped reads it from any thread. */
static inline int tool_stopped(void)
{
    return __atomic_load_n(&tool_stop, __ATOMIC_RELAXED);
}

/* tool_not_terminal refuses (E_USAGE) to write binary to a terminal. */
int tool_not_terminal(const char *output);

/* tool_not_input refuses (E_USAGE) an output that is one of the tool's inputs; option
 * names it. */
int tool_not_input(const struct tool *t, const char *option, const char *output);

#endif
