/* SPDX-License-Identifier: MIT */
/* pack.c - draft-pack: tokenized documents into full rows, each traceable to its
 * source.
 *
 * What is written depends on the input and on the options marked OPT_CONTENT, and on
 * nothing else: not on threads, paths or time. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "flow.h"
#include "hash.h"
#include "json.h"
#include "mem.h"
#include "num.h"
#include "tool.h"

static struct {
    const char *output, *valid_output, *report, *rejects, *target, *how, *part, *format,
        *dtype, *separator, *split;
    int64_t length, window, seed, block, min_supervised, vocab;
    double valid;
    bool strict, dedup;
} cfg = {.output = "-",
         .format = "auto",
         .how = "split",
         .length = 8192,
         .window = 16384,
         .block = 16,
         .min_supervised = 2};

static const struct opt options[] = {
    OPT_HEAD("output"),
    OPT_TEXT('o', "output", &cfg.output, "DIR", "the packed rows; - is stdout", 0),
    OPT_REAL(0, "valid", &cfg.valid, "SHARE", "share of documents for validation",
             OPT_CONTENT),
    OPT_TEXT(0, "valid-output", &cfg.valid_output, "DIR", "the rows for validation", 0),
    OPT_TEXT(0, "report", &cfg.report, "FILE", "what was packed, as JSON", 0),
    OPT_TEXT(0, "rejects", &cfg.rejects, "FILE", "refused records, as JSON lines", 0),
    OPT_HEAD("documents"),
    OPT_TEXT(0, "format", &cfg.format, "NAME",
             "what the input is: auto, or one of the formats", OPT_CONTENT),
    OPT_TEXT(0, "dtype", &cfg.dtype, "TYPE",
             "type of numbers that do not say it: u16, i32, u32, i64 ...", OPT_CONTENT),
    OPT_TEXT(0, "separator", &cfg.separator, "ID",
             "token that ends a document, where nothing else does; or none",
             OPT_CONTENT),
    OPT_TEXT(0, "split", &cfg.split, "NAME",
             "of a DatasetDict; train if not given, or the only one", 0),
    OPT_TEXT('m', "target", &cfg.target, "DIR",
             "the target; only vocab_size of its config.json is read", 0),
    OPT_INT(0, "vocab", &cfg.vocab, "N", "ids lie below N; 0 means not checked",
            OPT_CONTENT),
    OPT_FLAG(0, "strict", &cfg.strict, "stop at the first record that is refused", 0),
    OPT_INT(0, "min-supervised", &cfg.min_supervised, "N",
            "leave out what has fewer supervised tokens", OPT_CONTENT),
    OPT_FLAG(0, "dedup", &cfg.dedup, "leave out documents that came before",
             OPT_CONTENT),
    OPT_TEXT(0, "part", &cfg.part, "I/N", "only documents I (from 0) modulo N", 0),
    OPT_HEAD("packing"),
    OPT_INT('l', "length", &cfg.length, "TOKENS", "tokens of a row", OPT_CONTENT),
    OPT_TEXT(0, "long", &cfg.how, "HOW",
             "documents longer than a row: split, cut or drop them", OPT_CONTENT),
    OPT_INT(0, "block", &cfg.block, "TOKENS",
            "unsupervised tokens at the beginning of a continuation", OPT_CONTENT),
    OPT_INT(0, "window", &cfg.window, "N", "documents that are packed together",
            OPT_CONTENT),
    OPT_INT('s', "seed", &cfg.seed, "N", "draws the order of rows and the validation",
            OPT_CONTENT),
    TOOL_OPTIONS,
    OPT_END,
};

/* ---- the call ---- */

static int in_range(const char *name, int64_t value, int64_t low, int64_t high)
{
    if (value >= low && value <= high)
        return 0;
    return err_set(E_USAGE, "option --%s: %" PRId64 " to %" PRId64 ", not %" PRId64,
                   name, low, high, value);
}

