/* SPDX-License-Identifier: MIT */
/* decode.c - the loop of arXiv 2602.06036 (z-lab/dflash, dflash_generate), batch 1.
 *
 *     prefill the prompt; t0 = argmax; start = its length
 *     while tokens remain:
 *         v = min(B, remaining)
 *         propose v - 1 tokens behind text[start]; the drafter's context holds the taps
 *             of positions [0, start): the anchor's own exist only after the next pass
 *         verify [anchor, proposals]; emit those accepted and the target's next
 *         start += accepted + 1; taps of the rows kept go to the drafter's context */
#include "decode.h"

#include <string.h>

#include "err.h"
#include "mem.h"
#include "op.h"
#include "verify.h"

/* A sequence on its way: the prompt and what was emitted, in one array. */
struct text {
    int32_t *id;
    int64_t prompt, len, limit; /* limit: prompt + tokens */
    bool stopped;
};

bool decode_stops(const struct target_config *c, int32_t id)
{
    for (int i = 0; i < c->stops; i++)
        if (c->stop[i] == id)
            return true;
    return false;
}

void decode_free(struct decoded *d)
{
    mem_free(d->ids);
    mem_free(d->accepted);
    *d = (struct decoded){0};
}

static int begin(struct text *t, struct decoded *out, const struct prompt *q,
                 const struct decode_rule *rule)
{
    *out = (struct decoded){0};
    *t = (struct text){.prompt = q->n, .len = q->n, .limit = q->n + rule->tokens};
    t->id = mem_alloc((size_t)t->limit * sizeof *t->id);
    out->ids = mem_alloc((size_t)rule->tokens * sizeof *out->ids);
    out->accepted = mem_alloc((size_t)rule->tokens * sizeof *out->accepted);
    if (!t->id || !out->ids || !out->accepted)
        return E_MEMORY;
    memcpy(t->id, q->ids, (size_t)q->n * sizeof *t->id);
    return 0;
}

/* emit appends up to n tokens, a stop token being the last; returns how many. */
static int64_t emit(struct text *t, const int32_t *id, int64_t n, const struct lane *l,
                    const struct decode_rule *rule)
{
    int64_t done = 0;

    while (done < n && !t->stopped) {
        t->id[t->len++] = id[done];
        t->stopped =
            !rule->ignore_stop && decode_stops(target_config(l->target), id[done]);
        done++;
    }
    return done;
}

/* prefill runs the prompt in pieces; the logits of its last token remain. */
static int prefill(struct lane *l, const struct text *t, bool context)
{
    lane_reset(l);
    for (int64_t at = 0; at < t->prompt; at += LANE_ROWS) {
        int64_t left = t->prompt - at, n = left < LANE_ROWS ? left : LANE_ROWS;
        TRY(lane_forward(l, t->id + at, n, n == left));
        if (context)
            TRY(lane_feed(l, n));
    }
    return 0;
}

/* round_of drafts and verifies one block; returns the count of proposals emitted. */
static int64_t round_of(struct text *t, struct lane *l, const struct proposer *p,
                        const struct decode_rule *rule, int32_t *id)
{
    int64_t left = t->limit - t->len, v = left < l->block ? left : l->block;
    int64_t proposed = 0;

    id[0] = t->id[t->len - 1];
    if (v > 1) {
        proposed = p->propose(l, t->id, t->len, v - 1, id + 1);
        if (proposed < 0)
            return proposed;
    }
    int64_t accepted = verify_pass(l, id, proposed + 1);
    if (accepted < 0)
        return accepted;
    int64_t emitted = emit(t, id + 1, accepted + 1, l, rule);
    if (p->context && !t->stopped && t->len < t->limit)
        TRY(lane_feed(l, accepted + 1));
    return emitted < accepted ? emitted : accepted;
}

static int rounds(struct decoded *out, struct text *t, struct lane *l,
                  const struct proposer *p, const struct decode_rule *rule)
{
    int32_t *id = mem_alloc((size_t)(l->block + 1) * sizeof *id);
    int rc = id ? 0 : E_MEMORY;

    while (rc == 0 && !t->stopped && t->len < t->limit) {
        int64_t accepted = round_of(t, l, p, rule, id);
        if (accepted < 0)
            rc = (int)accepted;
        else
            out->accepted[out->rounds++] = (int32_t)accepted;
    }
    mem_free(id);
    return rc;
}

static void finish(struct decoded *out, struct text *t)
{
    out->n = t->len - t->prompt;
    if (out->n > 0)
        memcpy(out->ids, t->id + t->prompt, (size_t)out->n * sizeof *out->ids);
}

int decode_prompt(struct decoded *out, struct lane *l, const struct proposer *p,
                  const struct prompt *q, const struct decode_rule *rule)
{
    struct text text;
    int32_t first;
    int rc;

    TRY_GOTO(rc, begin(&text, out, q, rule), out);
    TRY_GOTO(rc, prefill(l, &text, p->context), out);
    TRY_GOTO(rc, lane_best(l, &first, 1), out);
    emit(&text, &first, 1, l, rule);
    TRY_GOTO(rc, rounds(out, &text, l, p, rule), out);
    finish(out, &text);
out:
    mem_free(text.id);
    return rc;
}

/* ---- one token a pass ---- */

/* Draws one token from the logits of the last row. */
struct chooser {
    const struct decode_rule *rule;
    struct rng rng;
    float *logits; /* host [V]; NULL when greedy */
};

static int choose(struct chooser *c, struct lane *l, int32_t *token)
{
    if (!c->logits)
        return lane_best(l, token, 1);
    int64_t vocab = target_config(l->target)->vocab;
    TRY(lane_logits(l, c->logits));
    return sample_token(token, c->logits, vocab, c->rule->sample, &c->rng);
}

static int open_chooser(struct chooser *c, const struct decode_rule *rule,
                        const struct lane *l, int64_t record)
{
    uint64_t word[2] = {rule->seed, (uint64_t)record};

    *c = (struct chooser){.rule = rule, .rng = rng_new(rng_key(word, 2))};
    if (rule->sample.temperature == 0)
        return 0;
    c->logits = mem_alloc((size_t)target_config(l->target)->vocab * sizeof(float));
    return c->logits ? 0 : E_MEMORY;
}

int decode_plain(struct decoded *out, struct lane *l, const struct prompt *q,
                 const struct decode_rule *rule, int64_t record)
{
    struct text text;
    struct chooser chooser = {0};
    int32_t token;
    int rc;

    TRY_GOTO(rc, begin(&text, out, q, rule), out);
    TRY_GOTO(rc, open_chooser(&chooser, rule, l, record), out);
    TRY_GOTO(rc, prefill(l, &text, false), out);
    for (;;) {
        TRY_GOTO(rc, choose(&chooser, l, &token), out);
        emit(&text, &token, 1, l, rule);
        if (text.stopped || text.len == text.limit)
            break;
        TRY_GOTO(rc, lane_forward(l, &token, 1, 1), out);
    }
    finish(out, &text);
out:
    mem_free(chooser.logits);
    mem_free(text.id);
    return rc;
}
