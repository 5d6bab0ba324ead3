/* SPDX-License-Identifier: MIT */
/* eval.c - draft-eval: how many tokens a pass of the target yields with a drafter.
 *
 *     prompts -> live:    speculative beside plain decoding, compared token by token
 *     prompts -> --plain: the target's own continuations, training text for draft-pack
 *     shards  -> --walk:  the same rounds from stored states, without the target */
#include "eval.h"

#include <string.h>

#include "live.h"
#include "offline.h"

static struct eval_options cfg = {.device = "cpu",
                                  .drafter = "",
                                  .target = "",
                                  .tokens = 128,
                                  .top_p = 1,
                                  .output = "-",
                                  .ids = "",
                                  .emit = "",
                                  .rounds = ""};

const struct opt eval_table[] = {
    OPT_HEAD("models"),
    OPT_TEXT('m', "target", &cfg.target, "DIR", "checkpoint of the target", 0),
    OPT_TEXT(0, "drafter", &cfg.drafter, "DIR", "checkpoint of the drafter", 0),
    OPT_TEXT('d', "device", &cfg.device, "DEV", "cpu, cuda or cuda:N", 0),
    OPT_HEAD("what is done"),
    OPT_FLAG(0, "plain", &cfg.plain, "only plain decoding, without a drafter",
             OPT_CONTENT),
    OPT_FLAG(0, "walk", &cfg.walk, "the inputs are hidden shards: no target is run",
             OPT_CONTENT),
    OPT_INT('n', "tokens", &cfg.tokens, "N", "new tokens a prompt", OPT_CONTENT),
    OPT_INT(0, "prompts", &cfg.prompts, "N", "only the first N prompts; 0 means all",
            OPT_CONTENT),
    OPT_INT(0, "baselines", &cfg.baselines, "N",
            "prompts that the untrained drafter and the lookup decode; 0 means all",
            OPT_CONTENT),
    OPT_FLAG(0, "ignore-stop", &cfg.ignore_stop, "go on behind stop tokens",
             OPT_CONTENT),
    OPT_INT('s', "seed", &cfg.seed, "SEED", "of the untrained drafter and of sampling",
            OPT_CONTENT),
    OPT_REAL(0, "temperature", &cfg.temperature, "T",
             "with --plain: sample instead of taking the likeliest (0)", OPT_CONTENT),
    OPT_REAL(0, "top-p", &cfg.top_p, "P",
             "with --temperature: only the likeliest tokens "
             "of mass P",
             OPT_CONTENT),
    OPT_HEAD("output"),
    OPT_TEXT('o', "output", &cfg.output, "FILE", "the report as JSON, or - for stdout",
             0),
    OPT_TEXT(0, "ids", &cfg.ids, "FILE", "write the decoded ids as JSON lines", 0),
    OPT_TEXT(0, "emit", &cfg.emit, "FILE",
             "write prompts and continuations as draft-pack reads them", 0),
    OPT_TEXT(0, "rounds", &cfg.rounds, "FILE",
             "write the accepted counts of every round", 0),
    TOOL_OPTIONS,
    OPT_END};

static int check_models(void)
{
    if (!*cfg.target)
        return err_set(E_USAGE, "no target: -m DIR");
    if (cfg.plain && *cfg.drafter)
        return err_set(E_USAGE, "--plain decodes without --drafter");
    if (!cfg.plain && !*cfg.drafter)
        return err_set(E_USAGE, "no drafter: --drafter DIR, or --plain");
    if (cfg.plain && cfg.walk)
        return err_set(E_USAGE, "--plain and --walk exclude each other");
    return 0;
}

static int check_numbers(void)
{
    if (cfg.tokens < 1 || cfg.tokens > 1 << 24)
        return err_set(E_USAGE, "--tokens: 1 to %d, not %lld", 1 << 24,
                       (long long)cfg.tokens);
    if (cfg.prompts < 0 || cfg.baselines < 0)
        return err_set(E_USAGE, "--prompts and --baselines are not negative");
    if (cfg.temperature < 0 || cfg.top_p <= 0 || cfg.top_p > 1)
        return err_set(E_USAGE, "--temperature is not negative, --top-p in (0, 1]");
    if (cfg.temperature > 0 && !cfg.plain)
        return err_set(E_USAGE, "--temperature needs --plain: drafts are verified "
                                "greedily");
    if (cfg.walk && (*cfg.ids || *cfg.emit))
        return err_set(E_USAGE, "--walk decodes nothing for --ids or --emit");
    return 0;
}

/* No output lands on an input, or on another output. */
static int check_outputs(const struct tool *tool)
{
    const char *const path[] = {cfg.output, cfg.ids, cfg.emit, cfg.rounds};
    const char *const option[] = {"--output", "--ids", "--emit", "--rounds"};
    for (int i = 0; i < 4; i++) {
        if (!*path[i] || strcmp(path[i], "-") == 0)
            continue;
        TRY(tool_not_input(tool, option[i], path[i]));
        for (int k = 0; k < i; k++)
            if (strcmp(path[i], path[k]) == 0 && strcmp(path[i], "/dev/null") != 0)
                return err_set(E_USAGE, "%s and %s name one file: %s", option[k],
                               option[i], path[i]);
    }
    return 0;
}

static int check_options(const struct tool *tool)
{
    TRY(check_models());
    TRY(check_numbers());
    TRY(check_outputs(tool));
    if (tool->inputs == 0)
        return err_set(E_USAGE, cfg.walk ? "no hidden shards" : "no prompts");
    if (tool->inputs > 1 && !cfg.walk)
        return err_set(E_USAGE, "%s: one file of prompts at a time", tool->input[1]);
    return 0;
}

int main(int argc, char **argv)
{
    struct tool tool = {
        .about =
            {"draft-eval", "measure a drafter by decoding with it",
             "[options] -m TARGET --drafter DIR PROMPTS.jsonl|-\n"
             "       draft-eval [options] -m TARGET --plain PROMPTS.jsonl|-\n"
             "       draft-eval [options] -m TARGET --drafter DIR --walk HIDDEN...|-"},
        .options = eval_table};
    int rc = tool_begin(&tool, argc, argv);
    if (rc == 0)
        rc = check_options(&tool);
    if (rc == 0)
        rc = cfg.walk ? offline_run(&tool, &cfg) : live_run(&tool, &cfg);
    return tool_end(&tool, rc);
}