static bool same_folder(const char *a, const char *b)
{
    char *x = realpath(a, NULL), *y = realpath(b, NULL);
    bool same = strcmp(a, b) == 0 || (x && y && strcmp(x, y) == 0);
    free(x);
    free(y);
    return same;
}

static int check_call(const struct tool *t)
{
    if (t->inputs == 0)
        return err_set(E_USAGE, "no input given");
    TRY(in_range("length", cfg.length, 1, 1 << 24));
    TRY(in_range("window", cfg.window, 1, 1 << 24));
    TRY(in_range("block", cfg.block, 0, 1 << 24));
    TRY(in_range("min-supervised", cfg.min_supervised, 0, 1 << 24));
    TRY(in_range("vocab", cfg.vocab, 0, INT32_MAX));
    if (!(cfg.valid >= 0 && cfg.valid < 1))
        return err_set(E_USAGE, "option --valid: a share of 0 up to below 1");
    if ((cfg.valid > 0) != (cfg.valid_output != NULL))
        return err_set(E_USAGE, "--valid and --valid-output go together");
    if (cfg.valid_output && strcmp(cfg.valid_output, "-") == 0)
        return err_set(E_USAGE, "option --valid-output: a folder, not stdout");
    if (cfg.valid_output && same_folder(cfg.output, cfg.valid_output))
        return err_set(E_USAGE, "training and validation cannot go to one folder");
    return tool_not_terminal(cfg.output);
}

/* vocab_size stands at the top of a config, or in its text_config. */
static int find_vocab(const struct json *root, int64_t *vocab)
{
    int found = json_have_int(root, "vocab_size", vocab);
    if (found == 0)
        found = json_need_int(json_get(root, "text_config"), "vocab_size", vocab);
    if (found >= 0 && (*vocab < 1 || *vocab > INT32_MAX))
        return err_set(E_FORMAT, "vocab_size is %" PRId64, *vocab);
    return found < 0 ? found : 0;
}

static int read_vocab(const char *target)
{
    struct json *root = NULL;
    int64_t vocab = 0;
    char *path = file_path(target, "config.json");
    int rc = path ? json_load(&root, path) : E_MEMORY;
    if (rc == 0) {
        rc = find_vocab(root, &vocab);
        if (rc == 0 && cfg.vocab && cfg.vocab != vocab)
            rc = err_set(E_CONFIG, "vocab_size is %" PRId64 ", --vocab %" PRId64, vocab,
                         cfg.vocab);
        if (rc < 0)
            err_wrap(rc, "%s", path);
        cfg.vocab = vocab;
    }
    json_free(root);
    mem_free(path);
    return rc;
}

/* How files are read that are nothing but numbers. */
static int read_numbers(struct read_rules *rules)
{
    rules->separator = READ_UNSAID;
    if (cfg.dtype) {
        rules->dtype = ints_named(cfg.dtype, strlen(cfg.dtype));
        if (rules->dtype == INTS_NONE)
            return err_set(E_USAGE,
                           "option --dtype: u8, i8, u16, i16, u32, i32, u64 or i64, "
                           "not \"%s\"",
                           cfg.dtype);
    }
    if (!cfg.separator)
        return 0;
    if (strcmp(cfg.separator, "none") == 0) {
        rules->separator = READ_WHOLE;
        return 0;
    }
    if (num_parse_int(cfg.separator, &rules->separator) < 0 || rules->separator < 0)
        return err_set(E_USAGE, "option --separator: the id of a token, or none");
    return 0;
}

/* ---- the run ---- */

/* All that lives as long as the run. */
struct run {
    struct tool *tool;
    struct par *par;
    struct input input;
    struct ledger ledger;
    struct rejects rejects;
    struct flow flow;
    struct buf options;
    char input_digest[HASH_TEXT];
    int part, parts;
};

static int digest(struct run *r)
{
    uint64_t value;
    TRY(input_digest(&r->input, &value));
    hash_text(r->input_digest, value);
    return 0;
}

