/* SPDX-License-Identifier: MIT */
/* extract.c - draft-extract: packed rows through the frozen target, states into shards.
 *
 *     packed rows -> feed -> pump (target) -> hidden_row -> hidden shards
 *
 * Weights that are too many for the device stay in the checkpoint and are brought layer
 * by layer, for a group of rows at a time. */
#include <stdio.h>
#include <string.h>

#include "band.h"
#include "feed.h"
#include "hash.h"
#include "num.h"
#include "recheck.h"
#include "rig.h"
#include "tool.h"

static struct {
    const char *target, *output, *device, *taps, *aux, *part;
    bool last, plan;
    int64_t from_row, memory, weights, host, verify, seed;
    double band;
} cfg = {.output = "-",
         .device = "cpu",
         .taps = "",
         .aux = "bf16",
         .part = "0/1",
         .band = 8};

static const struct opt options[] = {
    OPT_HEAD("target"),
    OPT_TEXT('m', "target", &cfg.target, "DIR", "checkpoint of the target", 0),
    OPT_TEXT('d', "device", &cfg.device, "DEV", "cpu, cuda or cuda:N", 0),
    OPT_INT(0, "memory", &cfg.memory, "BYTES",
            "working memory of passes, 0 what the device has; rows that take more are "
            "computed in pieces",
            0),
    OPT_INT(0, "weights", &cfg.weights, "BYTES",
            "memory for the target's weights, 0 what the device has; what takes more "
            "is brought from the checkpoint layer by layer",
            0),
    OPT_INT(0, "host", &cfg.host, "BYTES",
            "memory of the host for rows under way, 0 a quarter of what it has to "
            "spare",
            0),
    OPT_FLAG(0, "plan", &cfg.plan, "print the memory that is needed, and end", 0),
    OPT_HEAD("states"),
    OPT_TEXT(0, "taps", &cfg.taps, "LIST",
             "layers to keep, as \"1,9,17\" from 0; five spread evenly by default", 0),
    OPT_TEXT(0, "aux", &cfg.aux, "TYPE", "type of the kept states: bf16 or fp8", 0),
    OPT_FLAG(0, "last", &cfg.last, "keep the last layer's state before the final norm",
             0),
    OPT_REAL(
        0, "band", &cfg.band, "FACTOR",
        "refuse rows whose states are this much larger or smaller than the run's; 0 "
        "is any",
        0),
    OPT_HEAD("rows"),
    OPT_TEXT(0, "part", &cfg.part, "I/N", "only part I, from 0, of N parts", 0),
    OPT_INT(0, "from-row", &cfg.from_row, "ROW", "start at this row", 0),
    OPT_HEAD("verifying"),
    OPT_INT(0, "verify", &cfg.verify, "ROWS",
            "write nothing: compute this many random rows of hidden shards again, and "
            "compare",
            0),
    OPT_INT('s', "seed", &cfg.seed, "N", "which rows are drawn", 0),
    OPT_HEAD("output"),
    OPT_TEXT('o', "output", &cfg.output, "DIR", "write shards to DIR, or - for stdout",
             0),
    TOOL_OPTIONS,
    OPT_END};

/* Everything a run holds; closed by close_all in any state. */
struct extract {
    struct tool *tool;
    struct feed feed;
    struct rig rig;
    struct shard_writer *writer;
    struct band band;
    int part, parts;
    int64_t rows, total; /* rows written; to write, 0 unknown */
    int64_t bytes;       /* of what was written */
};

/* ---- options ---- */

static int check_sizes(void)
{
    if (cfg.memory < 0 || cfg.weights < 0 || cfg.host < 0)
        return err_set(E_USAGE, "--memory, --weights and --host are not negative");
    return 0;
}

static int check_options(struct extract *x)
{
    bool bf16 = strcmp(cfg.aux, "bf16") == 0;

    if (!cfg.target)
        return err_set(E_USAGE, "no target: -m DIR");
    if (x->tool->inputs == 0)
        return err_set(E_USAGE, "no packed shards to read");
    if (!bf16 && strcmp(cfg.aux, "fp8") != 0)
        return err_set(E_USAGE, "--aux %s: not bf16 or fp8", cfg.aux);
    if (cfg.from_row < 0)
        return err_set(E_USAGE, "--from-row is not negative");
    TRY(tool_not_input(x->tool, "--output", cfg.output));
    TRY(check_sizes());
    if (cfg.band != 0 && !(cfg.band > 1))
        return err_set(E_USAGE, "--band %g: 0 or above 1", cfg.band);
    x->band.factor = cfg.band;
    x->rig.form.fp8 = !bf16;
    TRY(num_parse_part(cfg.part, &x->part, &x->parts));
    if (x->parts > 1 && cfg.from_row > 0)
        return err_set(E_USAGE, "--part and --from-row exclude each other");
    return cfg.plan ? 0 : tool_not_terminal(cfg.output);
}

/* ---- setting up ---- */

