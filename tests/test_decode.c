/* SPDX-License-Identifier: MIT */
/* test_decode.c - speculative decoding against plain, with proposers that we steer. */
#include <math.h>
#include <string.h>

#include "err.h"
#include "kit.h"
#include "kit_model.h"
#include "mem.h"
#include "tools/eval/decode.h"
#include "tools/eval/tally.h"
#include "tools/eval/tie.h"
#include "tools/eval/verify.h"

enum { N = 40, B = 8, V = 512 };

static const char *const model = "tests/golden/target-qwen3/model";

/* ---- a world of one lane and one prompt ---- */

struct world {
    struct dev *dev;
    struct target *target;
    struct tensor embed, head;
    struct drafter m;
    struct lane lane;
    int32_t ids[6];
    struct prompt prompt;
    struct decode_rule rule;
    struct decoded plain;
};

/* The tokens that plain decoding gives behind the prompt, and how a steered proposer
 * goes wrong: proposal j of a round is right when j < right[round % rights]. */
static struct {
    const struct decoded *plain;
    int64_t prompt;
    const int64_t *right;
    int64_t rights, round;
} steer;

static int64_t steered(struct lane *l, const int32_t *text, int64_t len, int64_t want,
                       int32_t *token)
{
    int64_t right = steer.right[steer.round++ % steer.rights];
    int64_t at = len - steer.prompt;

    (void)l, (void)text;
    for (int64_t j = 0; j < want; j++) {
        int32_t good = at + j < steer.plain->n ? steer.plain->ids[at + j] : 0;
        token[j] = j < right ? good : (good + 1) % V;
    }
    return want;
}

static const struct proposer propose_steered = {steered, false};

static void world_open(struct world *w, const char *dir)
{
    const struct drafter_config c = {.hidden = 64,
                                     .inter = 64,
                                     .layers = 2,
                                     .heads = 2,
                                     .kv_heads = 1,
                                     .head_dim = 32,
                                     .vocab = V,
                                     .max_positions = 4096,
                                     .eps = 1e-6,
                                     .rope_theta = 1e6,
                                     .block = B,
                                     .mask_id = V - 1,
                                     .tap = {0, 2},
                                     .taps = 2,
                                     .target_layers = 4,
                                     .causal = -1,
                                     .stop = -1};

    *w = (struct world){.ids = {7, 300, 21, 5, 410, 33}};
    kit_ok(dev_open(&w->dev, "cpu", NULL));
    kit_ok(target_open(&w->target, w->dev, dir, -1, true));
    kit_ok(drafter_new(&w->m, w->dev, &c, target_embed(w->target),
                       target_head(w->target)));
    param_init(w->m.flat.data, &w->m.table, 1, NULL);
    kit_ok(lane_open(&w->lane, "cpu", NULL, w->target, &w->m, 6 + N + B));
    w->prompt = (struct prompt){w->ids, 6, 1};
    w->rule = (struct decode_rule){.tokens = N, .sample = {0, 1}};
    kit_ok(decode_plain(&w->plain, &w->lane, &w->prompt, &w->rule, 0));
}

static void world_close(struct world *w)
{
    decode_free(&w->plain);
    lane_close(&w->lane);
    drafter_drop(&w->m);
    target_close(w->target);
    dev_close(w->dev);
}

static void decode_steered(struct world *w, const struct decoded *ahead,
                           const int64_t *right, int64_t rights, struct decoded *out)
{
    steer.plain = ahead;
    steer.prompt = w->prompt.n;
    steer.right = right;
    steer.rights = rights;
    steer.round = 0;
    kit_ok(decode_prompt(out, &w->lane, &propose_steered, &w->prompt, &w->rule));
    ck_assert_int_eq(out->n, w->plain.n);
    kit_same("ids", out->ids, w->plain.ids, (size_t)out->n * sizeof *out->ids);
}

/* ---- decoding ---- */

START_TEST(plain_is_the_reference)
{
    /* The golden file has 16 greedy tokens behind each of its documents. */
    struct st_file golden;
    struct world w;
    struct decoded d;

    kit_ok(st_open(&golden, "tests/golden/target-qwen3/golden.safetensors"));
    const int32_t *ids = kit_golden(&golden, "ids", ST_I32, NULL);
    const int32_t *cu = kit_golden(&golden, "cu", ST_I32, NULL);
    const int32_t *greedy = kit_golden(&golden, "greedy", ST_I32, NULL);
    world_open(&w, model);
    w.rule.tokens = 16;
    w.rule.ignore_stop = true;
    for (int i = 0; i < 9; i++) {
        int64_t n = cu[i + 1] - cu[i];
        if (n > 6 + N - 16)
            continue;
        int32_t copy[6 + N];
        memcpy(copy, ids + cu[i], (size_t)n * sizeof *copy);
        struct prompt q = {copy, n, 1};
        kit_ok(decode_plain(&d, &w.lane, &q, &w.rule, 0));
        kit_same("greedy", d.ids, greedy + 16 * i, 16 * sizeof *greedy);
        decode_free(&d);
    }
    world_close(&w);
    st_close(&golden);
}
END_TEST

