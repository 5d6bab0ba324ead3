/* SPDX-License-Identifier: MIT */
/* tool.c - begin and end of every program. */
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "file.h"

struct tool_common tool_common = {.progress = "auto"};
volatile sig_atomic_t tool_stop;

static void on_stop(int sig)
{
    if (tool_stopped()) { // asked twice: end at once
        signal(sig, SIG_DFL);
        raise(sig);
    }
    __atomic_store_n(&tool_stop, 1, __ATOMIC_RELAXED);
}

/* A file that is mapped and then cut short, or a disk that fails below it, is a signal
 * on Linux, wherever the byte is touched: nothing but leaving is safe then. */
static void on_bus(int sig)
{
    static const char text[] =
        "bus error: a file that is read was cut short meanwhile, or its disk failed\n";
    (void)sig;
    _exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? EX_OSERR : EX_IOERR);
}

/* A signal that was ignored when the tool began (nohup, a background job) stays so.
 * Without SA_RESTART a wait ends early and its loop sees the flag. */
static void catch_stop(int sig)
{
    struct sigaction now = {.sa_handler = on_stop}, before;
    sigemptyset(&now.sa_mask);
    if (sigaction(sig, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(sig, &now, NULL);
}

static int check_processor(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return 0;
    return err_set(E_CONFIG, "this processor lacks AVX2, FMA or BMI2 (x86-64-v3)");
}

static int set_log(struct log *l)
{
    const struct tool_common *c = &tool_common;
    l->version = TOOL_VERSION;
    l->quiet = c->quiet;
    l->verbose = c->verbose;
    l->json = strcmp(c->progress, "json") == 0;
    l->no_progress = strcmp(c->progress, "none") == 0;
    if (!l->json && !l->no_progress && strcmp(c->progress, "auto") != 0)
        return err_set(E_USAGE, "option --progress: auto, json or none, not \"%s\"",
                       c->progress);
    if (c->threads < 0 || c->threads > 4096)
        return err_set(E_USAGE, "option --threads: 0 to 4096, not %lld",
                       (long long)c->threads);
    return 0;
}

/* What only prints; 1 when something was asked for. */
static int print_about(const struct tool *t)
{
    struct buf text = {0};
    bool list = tool_common.options;
    tool_common.options = false; // what is listed is the default
    if (tool_common.help)
        opt_help(&text, &t->about, t->options);
    else if (tool_common.version)
        buf_addf(&text, "%s %s\n", t->about.name, TOOL_VERSION);
    else if (list)
        opt_list(&text, t->options);
    int rc = buf_check(&text);
    if (rc == 0 && text.len > 0) {
        fwrite(text.p, 1, text.len, stdout); // tool_end checks
        rc = 1;
    }
    buf_drop(&text);
    return rc;
}

int tool_begin(struct tool *t, int argc, char **argv)
{
    log_start(&t->log, stderr, t->about.name, isatty(STDERR_FILENO));
    signal(SIGPIPE, SIG_IGN);
    catch_stop(SIGINT);
    catch_stop(SIGTERM);
    signal(SIGBUS, on_bus);
    TRY(check_processor());
    TRY(opt_parse(argc, argv, t->options, &t->inputs));
    t->input = argv + 1;
    TRY(set_log(&t->log));
    return print_about(t);
}

/* A full disk may show only here.  A stdout that was never open is no failure as long
 * as nothing was to be written. */
static int close_stdout(void)
{
    bool failed = ferror(stdout), wrote = __fpending(stdout) > 0;
    errno = 0;
    if (fclose(stdout) != 0 && (wrote || errno != EBADF))
        failed = true;
    return failed ? err_errno(errno ? errno : EIO, "cannot write stdout") : 0;
}

int tool_end(struct tool *t, int rc)
{
    if (rc < 0)
        log_error(&t->log, err_text());
    if (rc == E_USAGE && !t->log.json)
        fprintf(stderr, "try \"%s --help\"\n", t->about.name);
    int closed = close_stdout();
    if (closed < 0 && rc >= 0) {
        log_error(&t->log, err_text());
        rc = closed;
    }
    return rc < 0 ? -rc : 0;
}

int tool_not_terminal(const char *output)
{
    if (strcmp(output, "-") != 0 || !isatty(STDOUT_FILENO))
        return 0;
    return err_set(E_USAGE, "binary data are not written to a terminal: "
                            "give -o or redirect the output");
}

int tool_not_input(const struct tool *t, const char *option, const char *output)
{
    for (int64_t i = 0; i < t->inputs; i++)
        if (file_same(output, t->input[i]))
            return err_set(E_USAGE, "%s %s: is read as input", option, output);
    return 0;
}