static int open_side(struct run *r, struct flow_side *side, struct ledger_side *ledger,
                     const char *dir, const char *split)
{
    struct emit_of of = {.split = split,
                         .options = buf_text(&r->options),
                         .input = r->input.stream ? NULL : r->input_digest,
                         .length = cfg.length,
                         .part = r->part,
                         .parts = r->parts};
    side->ledger = ledger;
    window_open(&side->window, &side->emit, cfg.length, cfg.window, (uint64_t)cfg.seed,
                side == &r->flow.valid_side);
    return emit_open(&side->emit, dir, &of);
}

static int set_up(struct run *r)
{
    struct flow *f = &r->flow;
    TRY(cut_parse(&f->cut.how, cfg.how));
    if (cfg.target)
        TRY(read_vocab(cfg.target));
    else if (cfg.vocab == 0)
        log_warn(&r->tool->log, "ids are not checked: give -m or --vocab");
    TRY(par_open(&r->par, (int)tool_common.threads));
    TRY(reader_named(&f->format, cfg.format));
    struct input_choice choice = {f->format, cfg.split};
    TRY(input_list(&r->input, r->tool->input, &choice));
    if (r->input.said.len > 0)
        log_note(&r->tool->log, "%s", buf_text(&r->input.said));
    TRY(input_hash(&r->input, r->par));
    TRY(digest(r));
    opt_record(&r->options, options);
    TRY(buf_check(&r->options));
    f->input = &r->input;
    f->rules = (struct read_rules){
        .vocab = cfg.vocab ? cfg.vocab : INT32_MAX, .part = r->part, .parts = r->parts};
    TRY(read_numbers(&f->rules));
    f->cut.length = cfg.length;
    f->cut.block = cfg.block;
    f->min_supervised = cfg.min_supervised;
    f->valid = cfg.valid;
    f->seed = (uint64_t)cfg.seed;
    f->strict = cfg.strict;
    f->dedup = cfg.dedup;
    f->ledger = &r->ledger;
    f->rejects = &r->rejects;
    f->log = &r->tool->log;
    TRY(open_side(r, &f->train_side, &r->ledger.train, cfg.output, "train"));
    if (cfg.valid > 0)
        TRY(open_side(r, &f->valid_side, &r->ledger.valid, cfg.valid_output, "valid"));
    return 0;
}

static int check_result(const struct run *r)
{
    const struct ledger *l = &r->ledger;
    if (l->train.rows == 0 && r->parts == 1)
        return err_set(E_FORMAT,
                       "nothing to pack: %" PRId64 " records, %" PRId64
                       " refused, the others left out",
                       l->records, l->rejected);
    if (l->has_valid && l->valid.rows == 0)
        log_warn(&r->tool->log, "no document for validation");
    return 0;
}

static int write_report(const struct run *r)
{
    struct buf text = {0};
    if (!cfg.report)
        return 0;
    ledger_write(&r->ledger, &text);
    int rc = buf_check(&text);
    if (rc == 0)
        rc = file_write(cfg.report, text.p, text.len);
    buf_drop(&text);
    return rc;
}

/* The end files come last: where they are, everything else is. */
static int finish(struct run *r)
{
    struct buf files = {0};
    TRY(rejects_finish(&r->rejects));
    TRY(write_report(r));
    input_describe(&r->input, &files);
    int rc = buf_check(&files);
    if (rc == 0)
        rc = digest(r);
    if (rc == 0)
        rc = emit_finish(&r->flow.valid_side.emit, r->input_digest, buf_text(&files));
    if (rc == 0)
        rc = emit_finish(&r->flow.train_side.emit, r->input_digest, buf_text(&files));
    buf_drop(&files);
    return rc;
}