static int open_input(struct extract *x)
{
    TRY(feed_open(&x->feed, x->tool->input, x->tool->inputs, &tool_stop));
    if (x->parts > 1)
        TRY(feed_part(&x->feed, x->part, x->parts));
    else if (cfg.from_row > 0)
        TRY(feed_from(&x->feed, cfg.from_row));
    x->total = x->feed.stop >= 0 ? x->feed.stop - x->feed.next : 0;
    x->rig.form.length = x->feed.length;
    return 0;
}

static struct rig_options rig_options(void)
{
    return (struct rig_options){.target = cfg.target,
                                .device = cfg.device,
                                .threads = tool_common.threads,
                                .memory = (size_t)cfg.memory,
                                .weights = (size_t)cfg.weights,
                                .host = (size_t)cfg.host};
}

static int check_target(struct extract *x)
{
    const struct rig_options o = rig_options();
    return rig_check(&x->rig, &o, cfg.taps, cfg.last);
}

/* Are documents cut at the same places?  Their numbers are another shard's. */
static bool same_documents(const struct anchor_row *a, const struct anchor_row *b)
{
    for (int64_t i = 0; i < a->length; i++)
        if ((a->doc[i] < 0) != (b->doc[i] < 0) ||
            (i > 0 && (a->doc[i] == a->doc[i - 1]) != (b->doc[i] == b->doc[i - 1])))
            return false;
    return true;
}

/* check_resumed compares the text of the last shard that is there with the input, and
 * leaves the input behind it. */
static int check_resumed(struct extract *x, int64_t next)
{
    const struct shard_view *there = shard_resumed(x->writer);
    struct row old, now;

    TRY(feed_from(&x->feed, next - there->rows));
    for (int64_t i = 0; i < there->rows; i++) {
        int rc = feed_next(&x->feed, &now);
        if (rc < 0)
            return rc;
        TRY(row_view(&old, there, i));
        size_t n = (size_t)old.text.length;
        bool same = rc == 1 && now.text.length == old.text.length &&
                    memcmp(old.text.ids, now.text.ids, n * sizeof(int32_t)) == 0 &&
                    memcmp(old.text.mask, now.text.mask, n) == 0 &&
                    same_documents(&old.text, &now.text);
        if (!same)
            return err_set(E_CONFIG,
                           "%s: row %lld is not that of the input: made from "
                           "other text",
                           there->name, (long long)(there->first_row + i));
    }
    return 0;
}

/* drain reads a stream to its end, so that its writer ends well, and compares its
 * digest with that of the whole output; a folder's was compared before.  Returns 1. */
static int drain(struct extract *x)
{
    struct shard_reader *there = NULL;
    char digest[HASH_TEXT];
    uint64_t value;
    struct row row;
    int rc;

    if (x->feed.stop >= 0)
        return 1;
    while ((rc = feed_next(&x->feed, &row)) == 1)
        ;
    TRY(rc);
    TRY(shard_digest(x->feed.reader, &value));
    TRY(shard_open(&there, (char *const *)&cfg.output, 1));
    const char *input = shard_meta(there, "input");
    bool same = input && strcmp(input, hash_text(digest, value)) == 0;
    shard_close(there);
    return same ? 1
                : err_set(E_CONFIG, "%s: complete, but made from another input",
                          cfg.output);
}

static void add_meta(const char **meta, int64_t *n, const char *key, const char *value)
{
    meta[2 * *n] = key;
    meta[2 * *n + 1] = value;
    ++*n;
}

/* open_output returns 1 when the output is there already; rows that are there are
 * skipped in the input. */
static int open_output(struct extract *x)
{
    char input[HASH_TEXT];
    uint64_t value = 0;
    int64_t have = 0;

    if (x->feed.stop >= 0)
        TRY(shard_digest(x->feed.reader, &value));
    const char *meta[14] = {"version", TOOL_VERSION,    "target", x->rig.digest,
                            "opening", x->feed.opening, "taps",   x->rig.taps.text,
                            "aux",     cfg.aux};
    int64_t metas = 5;
    if (*x->feed.source)
        add_meta(meta, &metas, "source", x->feed.source);
    if (x->rig.form.last)
        add_meta(meta, &metas, "last_side", "before");
    struct shard_options o = {
        .name = "hidden",
        .stage = "extract",
        .part = x->part,
        .parts = x->parts,
        .meta = meta,
        .metas = metas,
        .input = x->feed.stop >= 0 ? hash_text(input, value) : NULL,
        .first_row = x->feed.next,
    };
    hidden_columns(&o, &x->rig.form);
    int rc = shard_create(&x->writer, cfg.output, &o, &have);
    if (rc == 1)
        return drain(x);
    if (rc < 0 || have == 0)
        return rc;
    log_note(&x->tool->log, "going on after %lld rows", (long long)have);
    x->rows = have;
    return check_resumed(x, o.first_row + have);
}

static void close_all(struct extract *x)
{
    shard_abandon(x->writer);
    rig_close(&x->rig);
    feed_close(&x->feed);
}

