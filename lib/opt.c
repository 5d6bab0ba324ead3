/* SPDX-License-Identifier: MIT */
/* opt.c - one walk over argv per tool; operands move to the front as they are met. */
#include "opt.h"

#include <string.h>

#include "err.h"
#include "num.h"

static bool is_option(const struct opt *o)
{
    return o->kind != OPT_KIND_HEAD;
}

static const struct opt *find_letter(const struct opt *table, char letter)
{
    for (const struct opt *o = table; o->kind != OPT_KIND_END; o++)
        if (is_option(o) && o->letter && o->letter == letter)
            return o;
    err_set(E_USAGE, "unknown option -%c", letter);
    return NULL;
}

/* The option called name[0..n), or the only one that begins so. */
static const struct opt *find_name(const struct opt *table, const char *name, size_t n)
{
    const struct opt *found = NULL;
    for (const struct opt *o = table; o->kind != OPT_KIND_END; o++) {
        if (!is_option(o) || strncmp(o->name, name, n) != 0)
            continue;
        if (o->name[n] == 0)
            return o;
        if (found) {
            err_set(E_USAGE, "option --%.*s may be --%s or --%s", (int)n, name,
                    found->name, o->name);
            return NULL;
        }
        found = o;
    }
    if (!found)
        err_set(E_USAGE, "unknown option --%.*s", (int)n, name);
    return found;
}

static int store(const struct opt *o, const char *text)
{
    int rc = 0;
    switch (o->kind) {
    case OPT_KIND_TEXT:
        *(const char **)o->value = text;
        break;
    case OPT_KIND_INT:
        rc = num_parse_int(text, o->value);
        break;
    case OPT_KIND_REAL:
        rc = num_parse_real(text, o->value);
        break;
    default:
        *(bool *)o->value = true;
    }
    return rc < 0 ? err_wrap(rc, "option --%s", o->name) : 0;
}

/* Takes the option at argv[i] with its value; returns the index behind it. */
static int take_long(char **argv, int i, const struct opt *table)
{
    const char *name = argv[i] + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const struct opt *o = find_name(table, name, n);
    if (!o)
        return E_USAGE;
    const char *text = equals ? equals + 1 : NULL;
    if (o->kind == OPT_KIND_FLAG && text)
        return err_set(E_USAGE, "option --%s takes no value", o->name);
    if (o->kind != OPT_KIND_FLAG && !text && !(text = argv[++i]))
        return err_set(E_USAGE, "option --%s needs a value (%s)", o->name, o->arg);
    TRY(store(o, text));
    return i + 1;
}

/* The same for a group of letters; a value may follow its letter directly: -j4. */
static int take_letters(char **argv, int i, const struct opt *table)
{
    for (const char *c = argv[i] + 1; *c; c++) {
        const struct opt *o = find_letter(table, *c);
        if (!o)
            return E_USAGE;
        if (o->kind == OPT_KIND_FLAG) {
            TRY(store(o, NULL));
            continue;
        }
        const char *text = c[1] ? c + 1 : argv[++i];
        if (!text)
            return err_set(E_USAGE, "option -%c needs a value (%s)", *c, o->arg);
        TRY(store(o, text));
        break;
    }
    return i + 1;
}

int opt_parse(int argc, char **argv, const struct opt *table, int *operands)
{
    int n = 0, i = 1;
    while (i < argc) {
        char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            i++;
            break;
        }
        if (word[0] != '-' || word[1] == 0) { // "-" is an operand
            argv[1 + n++] = word;
            i++;
            continue;
        }
        i = word[1] == '-' ? take_long(argv, i, table) : take_letters(argv, i, table);
        TRY(i);
    }
    while (i < argc)
        argv[1 + n++] = argv[i++];
    argv[1 + n] = NULL;
    *operands = n;
    return 0;
}

static void add_value(struct buf *out, const struct opt *o)
{
    char real[32];
    switch (o->kind) {
    case OPT_KIND_TEXT:
        buf_adds(out, *(const char **)o->value ? *(const char **)o->value : "");
        break;
    case OPT_KIND_INT:
        buf_addf(out, "%lld", (long long)*(const int64_t *)o->value);
        break;
    case OPT_KIND_REAL:
        buf_adds(out, num_real(real, sizeof real, *(const double *)o->value));
        break;
    default:
        buf_adds(out, *(const bool *)o->value ? "yes" : "no");
    }
}

/* A text without a default and a flag that is off have nothing worth printing. */
static bool shows_default(const struct opt *o)
{
    const char *text = o->kind == OPT_KIND_TEXT ? *(const char **)o->value : "";
    return o->kind != OPT_KIND_FLAG && text && (o->kind != OPT_KIND_TEXT || *text);
}

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

/* Fills words into lines from HELP_COLUMN on; `at` is the column reached so far. */
static void add_wrapped(struct buf *out, const char *text, int at)
{
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (at > HELP_COLUMN && at + 1 + n > HELP_WIDTH) {
            buf_addc(out, '\n');
            at = 0;
        }
        int gap = at < HELP_COLUMN ? HELP_COLUMN - at : 1;
        buf_fill(out, ' ', (size_t)gap);
        buf_add(out, text, (size_t)n);
        at += gap + n;
        text += n;
        text += strspn(text, " ");
    }
    buf_addc(out, '\n');
}

static void help_line(struct buf *out, const struct opt *o)
{
    struct buf text = {0};
    size_t begin = out->len;
    if (o->letter)
        buf_addf(out, "  -%c, --%s", o->letter, o->name);
    else
        buf_addf(out, "      --%s", o->name);
    if (o->arg)
        buf_addf(out, " %s", o->arg);
    int at = (int)(out->len - begin);
    if (at >= HELP_COLUMN - 1) {
        buf_addc(out, '\n');
        at = 0;
    }
    buf_adds(&text, o->help);
    if (shows_default(o)) {
        buf_adds(&text, " [");
        add_value(&text, o);
        buf_addc(&text, ']');
    }
    add_wrapped(out, buf_text(&text), at);
    buf_drop(&text);
}

void opt_help(struct buf *out, const struct opt_about *about, const struct opt *table)
{
    buf_addf(out, "%s - %s\n\nusage: %s %s\n", about->name, about->purpose, about->name,
             about->synopsis);
    for (const struct opt *o = table; o->kind != OPT_KIND_END; o++) {
        if (o->kind == OPT_KIND_HEAD)
            buf_addf(out, "\n%s\n", o->name);
        else
            help_line(out, o);
    }
}

void opt_record(struct buf *out, const struct opt *table)
{
    bool first = true;
    for (const struct opt *o = table; o->kind != OPT_KIND_END; o++) {
        if (!is_option(o) || !(o->flags & OPT_CONTENT))
            continue;
        buf_addf(out, "%s%s=", first ? "" : " ", o->name);
        add_value(out, o);
        first = false;
    }
}

void opt_list(struct buf *out, const struct opt *table)
{
    for (const struct opt *o = table; o->kind != OPT_KIND_END; o++) {
        if (!is_option(o))
            continue;
        buf_addf(out, "%s %c %s ", o->name, o->letter ? o->letter : '-',
                 o->arg ? o->arg : "-");
        if (shows_default(o) || o->kind == OPT_KIND_FLAG)
            add_value(out, o);
        else
            buf_addc(out, '-');
        buf_addc(out, '\n');
    }
}
