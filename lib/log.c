/* SPDX-License-Identifier: MIT */
/* log.c - a line is built in a buffer and written with one call, so that the lines of
 * processes that share a stderr do not mix. */
#include "log.h"

#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "buf.h"
#include "json.h"
#include "num.h"

/* Seconds between two shows of progress. */
static const double EVERY_TERMINAL = 0.2, EVERY_LINE = 30, EVERY_JSON = 5;

double log_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void log_start(struct log *l, FILE *to, const char *tool, bool terminal)
{
    *l = (struct log){.to = to, .tool = tool, .terminal = terminal};
    l->begun = l->shown = log_now();
}

static void write_line(struct log *l, struct buf *line)
{
    if (line->p)
        fwrite(line->p, 1, line->len, l->to);
    fflush(l->to);
    buf_drop(line);
}

/* Control bytes of names and data stay off the terminal. */
static void clean(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static void message(struct log *l, const char *kind, const char *text)
{
    struct buf line = {0};
    if (l->json) {
        struct json_out o = {.to = &line};
        json_open_object(&o, NULL);
        json_add_text(&o, "tool", l->tool);
        json_add_text(&o, kind, text);
        json_close_object(&o);
    } else {
        if (l->open_line)
            buf_adds(&line, "\r\033[K");
        bool warning = strcmp(kind, "warning") == 0;
        buf_addf(&line, "%s: %s%s", l->tool, warning ? "warning: " : "", text);
    }
    buf_addc(&line, '\n');
    l->open_line = false;
    write_line(l, &line);
}

static void messagef(struct log *l, const char *kind, const char *fmt, va_list args)
{
    char text[2048];
    vsnprintf(text, sizeof text, fmt, args);
    clean(text);
    message(l, kind, text);
}

void log_note(struct log *l, const char *fmt, ...)
{
    va_list args;
    if (!l->to || l->quiet)
        return;
    va_start(args, fmt);
    messagef(l, "note", fmt, args);
    va_end(args);
}

void log_warn(struct log *l, const char *fmt, ...)
{
    va_list args;
    if (!l->to)
        return;
    va_start(args, fmt);
    messagef(l, "warning", fmt, args);
    va_end(args);
}

void log_more(struct log *l, const char *fmt, ...)
{
    va_list args;
    if (!l->to || l->quiet || !l->verbose)
        return;
    va_start(args, fmt);
    messagef(l, "note", fmt, args);
    va_end(args);
}

void log_error(struct log *l, const char *text)
{
    if (l->to)
        message(l, "error", text);
}

struct progress {
    int64_t done, total;
    const char *unit, *extra;
    double rate; // units a second, 0: not known
    double left; // seconds, negative: not known
};

static void progress_json(struct buf *line, const char *tool, const struct progress *p)
{
    struct json_out o = {.to = line};
    json_open_object(&o, NULL);
    json_add_text(&o, "tool", tool);
    json_open_object(&o, "progress");
    json_add_int(&o, "done", p->done);
    if (p->total > 0)
        json_add_int(&o, "total", p->total);
    json_add_text(&o, "unit", p->unit);
    json_add_real(&o, "rate", p->rate);
    if (p->left >= 0)
        json_add_real(&o, "left_s", p->left);
    if (p->extra)
        json_add_text(&o, "extra", p->extra);
    json_close_object(&o);
    json_close_object(&o);
}

static void add_amount(struct buf *line, const char *unit, double v)
{
    char text[32];
    if (strcmp(unit, "bytes") == 0)
        buf_adds(line, num_bytes(text, sizeof text, v));
    else
        buf_adds(line, num_count(text, sizeof text, v));
}

static void progress_text(struct buf *line, const char *tool, const struct progress *p)
{
    buf_addf(line, "%s: ", tool);
    add_amount(line, p->unit, (double)p->done);
    if (p->total > 0) {
        buf_adds(line, " of ");
        add_amount(line, p->unit, (double)p->total);
    }
    if (strcmp(p->unit, "bytes") != 0)
        buf_addf(line, " %s", p->unit);
    if (p->total > 0)
        buf_addf(line, " (%.0f %%)", 100 * (double)p->done / (double)p->total);
    buf_adds(line, ", ");
    if (p->rate < 10 && strcmp(p->unit, "bytes") != 0)
        buf_addf(line, "%.1f", p->rate); // "0/s" would look like a standstill
    else
        add_amount(line, p->unit, p->rate);
    buf_adds(line, "/s");
    if (p->left >= 0) {
        int s = p->left < 3.6e8 ? (int)p->left : 360000000;
        buf_addf(line, ", %d:%02d:%02d left", s / 3600, s / 60 % 60, s % 60);
    }
    if (p->extra)
        buf_addf(line, ", %s", p->extra);
}

void log_progress(struct log *l, int64_t done, int64_t total, const char *unit,
                  const char *extra)
{
    if (!l->to || l->quiet || l->no_progress)
        return;
    double now = log_now();
    if (l->since == 0 || done < l->from) {
        l->since = now;
        l->from = done;
    }
    double every = l->json ? EVERY_JSON : l->terminal ? EVERY_TERMINAL : EVERY_LINE;
    if (now - l->shown < every)
        return;
    l->shown = now;
    struct progress p = {done, total, unit, extra, 0, -1};
    if (now > l->since)
        p.rate = (double)(done - l->from) / (now - l->since);
    if (total > 0 && p.rate > 0)
        p.left = (double)(total - done) / p.rate;
    struct buf line = {0};
    if (l->json) {
        progress_json(&line, l->tool, &p);
    } else {
        if (l->terminal)
            buf_adds(&line, "\r\033[K");
        progress_text(&line, l->tool, &p);
    }
    l->open_line = l->terminal && !l->json;
    if (!l->open_line)
        buf_addc(&line, '\n');
    write_line(l, &line);
}

void log_skip(struct log *l, int64_t done)
{
    if (l->since != 0) // else the first report counts from there anyway
        l->from += done;
}

void log_end(struct log *l, const char *fmt, ...)
{
    char what[1024], memory[32];
    struct rusage used;
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    num_bytes(memory, sizeof memory, 1024.0 * (double)used.ru_maxrss);
    log_note(l, "%s%s%s; %.1f s, %.1f s of processor, %s at most",
             l->version ? l->version : "", l->version ? ": " : "", what,
             log_now() - l->begun, cpu, memory);
}
