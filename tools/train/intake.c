/* SPDX-License-Identifier: MIT */
/* intake.c - a cursor over the shards: view, row in the view, rows taken in all.
 *
 * Shards verify themselves as they are read (shard.h) and row.h checks their columns;
 * what is checked here is that they hold hidden states, of the shape that the first one
 * announces. */
#include "intake.h"

#include "err.h"

#include <stdio.h>
#include <string.h>

static int need_text(const struct intake *in, const char *key, const char **out)
{
    *out = st_meta(&in->view.header, key);
    return *out ? 0
                : err_set(E_FORMAT, "%s: metadata lacks %s: not from draft-extract",
                          in->view.name, key);
}

/* read_taps reads layer numbers, "1,7,13". */
static int read_taps(struct intake *in)
{
    const char *text;
    TRY(need_text(in, "taps", &text));
    struct intake_about *a = &in->about;
    snprintf(a->taps_text, sizeof a->taps_text, "%s", text);
    for (const char *p = text; *p; p += *p == ',') {
        int64_t v = 0;
        size_t n = strspn(p, "0123456789");
        for (size_t i = 0; i < n && n <= 4; i++)
            v = v * 10 + (p[i] - '0');
        p += n;
        if (n == 0 || n > 4 || (*p && *p != ',') || a->taps == CONFIG_TAPS)
            return err_set(E_FORMAT, "%s: taps \"%s\": not a list of layers",
                           in->view.name, text);
        a->tap[a->taps++] = v;
    }
    return a->taps ? 0 : err_set(E_FORMAT, "%s: no taps", in->view.name);
}

static int read_digest(const struct intake *in, const char *key, uint64_t *out)
{
    const char *text;
    TRY(need_text(in, key, &text));
    int rc = hash_parse(text, out);
    return rc < 0 ? err_wrap(rc, "%s: metadata %s", in->view.name, key) : 0;
}

/* read_shape takes the shapes from the first row. */
static int read_shape(struct intake *in)
{
    struct intake_about *a = &in->about;
    struct row row;
    TRY(row_view(&row, &in->view, 0));
    if (!row.aux)
        return err_set(E_FORMAT, "%s: no column aux", in->view.name);
    a->length = row.text.length;
    a->fp8 = row.scale != NULL;
    a->hidden = row.width / a->taps;
    if (a->length < 1 || a->hidden < 1 || a->hidden * a->taps != row.width ||
        (a->fp8 && row.taps != a->taps))
        return err_set(E_FORMAT, "%s: aux of width %lld for %d taps", in->view.name,
                       (long long)row.width, a->taps);
    return 0;
}

static int read_about(struct intake *in)
{
    struct intake_about *a = &in->about;
    const char *text;
    TRY(need_text(in, "stage", &text));
    if (strcmp(text, "extract") != 0)
        return err_set(E_FORMAT, "%s: written by draft-%s: no hidden states",
                       in->view.name, text);
    TRY(read_taps(in));
    TRY(read_digest(in, "target", &a->target));
    TRY(read_shape(in));
    text = st_meta(&in->view.header, "header_xxh3");
    if (text)
        memcpy(a->first, text, strnlen(text, HASH_TEXT - 1));
    a->rows = shard_total_rows(in->reader);
    return 0;
}

/* read_source takes what identifies the text: the digest of pack's raw sources, or,
 * when they were piped into it, the first header of the packed rows.  A run that tells
 * neither is as good as any other. */
static int read_source(struct intake *in)
{
    static const char *const key[] = {"source", "opening"};
    in->source = 0;
    for (int i = 0; i < 2; i++)
        if (st_meta(&in->view.header, key[i]))
            return read_digest(in, key[i], &in->source);
    return 0;
}

/* check_run compares a later shard, maybe of another run, with the first. */
static int check_run(const struct intake *in)
{
    uint64_t target;
    const char *taps;
    TRY(read_digest(in, "target", &target));
    TRY(need_text(in, "taps", &taps));
    if (target != in->about.target || strcmp(taps, in->about.taps_text) != 0)
        return err_set(E_CONFIG,
                       "%s: target or taps differ from those of the first "
                       "shard",
                       in->view.name);
    return 0;
}

/* next_shard reads the next shard with rows (1) or the end (0). */
static int next_shard(struct intake *in)
{
    int rc;
    in->at = 0;
    do
        rc = shard_next(in->reader, &in->view);
    while (rc > 0 && in->view.rows == 0);
    if (rc <= 0) {
        in->view.rows = 0;
        return rc;
    }
    TRY(in->about.taps ? check_run(in) : read_about(in));
    TRY(read_source(in));
    return 1;
}

int intake_open(struct intake *in, char *const *path, int paths)
{
    *in = (struct intake){0};
    for (int i = 0; i < paths; i++)
        if (paths > 1 && strcmp(path[i], "-") == 0)
            return err_set(E_USAGE, "-: standard input stands alone, not beside other "
                                    "inputs");
    TRY(shard_open(&in->reader, path, paths));
    int rc = next_shard(in);
    if (rc == 0)
        rc = err_set(E_FORMAT, "%s: no rows", path[0]);
    if (rc < 0)
        intake_close(in);
    return rc < 0 ? rc : 0;
}

void intake_close(struct intake *in)
{
    if (in->reader)
        shard_close(in->reader);
    *in = (struct intake){0};
}

static int seek_folder(struct intake *in, int64_t taken)
{
    int64_t row = taken % in->about.rows;
    in->epoch = taken / in->about.rows;
    TRY(shard_seek(in->reader, row));
    int rc = next_shard(in);
    if (rc == 0)
        rc = err_set(E_FORMAT, "row %lld: no shard holds it", (long long)row);
    in->at = row - in->view.first_row;
    return rc < 0 ? rc : 0;
}

static int seek_stream(struct intake *in, int64_t taken)
{
    if (in->view.first_row > taken)
        return err_set(E_CONFIG,
                       "%s: begins with row %lld; the next to train on is %lld "
                       "(draft-extract --from-row)",
                       in->view.name, (long long)in->view.first_row, (long long)taken);
    while (in->view.first_row + in->view.rows < taken) {
        int rc = next_shard(in);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return err_set(E_CONFIG, "standard input ends before row %lld",
                           (long long)taken);
    }
    in->at = taken - in->view.first_row;
    return 0;
}

int intake_seek(struct intake *in, int64_t taken)
{
    TRY(in->about.rows < 0 ? seek_stream(in, taken) : seek_folder(in, taken));
    in->taken = taken;
    return 0;
}

/* refill goes on to the next shard, or the next epoch. */
static int refill(struct intake *in)
{
    int rc = next_shard(in);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (in->about.rows < 0)
        return err_set(E_CONFIG,
                       "standard input ends after row %lld: the steps need more",
                       (long long)in->taken);
    return seek_folder(in, in->taken);
}

int intake_next(struct intake *in, struct intake_row *out)
{
    const struct intake_about *a = &in->about;
    if (in->at >= in->view.rows)
        TRY(refill(in));
    out->file = in->view.name;
    out->epoch = in->epoch;
    out->source = in->source;
    TRY(row_view(&out->row, &in->view, in->at));
    if (out->row.text.length != a->length || !out->row.aux ||
        out->row.width != a->hidden * a->taps || (out->row.scale != NULL) != a->fp8)
        return err_set(E_FORMAT, "%s: shapes differ from those of the first shard",
                       in->view.name);
    in->at++;
    in->taken++;
    return 0;
}

int intake_digest(const struct intake *in, uint64_t *out)
{
    *out = 0;
    return in->about.rows < 0 ? 0 : shard_digest(in->reader, out);
}