static void tell_end(const struct run *r)
{
    const struct flow *f = &r->flow;
    const struct ledger *l = &r->ledger;
    char tokens[32], in[32], out[32];
    double written = (double)(f->train_side.emit.bytes + f->valid_side.emit.bytes);
    log_end(
        &r->tool->log, "%" PRId64 " rows, %s tokens, %s read, %s written",
        l->train.rows + l->valid.rows,
        num_count(tokens, sizeof tokens, (double)(l->train.tokens + l->valid.tokens)),
        num_bytes(in, sizeof in, (double)l->bytes),
        num_bytes(out, sizeof out, written));
}

/* check_side refuses to write a side file over what is read. */
static int check_side(const struct run *r, const char *option, const char *path)
{
    for (int64_t i = 0; path && i < r->input.n; i++)
        if (file_same(path, r->input.at[i].path))
            return err_set(E_USAGE, "%s %s: is read as input", option, path);
    return 0;
}

static int check_sides(const struct run *r)
{
    if (cfg.report && cfg.rejects && strcmp(cfg.report, cfg.rejects) == 0)
        return err_set(E_USAGE, "--report and --rejects name one file: %s", cfg.report);
    TRY(check_side(r, "--report", cfg.report));
    return check_side(r, "--rejects", cfg.rejects);
}

static int pack_all(struct run *r)
{
    struct ledger *l = &r->ledger;
    TRY(check_sides(r));
    l->length = cfg.length;
    l->files = r->input.n;
    l->ignored = r->input.ignored;
    l->has_valid = cfg.valid > 0;
    TRY(rejects_open(&r->rejects, cfg.rejects));
    TRY(flow_run(&r->flow, r->par));
    int rc = check_result(r);
    if (rc < 0) { // why, of every record, is what is wanted now
        TRY(rejects_finish(&r->rejects));
        TRY(write_report(r));
        return rc;
    }
    TRY(finish(r));
    ledger_tell(l, &r->tool->log);
    tell_end(r);
    return 0;
}

static bool is_whole(const struct flow *f)
{
    return f->train_side.emit.whole && (cfg.valid <= 0 || f->valid_side.emit.whole);
}

/* Whole by its options; but was it made from what stdin brings now? */
static int compare_stream(struct run *r)
{
    struct shard_reader *reader = NULL;
    char *path[] = {(char *)cfg.output};
    TRY(input_hash_stream(&r->input));
    TRY(digest(r));
    TRY(shard_open(&reader, path, 1));
    const char *made_from = shard_meta(reader, "input");
    bool same = made_from && strcmp(made_from, r->input_digest) == 0;
    shard_close(reader);
    return same ? 0
                : err_set(E_CONFIG, "%s is whole and was packed from other input",
                          cfg.output);
}

static int run(struct run *r)
{
    TRY(set_up(r));
    if (!is_whole(&r->flow))
        return pack_all(r);
    if (r->input.stream)
        TRY(compare_stream(r));
    log_note(&r->tool->log, "nothing to do: %s is whole", cfg.output);
    return 0;
}

static int pack(struct tool *t)
{
    struct run r = {.tool = t, .parts = 1};
    TRY(check_call(t));
    if (cfg.part)
        TRY(num_parse_part(cfg.part, &r.part, &r.parts));
    int rc = run(&r);
    rejects_abandon(&r.rejects);
    emit_abandon(&r.flow.train_side.emit);
    emit_abandon(&r.flow.valid_side.emit);
    window_close(&r.flow.train_side.window);
    window_close(&r.flow.valid_side.window);
    seen_drop(&r.flow.seen);
    input_drop(&r.input);
    buf_drop(&r.options);
    par_close(r.par);
    return rc;
}

int main(int argc, char **argv)
{
    struct tool tool = {.about = {"draft-pack",
                                  "pack tokenized documents into full rows",
                                  "[options] input... -o DIR"},
                        .options = options};
    int rc = tool_begin(&tool, argc, argv);
    if (rc == 0)
        rc = pack(&tool);
    return tool_end(&tool, rc);
}
