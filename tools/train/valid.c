/* SPDX-License-Identifier: MIT */
/* valid.c - one pass over the validation rows, forward only. */
#include "valid.h"

#include "err.h"

#include <string.h>

static int check_same(const struct intake_about *a, const struct intake_about *of,
                      const char *path)
{
    if (a->rows < 0)
        return err_set(E_CONFIG, "--valid %s: must be a folder", path);
    if (a->target != of->target)
        return err_set(E_FORMAT,
                       "--valid %s: hidden states of another target than the "
                       "training rows'",
                       path);
    if (a->taps != of->taps || memcmp(a->tap, of->tap, sizeof a->tap) != 0 ||
        a->hidden != of->hidden || a->fp8 != of->fp8)
        return err_set(E_CONFIG,
                       "--valid %s: taps, width or type of the hidden states "
                       "differ from the training rows'",
                       path);
    return 0;
}

int valid_open(struct valid *v, const char *path, const struct intake_about *of)
{
    char *const list[] = {(char *)path, NULL};
    *v = (struct valid){0};
    if (strcmp(path, "-") == 0)
        return err_set(E_USAGE, "--valid -: must be a folder, it is read many times");
    TRY(intake_open(&v->in, list, 1));
    int rc = check_same(&v->in.about, of, path);
    if (rc < 0)
        valid_close(v);
    return rc;
}

void valid_close(struct valid *v)
{
    intake_close(&v->in);
}

int valid_run(struct valid *v, struct batch *b, struct drafter *drafter,
              struct arena *work, struct metrics *m)
{
    *m = (struct metrics){0};
    TRY(intake_seek(&v->in, 0));
    for (int64_t i = 0; i < v->in.about.rows; i++) {
        struct intake_row row;
        TRY(intake_next(&v->in, &row));
        TRY(batch_pass(b, drafter, &row, 0, (struct tensor){0}, work, m));
    }
    return 0;
}
