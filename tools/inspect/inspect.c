/* SPDX-License-Identifier: MIT */
/* inspect.c - draft-inspect: says what a file, folder or stream is, and that it is
 * whole.
 *
 * Inputs are told apart by what they hold, not by their names.  One that is damaged is
 * reported with file, tensor and reason, and the others are still looked at. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "look.h"
#include "mem.h"
#include "shard_head.h"
#include "tool.h"

static struct {
    bool json, stats, next_row;
    int64_t row;
    const char *tokenizer;
} cfg = {.row = -1};

static const struct opt options[] = {
    OPT_HEAD("what to show"),
    OPT_FLAG(0, "json", &cfg.json, "one JSON object a line for each input", 0),
    OPT_FLAG(0, "stats", &cfg.stats,
             "read every number: finite, root mean square, largest", 0),
    OPT_INT(0, "row", &cfg.row, "N", "only row N, document by document; -1 means all",
            0),
    OPT_TEXT(0, "tokenizer", &cfg.tokenizer, "FILE",
             "tokenizer.json (byte-level BPE) or its folder, to show a row as text", 0),
    OPT_FLAG(0, "next-row", &cfg.next_row,
             "only the row from which training in a folder of checkpoints goes on", 0),
    TOOL_OPTIONS,
    OPT_END,
};

static int look_plain(struct look *l, char *path)
{
    struct file_map m;
    struct shard_head h;
    size_t n;
    bool lone_end = false;
    TRY(file_map(&m, path));
    bool shard = shard_head_is(m.data, m.size);
    if (shard && st_length(m.data, m.size, &n) == 0 && n <= m.size - 8 &&
        shard_head_parse(&h, m.data, 8 + n) == 0) {
        lone_end = h.id.end && 8 + n == m.size;
        shard_head_drop(&h);
    }
    file_unmap(&m);
    if (lone_end)
        return look_end(l, path);
    return shard ? look_run(l, path) : look_file(l, path);
}

static int look_at(struct look *l, char *path)
{
    if (strcmp(path, "-") == 0)
        return look_run(l, path);
    if (!file_is_dir(path))
        return look_plain(l, path);
    if (look_is_checkpoint(path))
        return look_checkpoint(l, path);
    return look_is_training(path) ? look_training(l, path) : look_run(l, path);
}

/* One input; its failure is told here, so that others can follow. */
static int inspect_one(struct tool *t, struct look *l, char *path)
{
    char why[ERR_TEXT_MAX];
    int rc = look_at(l, path);
    if (rc == 0)
        return facts_end(&l->facts, stdout);
    snprintf(why, sizeof why, "%s", err_text());
    TRY(facts_fail(&l->facts, stdout, path, why));
    if (t->inputs > 1)
        log_error(&t->log, why);
    return err_copy(rc, why);
}

/* Damage outweighs other failures; what stops everything is returned at once. */
static int inspect_all(struct tool *t, struct look *l)
{
    int worst = 0, failed = 0;
    for (int i = 0; i < t->inputs; i++) {
        int rc = inspect_one(t, l, t->input[i]);
        if (rc == E_AGAIN || rc == E_MEMORY || (rc < 0 && t->inputs == 1))
            return rc;
        failed += rc < 0;
        if (rc < 0 && (worst == 0 || rc == E_FORMAT))
            worst = rc;
    }
    if (failed == 0)
        return 0;
    return err_set(worst, "%d of %d inputs are not well", failed, t->inputs);
}

static int tell_next_row(struct tool *t)
{
    int64_t row;
    if (t->inputs != 1)
        return err_set(E_USAGE, "--next-row takes one folder of checkpoints");
    TRY(look_next_row(t->input[0], &row));
    printf("%" PRId64 "\n", row);
    return 0;
}

/* A folder stands for the tokenizer.json in it. */
static int open_tokenizer(struct bpe **out, const char *path)
{
    char *inside = file_is_dir(path) ? file_path(path, "tokenizer.json") : NULL;
    if (file_is_dir(path) && !inside)
        return E_MEMORY;
    int rc = bpe_open(out, inside ? inside : path);
    mem_free(inside);
    return rc;
}

static int inspect(struct tool *t)
{
    struct look l = {.facts = {.as_json = cfg.json},
                     .log = &t->log,
                     .stop = &tool_stop,
                     .stats = cfg.stats,
                     .row = cfg.row};
    struct bpe *bpe = NULL;
    if (t->inputs == 0)
        return err_set(E_USAGE, "no input given");
    if (cfg.row < -1)
        return err_set(E_USAGE, "--row: %" PRId64 " is no row", cfg.row);
    if (cfg.tokenizer && cfg.row < 0)
        return err_set(E_USAGE, "--tokenizer shows a row as text: it needs --row");
    if (cfg.next_row)
        return tell_next_row(t);
    if (cfg.tokenizer)
        TRY(open_tokenizer(&bpe, cfg.tokenizer));
    l.bpe = bpe;
    int rc = inspect_all(t, &l);
    buf_drop(&l.facts.out);
    bpe_close(bpe);
    if (rc == 0)
        log_end(&t->log, "inputs: %d", t->inputs);
    return rc;
}

int main(int argc, char **argv)
{
    struct tool tool = {.about = {"draft-inspect",
                                  "verify shards, streams and checkpoints, and say "
                                  "what they hold",
                                  "[options] input..."},
                        .options = options};
    int rc = tool_begin(&tool, argc, argv);
    if (rc == 0)
        rc = inspect(&tool);
    return tool_end(&tool, rc);
}