static int print_plan(struct extract *x)
{
    struct buf text = {0};
    int rc = rig_plan(&x->rig, &text);
    if (rc == 0)
        fputs(text.p, stdout);
    buf_drop(&text);
    return rc;
}

/* ---- the stream ---- */

static int next_row(void *ctx, struct hidden_row *out)
{
    struct extract *x = ctx;
    struct row row;

    if (tool_stop)
        return err_set(E_AGAIN, "stopped by a signal at row %lld",
                       (long long)x->feed.next);
    int rc = feed_next(&x->feed, &row);
    if (rc < 1)
        return rc;
    if (row.text.length != x->rig.form.length)
        return err_set(E_FORMAT, "%s: rows of %lld tokens after rows of %lld",
                       x->feed.view.name, (long long)row.text.length,
                       (long long)x->rig.form.length);
    hidden_row_text(out, &row);
    return 1;
}

static int write_row(void *ctx, const struct hidden_row *row)
{
    struct extract *x = ctx;

    const struct hidden_form *f = &x->rig.form;

    TRY(band_add(&x->band, row, f, &x->rig.taps));
    TRY(hidden_row_write(x->writer, row, f));
    x->rows++;
    log_progress(&x->tool->log, x->rows * f->length, x->total * f->length, "tokens",
                 NULL);
    return 0;
}

static int run_rows(struct extract *x)
{
    const struct pump_ends ends = {next_row, write_row, x};
    char digest[HASH_TEXT];
    uint64_t input;

    TRY(rig_run(&x->rig, &ends));
    TRY(shard_digest(x->feed.reader, &input));
    TRY(shard_end_meta(x->writer, "input", hash_text(digest, input)));
    TRY(shard_flush(x->writer));
    x->bytes = shard_written(x->writer);
    int rc = shard_finish(x->writer);
    x->writer = NULL;
    return rc;
}

/* report says how large the states are: what a wrong layer or norm would change; and
 * when the output was what the target waited for. */
static void report(struct extract *x)
{
    const struct taps *t = &x->rig.taps;
    double waiting = pump_waiting(&x->rig.pump);
    if (waiting > 0.02)
        log_note(&x->tool->log,
                 "the target waited for the output in %.0f %% of the time",
                 100 * waiting);
    for (int k = 0; k < t->n && x->band.rows; k++)
        log_note(&x->tool->log, "tap %lld: size %.3g, rows from %.3g to %.3g",
                 (long long)t->layer[k], band_mean(&x->band, k), x->band.low[k],
                 x->band.high[k]);
}

static int verify(struct tool *tool)
{
    struct recheck_plan p = {.path = tool->input,
                             .paths = tool->inputs,
                             .rig = rig_options(),
                             .rows = cfg.verify,
                             .seed = (uint64_t)cfg.seed};

    if (!cfg.target)
        return err_set(E_USAGE, "no target: -m DIR");
    if (tool->inputs == 0)
        return err_set(E_USAGE, "no hidden shards to verify");
    if (cfg.verify < 0)
        return err_set(E_USAGE, "--verify is not negative");
    TRY(check_sizes());
    if (cfg.plan)
        return err_set(E_USAGE, "--verify and --plan exclude each other");
    if (*cfg.taps || cfg.last || cfg.from_row || strcmp(cfg.part, "0/1") != 0 ||
        strcmp(cfg.aux, "bf16") != 0 || strcmp(cfg.output, "-") != 0)
        return err_set(E_USAGE, "--verify takes layers, types and rows from the shards "
                                "and writes none");
    return recheck_rows(&p, &tool->log);
}

static int extract(struct tool *tool)
{
    struct extract x = {.tool = tool};
    char bytes[32];
    int rc;

    TRY_GOTO(rc, check_options(&x), out);
    TRY_GOTO(rc, check_target(&x), out);
    TRY_GOTO(rc, open_input(&x), out);
    if (cfg.plan) {
        rc = print_plan(&x);
        goto out;
    }
    TRY_GOTO(rc, open_output(&x), out);
    if (rc == 1) {
        log_note(&tool->log, "%s: complete, nothing to do", cfg.output);
        rc = 0;
        goto out;
    }
    TRY_GOTO(rc, rig_open(&x.rig, &tool->log), out);
    TRY_GOTO(rc, run_rows(&x), out);
    report(&x);
    log_end(&tool->log, "%lld rows, %lld tokens, %s written", (long long)x.rows,
            (long long)(x.rows * x.rig.form.length),
            num_bytes(bytes, sizeof bytes, (double)x.bytes));
out:
    close_all(&x);
    return rc;
}

int main(int argc, char **argv)
{
    struct tool tool = {.about = {"draft-extract",
                                  "keep a target's hidden states of packed rows",
                                  "[options] -m TARGET -o DIR|- PACKED...|-"},
                        .options = options};
    int rc = tool_begin(&tool, argc, argv);
    if (rc == 0)
        rc = cfg.verify ? verify(&tool) : extract(&tool);
    return tool_end(&tool, rc);
}