START_TEST(all_right_gives_full_blocks)
{
    const int64_t right[] = {B};
    struct world w;
    struct decoded d;

    world_open(&w, model);
    decode_steered(&w, &w.plain, right, 1, &d);
    /* 39 tokens behind the first: four blocks of 8, one of 7 (6 proposals). */
    ck_assert_int_eq(d.rounds, 5);
    for (int64_t i = 0; i < 4; i++)
        ck_assert_int_eq(d.accepted[i], B - 1);
    ck_assert_int_eq(d.accepted[4], 6);
    decode_free(&d);
    world_close(&w);
}
END_TEST

START_TEST(all_wrong_gives_one_a_pass)
{
    const int64_t right[] = {0};
    struct world w;
    struct decoded d;

    world_open(&w, model);
    decode_steered(&w, &w.plain, right, 1, &d);
    ck_assert_int_eq(d.rounds, N - 1);
    for (int64_t i = 0; i < d.rounds; i++)
        ck_assert_int_eq(d.accepted[i], 0);
    decode_free(&d);
    world_close(&w);
}
END_TEST

START_TEST(mixed_counts_are_kept)
{
    const int64_t right[] = {3, 0, 7, 1, 5};
    struct world w;
    struct decoded d;

    world_open(&w, model);
    decode_steered(&w, &w.plain, right, 5, &d);
    int64_t left = N - 1;
    for (int64_t i = 0; i < d.rounds; i++) {
        int64_t v = left < B ? left : B;
        int64_t want = right[i % 5] < v - 1 ? right[i % 5] : v - 1;
        ck_assert_int_eq(d.accepted[i], want);
        left -= want + 1;
    }
    ck_assert_int_eq(left, 0);
    decode_free(&d);
    world_close(&w);
}
END_TEST

START_TEST(drafter_and_lookup_change_nothing)
{
    const struct proposer *const p[] = {&propose_drafter, &propose_lookup};
    struct world w;
    struct decoded d;

    world_open(&w, model);
    for (int i = 0; i < 2; i++) {
        kit_ok(decode_prompt(&d, &w.lane, p[i], &w.prompt, &w.rule));
        ck_assert_int_eq(d.n, N);
        kit_same("ids", d.ids, w.plain.ids, N * sizeof *d.ids);
        decode_free(&d);
    }
    world_close(&w);
}
END_TEST

START_TEST(sampling_is_keyed)
{
    struct world w;
    struct decoded a, b, c;

    world_open(&w, model);
    w.rule.sample = (struct sample){1, 0.9};
    kit_ok(decode_plain(&a, &w.lane, &w.prompt, &w.rule, 4));
    kit_ok(decode_plain(&c, &w.lane, &w.prompt, &w.rule, 5));
    kit_ok(decode_plain(&b, &w.lane, &w.prompt, &w.rule, 4));
    ck_assert_int_eq(a.n, N);
    kit_same("ids", a.ids, b.ids, N * sizeof *a.ids);
    ck_assert(memcmp(a.ids, c.ids, N * sizeof *a.ids) != 0);
    ck_assert(memcmp(a.ids, w.plain.ids, N * sizeof *a.ids) != 0);
    decode_free(&a);
    decode_free(&b);
    decode_free(&c);
    world_close(&w);
}
END_TEST

/* ---- stop tokens ---- */

/* stop_model copies the checkpoint with another stop token. */
static const char *stop_model(int32_t stop)
{
    const char *dir = kit_tmp_dir();
    char **name;
    int64_t names;
    size_t size;

    kit_ok(file_list(model, &name, &names));
    for (int64_t i = 0; i < names; i++) {
        char *text = kit_read(kit_path("%s/%s", model, name[i]), &size), *at;
        if (strcmp(name[i], "config.json") == 0) {
            at = strstr(text, "\"eos_token_id\": 2,");
            ck_assert_ptr_nonnull(at);
            struct buf b = {0};
            buf_add(&b, text, (size_t)(at - text));
            buf_addf(&b, "\"eos_token_id\": %d,%s", stop, at + 18);
            kit_write(kit_path("%s/%s", dir, name[i]), b.p, b.len);
            buf_drop(&b);
        } else {
            kit_write(kit_path("%s/%s", dir, name[i]), text, size);
        }
        mem_free(text);
    }
    file_list_free(name, names);
    return dir;
}

