/* SPDX-License-Identifier: MIT */
/* test_opt.c - the option table in all its uses, and what log writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "kit.h"
#include "log.h"
#include "opt.h"

static struct {
    const char *out, *none;
    int64_t length;
    double share;
    bool force, list;
} cfg;

static const struct opt table[] = {
    OPT_HEAD("output"),
    OPT_TEXT('o', "output", &cfg.out, "DIR", "where to", 0),
    OPT_TEXT(0, "none", &cfg.none, "FILE", "has no default", 0),
    OPT_HEAD("rows"),
    OPT_INT('n', "length", &cfg.length, "TOKENS", "tokens per row", OPT_CONTENT),
    OPT_REAL(0, "share", &cfg.share, "SHARE",
             "a long explanation that surely does not fit into the rest of one line",
             OPT_CONTENT),
    OPT_FLAG('f', "force", &cfg.force, "overwrite", OPT_CONTENT),
    OPT_FLAG('l', "list", &cfg.list, "only list", 0),
    OPT_END,
};

static void reset(void)
{
    cfg.out = "-";
    cfg.none = NULL;
    cfg.length = 8192;
    cfg.share = 0.1;
    cfg.force = cfg.list = false;
}

/* Parses words (separated by spaces) into cfg; `left` gets the operands, joined. */
static int parse(const char *words, char left[200])
{
    static char text[200];
    char *argv[32] = {"tool"};
    int argc = 1, n = 0;
    reset();
    snprintf(text, sizeof text, "%s", words);
    for (char *w = text; *w;) {
        argv[argc++] = w;
        w += strcspn(w, " ");
        if (*w)
            *w++ = 0;
    }
    int rc = opt_parse(argc, argv, table, &n);
    left[0] = 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        strncat(left, argv[1 + i], 50);
        strncat(left, ",", 2);
    }
    if (rc == 0)
        ck_assert_ptr_null(argv[1 + n]);
    return rc;
}

START_TEST(parses)
{
    char left[200];
    kit_ok(parse("a -o d --length 4K b --share=0.5 -f -", left));
    ck_assert_str_eq(left, "a,b,-,");
    ck_assert_str_eq(cfg.out, "d");
    ck_assert_int_eq(cfg.length, 4000);
    ck_assert_double_eq(cfg.share, 0.5);
    ck_assert(cfg.force && !cfg.list);
    kit_ok(parse("-fln16 -od --none=", left));
    ck_assert(cfg.force && cfg.list && cfg.length == 16 && !strcmp(cfg.out, "d"));
    ck_assert_str_eq(cfg.none, "");
    kit_ok(parse("--len 5 --out=x=y --fo", left)); // cut where unique
    ck_assert(cfg.length == 5 && !strcmp(cfg.out, "x=y") && cfg.force);
    kit_ok(parse("a -- -f --length b", left));
    ck_assert_str_eq(left, "a,-f,--length,b,");
    ck_assert(!cfg.force);
    kit_ok(parse("-o -- x", left)); // "--" as a value
    ck_assert_str_eq(cfg.out, "--");
    kit_ok(parse("-n -5", left));
    ck_assert_int_eq(cfg.length, -5);
    kit_ok(parse("", left));
    ck_assert_str_eq(left, "");
}
END_TEST

START_TEST(wrong_calls)
{
    char left[200];
    kit_fails(parse("-x", left), E_USAGE, "unknown option -x");
    kit_fails(parse("--xyz=3", left), E_USAGE, "unknown option --xyz");
    kit_fails(parse("--l 3", left), E_USAGE, "--l may be --length or --list");
    kit_fails(parse("--output", left), E_USAGE, "--output needs a value (DIR)");
    kit_fails(parse("-n", left), E_USAGE, "-n needs a value (TOKENS)");
    kit_fails(parse("--force=yes", left), E_USAGE, "--force takes no value");
    kit_fails(parse("-n 3x", left), E_USAGE, "option --length: not an integer: \"3x\"");
    kit_fails(parse("--share=a", left), E_USAGE, "option --share: not a number");
    kit_fails(parse("--lengthy 3", left), E_USAGE, "unknown option --lengthy");
}
END_TEST

START_TEST(help_shows_live_defaults)
{
    struct buf b = {0};
    reset();
    opt_help(&b, &(struct opt_about){"tool", "does it", "[options] input..."}, table);
    ck_assert_str_eq(buf_text(&b),
                     "tool - does it\n\nusage: tool [options] input...\n\noutput\n"
                     "  -o, --output DIR          where to [-]\n"
                     "      --none FILE           has no default\n"
                     "\nrows\n"
                     "  -n, --length TOKENS       tokens per row [8192]\n"
                     "      --share SHARE         a long explanation that surely does "
                     "not fit into the\n"
                     "                            rest of one line [0.1]\n"
                     "  -f, --force               overwrite\n"
                     "  -l, --list                only list\n");
    buf_drop(&b);
}
END_TEST

