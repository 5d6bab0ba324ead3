/* SPDX-License-Identifier: MIT */
/* report.c - stable keys first, times in an object of their own. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "err.h"
#include "eval.h"
#include "file.h"
#include "hash.h"
#include "json.h"

static double speedup(const struct report *r, const struct tally *t)
{
    double plain = r->plain ? tally_speed(r->plain) : 0;
    return plain > 0 ? tally_speed(t) / plain : 0;
}

/* ---- JSON ---- */

static void add_taus(struct json_out *o, const struct report *r)
{
    if (r->drafter)
        json_add_real(o, "tau", tally_tau(r->drafter));
    if (r->untrained)
        json_add_real(o, "tau_untrained", tally_tau(r->untrained));
    if (r->lookup)
        json_add_real(o, "tau_lookup", tally_tau(r->lookup));
}

static void add_counts(struct json_out *o, const struct tally *t)
{
    json_add_int(o, "passes", t->passes);
    json_add_int(o, "block", t->block);
    json_open_array(o, "accept_rate");
    for (int64_t k = 1; k < t->block; k++)
        json_add_real(o, NULL, tally_rate(t, k));
    json_close_array(o);
    json_open_array(o, "histogram");
    for (int64_t k = 0; k < t->block; k++)
        json_add_int(o, NULL, t->count[k]);
    json_close_array(o);
}

static void add_speed(struct json_out *o, const struct report *r)
{
    if (r->drafter && r->plain) {
        json_add_real(o, "tokens_per_s", tally_speed(r->drafter));
        json_add_real(o, "plain_tokens_per_s", tally_speed(r->plain));
        json_add_real(o, "speedup", speedup(r, r->drafter));
    } else if (r->plain) {
        json_add_real(o, "plain_tokens_per_s", tally_speed(r->plain));
    }
    json_open_object(o, "timing");
    json_add_int(o, "sequences_at_once", r->lanes);
    if (r->plain)
        json_add_real(o, "plain_s", r->plain->seconds);
    if (r->drafter)
        json_add_real(o, "drafter_s", r->drafter->seconds);
    if (r->untrained)
        json_add_real(o, "untrained_s", r->untrained->seconds);
    if (r->lookup)
        json_add_real(o, "lookup_s", r->lookup->seconds);
    json_close_object(o);
}

void report_json(struct buf *to, const struct report *r)
{
    struct json_out o = {.to = to, .indent = 2};
    const struct tally *t = r->drafter ? r->drafter : r->plain;

    json_open_object(&o, NULL);
    json_add_text(&o, "mode", r->mode);
    json_add_text(&o, "made_of", r->made_of);
    add_taus(&o, r);
    json_add_real(&o, "distinct_4", tally_distinct(t));
    if (r->drafter && r->plain)
        json_add_bool(&o, "identical", r->identical);
    if (r->ties > 0)
        json_add_int(&o, "ties", r->ties);
    json_add_int(&o, "prompts", t->sequences);
    json_add_int(&o, "tokens", t->tokens);
    if (r->drafter)
        add_counts(&o, r->drafter);
    if (r->untrained)
        json_add_int(&o, "baseline_prompts", r->untrained->sequences);
    add_speed(&o, r);
    json_close_object(&o);
    buf_addc(to, '\n');
}

/* ---- the table ---- */

static void add_line(struct buf *to, const struct report *r, const char *name,
                     const struct tally *t)
{
    if (!t)
        return;
    buf_addf(to, "%-16s", name);
    if (t->passes)
        buf_addf(to, "%8.3f", tally_tau(t));
    else
        buf_adds(to, "       -");
    buf_addf(to, "%9lld%9lld", (long long)t->sequences, (long long)t->tokens);
    if (r->plain && t->seconds > 0)
        buf_addf(to, "%11.1f%10.2f", tally_speed(t), speedup(r, t));
    buf_addc(to, '\n');
}

/* add_slots shows how many passes kept exactly k proposals, and the share of
 * passes that kept slot k. */
static void add_slots(struct buf *to, const struct tally *t)
{
    enum { ACROSS = 10 };

    for (int64_t begin = 0; begin < t->block; begin += ACROSS) {
        int64_t end = begin + ACROSS < t->block ? begin + ACROSS : t->block;
        buf_adds(to, "accepted    ");
        for (int64_t k = begin; k < end; k++)
            buf_addf(to, "%7lld", (long long)k);
        buf_adds(to, "\npasses      ");
        for (int64_t k = begin; k < end; k++)
            buf_addf(to, "%7lld", (long long)t->count[k]);
        buf_adds(to, "\nslot right  ");
        for (int64_t k = begin; k < end; k++)
            if (k == 0)
                buf_adds(to, "      -");
            else
                buf_addf(to, "%7.3f", tally_rate(t, k));
        buf_addc(to, '\n');
    }
}

void report_table(struct buf *to, const struct report *r)
{
    const struct tally *t = r->drafter ? r->drafter : r->plain;

    buf_addf(to, "%-16s%8s%9s%9s", "", "tau", "prompts", "tokens");
    buf_adds(to, r->plain ? "   tokens/s  speed-up\n" : "\n");
    add_line(to, r, "drafter", r->drafter);
    add_line(to, r, "untrained", r->untrained);
    add_line(to, r, "3-gram lookup", r->lookup);
    add_line(to, r, "plain", r->plain);
    if (r->drafter)
        add_slots(to, r->drafter);
    buf_addf(to, "distinct 4-grams %.3f", tally_distinct(t));
    if (r->drafter && r->plain)
        buf_adds(to, r->identical ? "; every sequence identical to plain decoding"
                                  : "; NOT identical to plain decoding");
    if (r->ties > 0)
        buf_addf(to, " but for ties in %lld", (long long)r->ties);
    if (r->plain)
        buf_addf(to, "; %d sequence%s at once", r->lanes, r->lanes == 1 ? "" : "s");
    buf_addc(to, '\n');
}

/* ---- files ---- */

int report_origin(struct buf *to, const struct models *m, uint64_t input)
{
    char text[HASH_TEXT];

    buf_addf(to, "version=%s input=%s target=%s", TOOL_VERSION, hash_text(text, input),
             m->target);
    if (*m->drafter)
        buf_addf(to, " drafter=%s", m->drafter);
    buf_addc(to, ' ');
    opt_record(to, eval_table);
    return buf_check(to);
}

int report_done(const char *path, const char *made_of, const char *const *files)
{
    struct json *root = NULL;
    const char *text = NULL;
    bool same = file_exists(path) && json_load(&root, path) == 0 &&
                json_need_text(root, "made_of", &text) == 0 &&
                strcmp(text, made_of) == 0;

    json_free(root);
    for (; *files; files++)
        same = same && (**files == '\0' || file_exists(*files));
    return same;
}

int report_put(const struct report *r, const char *output, const struct log *log)
{
    struct buf json = {0}, table = {0};
    bool piped = strcmp(output, "-") == 0;
    int rc;

    report_json(&json, r);
    report_table(&table, r);
    TRY_GOTO(rc, buf_check(&json), out);
    TRY_GOTO(rc, buf_check(&table), out);
    if (!piped)
        TRY_GOTO(rc, file_write(output, json.p, json.len), out);
    if (piped)
        fwrite(json.p, 1, json.len, stdout); // tool_end checks
    if (!piped || (log->to && !log->quiet))
        fwrite(table.p, 1, table.len, piped ? log->to : stdout);
out:
    buf_drop(&json);
    buf_drop(&table);
    return rc;
}