START_TEST(stop_cuts_the_round)
{
    const int64_t right[] = {B};
    struct world w;
    struct decoded d, whole;
    int64_t at = 12;

    world_open(&w, model);
    whole = w.plain;
    w.plain = (struct decoded){0};
    world_close(&w);
    int32_t stop = whole.ids[at];
    for (int64_t i = 0; i < at; i++)
        ck_assert_int_ne(whole.ids[i], stop);

    world_open(&w, stop_model(stop));
    ck_assert_int_eq(w.plain.n, at + 1);
    /* Proposals go on to be right behind the stop token. */
    decode_steered(&w, &whole, right, 1, &d);
    /* The first round gives tokens 1 to 8; token 12 is proposal 4 of the second. */
    ck_assert_int_eq(d.rounds, 2);
    ck_assert_int_eq(d.accepted[0], 7);
    ck_assert_int_eq(d.accepted[1], 4);
    decode_free(&d);
    w.rule.ignore_stop = true;
    kit_ok(decode_plain(&d, &w.lane, &w.prompt, &w.rule, 0));
    ck_assert_int_eq(d.n, N);
    kit_same("ids", d.ids, whole.ids, N * sizeof *d.ids);
    decode_free(&d);
    decode_free(&whole);
    world_close(&w);
}
END_TEST

/* ---- parts ---- */

/* At every place the token that was chosen is the likeliest, its runner-up is nearer
 * than any other, and the distance is that of the scores which decoding saw. */
START_TEST(ties_are_measured)
{
    static float score[V];
    static const int64_t places[] = {0, 1, N - 1};
    struct world w;
    double gap, least;

    world_open(&w, model);
    for (int i = 0; i < 3; i++) {
        int64_t at = places[i];
        int32_t best = w.plain.ids[at], second = -1;
        kit_ok(tie_gap(&w.lane, &w.prompt, &w.plain, at, best, &gap));
        ck_assert(gap == 0);
        kit_ok(lane_logits(&w.lane, score)); // of the pass that tie_gap ended with
        double most = 0;
        for (int32_t v = 0; v < V; v++) {
            most = fmax(most, fabs((double)score[v]));
            if (v != best && (second < 0 || score[v] > score[second]))
                second = v;
        }
        ck_assert(score[second] < score[best]);
        kit_ok(tie_gap(&w.lane, &w.prompt, &w.plain, at, second, &least));
        ck_assert_double_eq(least, (double)(score[best] - score[second]) / most);
        kit_ok(tie_gap(&w.lane, &w.prompt, &w.plain, at, (best + 1) % V, &gap));
        ck_assert(gap >= least);
    }
    world_close(&w);
}
END_TEST

START_TEST(prefix_counts)
{
    const int32_t id[4] = {9, 1, 2, 3}, all[4] = {1, 2, 3, 4}, none[4] = {2, 2, 3, 4};
    const int32_t two[4] = {1, 2, 9, 4}, late[4] = {9, 2, 3, 4};

    ck_assert_int_eq(verify_prefix(id, all, 4), 3);
    ck_assert_int_eq(verify_prefix(id, two, 4), 2);
    ck_assert_int_eq(verify_prefix(id, none, 4), 0);
    ck_assert_int_eq(verify_prefix(id, late, 4), 0);
    ck_assert_int_eq(verify_prefix(id, all, 1), 0);
}
END_TEST

START_TEST(lookup_copies_the_latest)
{
    const int32_t text[] = {1, 2, 3, 7, 1, 2, 3, 8, 9, 1, 2, 3};
    const int32_t loop[] = {5, 6, 5, 6, 5, 6}, fresh[] = {1, 2, 3, 4, 5, 6};
    const int32_t want[] = {8, 9, 1}, again[] = {5, 6, 5, 6};
    int32_t token[4];

    ck_assert_int_eq(propose_lookup.propose(NULL, text, 12, 3, token), 3);
    kit_same("latest", token, want, sizeof want);
    ck_assert_int_eq(propose_lookup.propose(NULL, loop, 6, 4, token), 4);
    kit_same("loop", token, again, sizeof again);
    ck_assert_int_eq(propose_lookup.propose(NULL, fresh, 6, 4, token), 0);
    ck_assert_int_eq(propose_lookup.propose(NULL, fresh, 2, 4, token), 0);
}
END_TEST

START_TEST(tallies_add_up)
{
    const int32_t ids[] = {1, 2, 3, 4, 1, 2, 3, 4, 5}, accepted[] = {3, 0, 2};
    struct tally t;

    kit_ok(tally_open(&t, 4));
    kit_ok(tally_add(&t, ids, 9, accepted, 3));
    ck_assert(tally_tau(&t) == 8.0 / 3);
    ck_assert(tally_rate(&t, 1) == 2.0 / 3);
    ck_assert(tally_rate(&t, 2) == 2.0 / 3);
    ck_assert(tally_rate(&t, 3) == 1.0 / 3);
    /* 1234 2341 3412 4123 1234 2345: five distinct of six. */
    ck_assert(tally_distinct(&t) == 5.0 / 6);
    kit_ok(tally_add(&t, ids, 1, accepted, 0));
    ck_assert(tally_tau(&t) == 8.0 / 3);
    ck_assert_int_eq(t.sequences, 2);
    tally_close(&t);
}
END_TEST

KIT_MAIN("decode", plain_is_the_reference, all_right_gives_full_blocks,
         all_wrong_gives_one_a_pass, mixed_counts_are_kept,
         drafter_and_lookup_change_nothing, sampling_is_keyed, stop_cuts_the_round,
         ties_are_measured, prefix_counts, lookup_copies_the_latest, tallies_add_up)