START_TEST(record_and_list)
{
    struct buf b = {0};
    char left[200];
    kit_ok(parse("--share 0.30000000000000004 -l", left));
    opt_record(&b, table);
    ck_assert_str_eq(buf_text(&b), "length=8192 share=0.30000000000000004 force=no");
    buf_clear(&b);
    reset();
    opt_list(&b, table);
    ck_assert_str_eq(buf_text(&b), "output o DIR -\nnone - FILE -\n"
                                   "length n TOKENS 8192\nshare - SHARE 0.1\n"
                                   "force f - no\nlist l - no\n");
    buf_drop(&b);
}
END_TEST

/* A log that writes into memory; drained by log_text. */
static char *memory;
static size_t memory_size;

static void log_memory(struct log *l, bool terminal)
{
    FILE *to = open_memstream(&memory, &memory_size);
    ck_assert_ptr_nonnull(to);
    log_start(l, to, "tool", terminal);
}

static const char *log_text(struct log *l)
{
    fclose(l->to);
    l->to = NULL;
    return memory;
}

START_TEST(log_messages)
{
    struct log l;
    log_memory(&l, false);
    log_note(&l, "%d rows", 3);
    log_warn(&l, "odd\nname\033");
    log_more(&l, "not shown");
    l.verbose = true;
    log_more(&l, "shown");
    l.quiet = true;
    log_note(&l, "not shown");
    log_warn(&l, "still");
    log_error(&l, "failed");
    ck_assert_str_eq(log_text(&l), "tool: 3 rows\ntool: warning: odd?name?\n"
                                   "tool: shown\ntool: warning: still\ntool: failed\n");
    log_note(&l, "silent without a stream");
    log_end(&l, "silent");
    free(memory);
}
END_TEST

START_TEST(log_progress_on_a_terminal)
{
    struct log l;
    log_memory(&l, true);
    l.since = log_now() - 10;
    l.from = 500; // resumed: the rate counts from there
    l.shown = 0;
    log_progress(&l, 1500, 3000, "tokens", "loss 2.5");
    log_progress(&l, 1600, 3000, "tokens", NULL); // too soon
    l.shown = 0;
    log_skip(&l, 1000); // was there
    log_progress(&l, 2500, 3000, "tokens", NULL);
    log_note(&l, "done");
    ck_assert_str_eq(log_text(&l),
                     "\r\033[Ktool: 1.50 K of 3.00 K tokens (50 %), 100/s, "
                     "0:00:15 left, loss 2.5"
                     "\r\033[Ktool: 2.50 K of 3.00 K tokens (83 %), 100/s, "
                     "0:00:05 left\r\033[Ktool: done\n");
    free(memory);
}
END_TEST

START_TEST(log_progress_elsewhere)
{
    struct log l;
    log_memory(&l, false);
    log_progress(&l, 1, 10, "rows", NULL); // not before 30 s
    l.since = log_now() - 8;
    l.from = 0;
    l.shown -= 31;
    log_progress(&l, 8 << 20, 0, "bytes", NULL);
    ck_assert_str_eq(log_text(&l), "tool: 8.00 MiB, 1.00 MiB/s\n");
    free(memory);
    log_memory(&l, true);
    l.no_progress = true;
    l.shown = -100;
    log_progress(&l, 1, 10, "rows", NULL);
    ck_assert_str_eq(log_text(&l), "");
    free(memory);
}
END_TEST

START_TEST(log_as_json)
{
    struct log l;
    log_memory(&l, true);
    l.json = true;
    l.since = log_now() - 1e6;
    l.shown = -100;
    log_progress(&l, 1000000, 0, "rows", "x\"y");
    log_warn(&l, "careful");
    log_error(&l, "failed");
    const char *text = log_text(&l);
    static const char begin[] = "{\"tool\":\"tool\",\"progress\":{\"done\":1000000,"
                                "\"unit\":\"rows\",\"rate\":0.99";
    ck_assert_int_eq(strncmp(text, begin, strlen(begin)), 0);
    const char *rest = strstr(text, "\"extra\":\"x\\\"y\"}}\n");
    ck_assert_ptr_nonnull(rest);
    ck_assert_str_eq(strchr(rest, '\n') + 1,
                     "{\"tool\":\"tool\",\"warning\":\"careful\"}\n"
                     "{\"tool\":\"tool\",\"error\":\"failed\"}\n");
    free(memory);
}
END_TEST

START_TEST(log_closing_line)
{
    struct log l;
    log_memory(&l, false);
    l.version = "9.9";
    log_end(&l, "%d rows", 3);
    const char *text = log_text(&l);
    ck_assert_int_eq(strncmp(text, "tool: 9.9: 3 rows; 0.", 21), 0);
    ck_assert_ptr_nonnull(strstr(text, " s of processor, "));
    ck_assert_ptr_nonnull(strstr(text, "iB at most\n"));
    free(memory);
}
END_TEST

KIT_MAIN("opt, log", parses, wrong_calls, help_shows_live_defaults, record_and_list,
         log_messages, log_progress_on_a_terminal, log_progress_elsewhere, log_as_json,
         log_closing_line)
