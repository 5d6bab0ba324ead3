/* SPDX-License-Identifier: MIT */
/* zero_aux.c - hidden shards without their hidden states, for make demo-controls.
 *
 *     zero_aux HIDDEN OUT
 *
 * A drafter trained on zeros learns from the anchor token alone; what the same training
 * gains over it is owed to the target's states. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "tools/extract/hidden.h"

static const char *const carried[] = {"target", "opening", "source", "taps", "aux"};
enum { CARRIED = sizeof carried / sizeof *carried };

static int create(struct shard_writer **w, const char *dir,
                  const struct shard_reader *r, const struct hidden_form *f)
{
    const char *meta[2 * (CARRIED + 1)] = {"zeroed", "yes"};
    struct shard_options o = {
        .name = "hidden", .stage = "extract", .parts = 1, .meta = meta, .metas = 1};
    int64_t have;

    for (int i = 0; i < CARRIED; i++) {
        const char *value = shard_meta(r, carried[i]);
        if (value) {
            meta[2 * o.metas] = carried[i];
            meta[2 * o.metas + 1] = value;
            o.metas++;
        }
    }
    hidden_columns(&o, f);
    int rc = shard_create(w, dir, &o, &have);
    if (rc < 0)
        return rc;
    return rc == 0 && have == 0 ? 0 : err_set(E_CONFIG, "%s: not empty", dir);
}

static int copy_shard(struct shard_writer *w, const struct shard_view *v,
                      const struct hidden_form *f, struct hidden_row *out)
{
    struct row row;

    for (int64_t i = 0; i < v->rows; i++) {
        TRY(row_view(&row, v, i));
        hidden_row_text(out, &row);
        memset(out->aux, 0, (size_t)(f->length * f->width) * 2);
        TRY(hidden_row_write(w, out, f));
    }
    return 0;
}

static int form_of(struct hidden_form *f, const struct shard_view *v)
{
    struct row row;

    TRY(row_view(&row, v, 0));
    if (!row.aux)
        return err_set(E_FORMAT, "%s: no hidden states", v->name);
    if (row.scale)
        return err_set(E_CONFIG, "%s: fp8 states: extract them as bf16", v->name);
    *f = (struct hidden_form){.length = row.text.length, .width = row.width, .taps = 1};
    return 0;
}

static int run(char **argv)
{
    struct shard_reader *r = NULL;
    struct shard_writer *w = NULL;
    struct shard_view view;
    struct hidden_form form;
    struct hidden_row row = {0};
    char text[HASH_TEXT];
    uint64_t input;
    int rc;

    TRY_GOTO(rc, shard_open(&r, argv + 1, 1), out);
    while ((rc = shard_next(r, &view)) == 1) {
        if (!w) {
            TRY_GOTO(rc, form_of(&form, &view), out);
            TRY_GOTO(rc, hidden_row_new(&row, &form, NULL), out);
            TRY_GOTO(rc, create(&w, argv[2], r, &form), out);
        }
        TRY_GOTO(rc, copy_shard(w, &view, &form, &row), out);
    }
    if (rc < 0 || !w)
        goto out;
    TRY_GOTO(rc, shard_digest(r, &input), out);
    TRY_GOTO(rc, shard_end_meta(w, "input", hash_text(text, input)), out);
    rc = shard_finish(w);
    w = NULL;
out:
    shard_abandon(w);
    shard_close(r);
    hidden_row_free(&row);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: zero_aux HIDDEN OUT\n");
        return -E_USAGE;
    }
    int rc = run(argv);
    if (rc < 0)
        fprintf(stderr, "zero_aux: %s\n", err_text());
    return rc < 0 ? -rc : 0;
}
