/* SPDX-License-Identifier: MIT */
/* taps.c - reading the list of tapped layers. */
#include "taps.h"

#include <stdio.h>
#include <string.h>

#include "err.h"
#include "num.h"

enum { TAPS_DEFAULT = 5 };

/* next_number reads the digits up to a comma or the end; *text moves behind it. */
static int next_number(const char **text, int64_t *out)
{
    char digits[8];
    size_t n = strcspn(*text, ",");

    if (n == 0 || n >= sizeof digits || strspn(*text, "0123456789") < n)
        return err_set(E_USAGE, "taps: \"%.*s\" is not a layer number", (int)n, *text);
    memcpy(digits, *text, n);
    digits[n] = '\0';
    TRY(num_parse_int(digits, out));
    *text += n;
    if (**text == ',' && *++*text == '\0')
        return err_set(E_USAGE, "taps: a number is missing after the last comma");
    return 0;
}

static int read_list(struct taps *t, const char *text)
{
    while (*text) {
        int64_t layer;
        TRY(next_number(&text, &layer));
        if (t->n == CONFIG_TAPS)
            return err_set(E_CONFIG, "taps: more than %d layers", CONFIG_TAPS);
        t->layer[t->n++] = layer;
    }
    return 0;
}

static int spread(struct taps *t, int64_t target_layers)
{
    struct drafter_config c = {0};
    int rc = config_taps(&c, TAPS_DEFAULT, target_layers);

    if (rc < 0)
        return err_wrap(rc, "--taps is needed");
    t->n = c.taps;
    memcpy(t->layer, c.tap, sizeof t->layer);
    return 0;
}

static int check(const struct taps *t, int64_t layers)
{
    for (int i = 0; i < t->n; i++) {
        long long layer = (long long)t->layer[i];
        if (i > 0 && t->layer[i] <= t->layer[i - 1])
            return err_set(E_CONFIG, "taps: %lld after %lld: not ascending", layer,
                           (long long)t->layer[i - 1]);
        if (t->layer[i] >= layers)
            return err_set(E_CONFIG, "taps: layer %lld of a target with %lld", layer,
                           (long long)layers);
        if (t->layer[i] == layers - 1)
            return err_set(E_CONFIG,
                           "taps: layer %lld is the target's last, which others take "
                           "after the final norm",
                           layer);
    }
    return 0;
}

int taps_parse(struct taps *t, const char *text, int64_t target_layers)
{
    *t = (struct taps){0};
    if (text && *text)
        TRY(read_list(t, text));
    else
        TRY(spread(t, target_layers));
    TRY(check(t, target_layers));
    for (int i = 0, at = 0; i < t->n; i++)
        at += snprintf(t->text + at, sizeof t->text - (size_t)at, "%s%lld",
                       i ? "," : "", (long long)t->layer[i]);
    return 0;
}
