/* SPDX-License-Identifier: MIT */
/* test_batch.c - from a row to anchors, spans and labels, by hand; what is refused. */
#include "kit.h"
#include "kit_train.h"

#include "err.h"
#include "num.h"
#include "train/batch.h"

#include <math.h>
#include <string.h>

enum { S = 12, WIDTH = KIT_TAPS * KIT_HIDDEN };

/* Two documents of 6 and 4 tokens, then padding; supervised from the third and second
 * token on, with a gap in the first document. */
static const int32_t ids[S] = {10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 0, 0};
static const uint8_t mask[S] = {0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0};
static const int32_t doc[S] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, -1, -1};
static const int64_t source[] = {0, 70, 0, 0, 71, 0};

/* A row on a device; text may be changed before it is used. */
struct bench {
    struct kit_dev kit;
    struct drafter_config config;
    struct batch batch;
    struct intake_row in;
    uint16_t aux[S * WIDTH];
    int32_t ids[S];
    uint8_t mask[S];
};

static void set_up(struct bench *b, bool fp8)
{
    const char *dir = kit_tmp_dir();
    kit_target(dir);
    memset(b, 0, sizeof *b);
    memcpy(b->ids, ids, sizeof ids);
    memcpy(b->mask, mask, sizeof mask);
    kit_dev_open(&b->kit, dir, 1);
    b->config = kit_drafter(4);
    b->config.window = 3;
    struct batch_shape shape = {.config = &b->config,
                                .length = S,
                                .anchors = 8,
                                .seed = 1,
                                .gamma = 2,
                                .fp8 = fp8};
    kit_ok(batch_open(&b->batch, b->kit.dev, &shape));
    for (int i = 0; i < S * WIDTH; i++)
        b->aux[i] = num_f32_bf16((float)(i % 97) / 32 - 1.5f);
    b->in = (struct intake_row){.row = {.text = {.length = S,
                                                 .ids = b->ids,
                                                 .mask = b->mask,
                                                 .doc = doc,
                                                 .source = source,
                                                 .docs = 2},
                                        .index = 5,
                                        .aux = b->aux,
                                        .width = WIDTH},
                                .file = "shard",
                                .source = 9};
}

static void tear_down(struct bench *b)
{
    batch_close(&b->batch);
    kit_dev_close(&b->kit);
}

static void expect(const char *what, const int32_t *got, const int32_t *want, int64_t n)
{
    kit_same(what, got, want, (size_t)n * sizeof *got);
}

START_TEST(lays_out_blocks)
{
    static struct bench b;
    struct drafter_row r;
    set_up(&b, false);
    kit_ok(batch_make(&b.batch, &r, &b.in, 0));
    /* Candidates: 2 (12 then 13), 7 and 8; the gap ends the first block's labels. */
    ck_assert_int_eq(r.blocks, 3);
    expect("anchors", b.batch.anchor, (const int32_t[]){2, 7, 8}, 3);
    expect("ids", r.id,
           (const int32_t[]){12, 95, 95, 95, 21, 95, 95, 95, 22, 95, 95, 95}, 12);
    expect("at", r.at, (const int32_t[]){2, 3, 4, 5, 1, 2, 3, 4, 2, 3, 4, 5}, 12);
    expect("lo", r.lo, (const int32_t[]){0, 0, 0, 0, 6, 6, 6, 6, 6, 6, 6, 6}, 12);
    expect("hi", r.hi, (const int32_t[]){2, 2, 2, 2, 7, 7, 7, 7, 8, 8, 8, 8}, 12);
    expect("slide", r.slide, (const int32_t[]){0, 1, 2, 2, 6, 6, 7, 7, 6, 7, 8, 8}, 12);
    expect("pos", r.pos, (const int32_t[]){0, 1, 2, 3, 4, 5, 0, 1, 2, 3}, 10);
    ck_assert_int_eq(r.labelled, 4);
    expect("rows", r.row, (const int32_t[]){1, 5, 6, 9}, 4);
    expect("labels", r.label, (const int32_t[]){13, 22, 23, 23}, 4);
    const float w = (float)exp(-0.5);
    kit_same("weights", r.weight, (const float[]){1, 1, w, 1}, 4 * sizeof(float));
    kit_same("states", r.aux.data, b.aux, sizeof b.aux);
    ck_assert_int_eq(r.context, S);
    tear_down(&b);
}
END_TEST

START_TEST(draws_by_epoch_and_source)
{
    static struct bench b;
    struct drafter_row r;
    int32_t first[2];
    bool epoch_counts = false, source_counts = false;
    set_up(&b, false);
    memset(b.mask, 1, 10);
    b.batch.anchors = 2;
    kit_ok(batch_make(&b.batch, &r, &b.in, 0));
    memcpy(first, b.batch.anchor, sizeof first);
    kit_ok(batch_make(&b.batch, &r, &b.in, 0));
    expect("again", b.batch.anchor, first, 2);
    for (int i = 1; i < 9; i++) {
        kit_ok(batch_make(&b.batch, &r, &b.in, i));
        epoch_counts |= memcmp(b.batch.anchor, first, sizeof first) != 0;
        b.in.source = 9 + (uint64_t)i;
        kit_ok(batch_make(&b.batch, &r, &b.in, 0));
        source_counts |= memcmp(b.batch.anchor, first, sizeof first) != 0;
        b.in.source = 9;
    }
    ck_assert(epoch_counts && source_counts);
    tear_down(&b);
}
END_TEST

START_TEST(brings_fp8_over)
{
    static struct bench b;
    struct drafter_row r;
    uint8_t q[S * WIDTH];
    float scale[S * KIT_TAPS];
    set_up(&b, true);
    for (int i = 0; i < S * WIDTH; i++)
        q[i] = (uint8_t)(i * 7 % 126);
    for (int i = 0; i < S * KIT_TAPS; i++)
        scale[i] = 0.01f * (float)(i + 1);
    b.in.row.aux = q;
    b.in.row.scale = scale;
    b.in.row.taps = KIT_TAPS;
    kit_ok(batch_make(&b.batch, &r, &b.in, 0));
    kit_ok(dev_sync(b.kit.dev));
    const uint16_t *got = r.aux.data;
    for (int i = 0; i < S * WIDTH; i++)
        ck_assert_int_eq(got[i],
                         num_f32_bf16(num_e4m3_f32(q[i]) * scale[i / KIT_HIDDEN]));
    scale[3 * KIT_TAPS] = INFINITY;
    kit_ok(batch_make(&b.batch, &r, &b.in, 0));
    ck_assert_int_eq(dev_sync(b.kit.dev), E_FORMAT);
    kit_fails(batch_blame(&b.batch, E_FORMAT, &b.in), E_FORMAT,
              "token 3: hidden state");
    tear_down(&b);
}
END_TEST

START_TEST(takes_rows_without_anchors)
{
    static struct bench b;
    struct drafter drafter = {0};
    struct metrics m = {0};
    set_up(&b, false);
    memset(b.mask, 0, S);
    b.mask[3] = 1; // supervised, but nothing follows
    kit_ok(batch_pass(&b.batch, &drafter, &b.in, 0, (struct tensor){0}, NULL, &m));
    ck_assert_double_eq(m.rows, 1);
    ck_assert_double_eq(m.blocks, 0);
    ck_assert_double_eq(m.weight, 0);
    tear_down(&b);
}
END_TEST

START_TEST(names_bad_tokens)
{
    static struct bench b;
    struct drafter_row r;
    set_up(&b, false);
    b.ids[8] = KIT_VOCAB;
    kit_fails(batch_make(&b.batch, &r, &b.in, 0), E_FORMAT,
              "shard: row 5, record 71, token 8: id outside");
    b.ids[8] = -1;
    kit_fails(batch_make(&b.batch, &r, &b.in, 0), E_FORMAT, "token 8: id outside");
    tear_down(&b);
}
END_TEST

START_TEST(names_bad_states)
{
    static struct bench b;
    struct drafter drafter;
    struct arena work;
    struct metrics m = {0};
    set_up(&b, false);
    b.aux[4 * WIDTH + 100] = 0x7f80; // infinity
    kit_ok(drafter_new(&drafter, b.kit.dev, &b.config, target_embed(b.kit.target),
                       target_head(b.kit.target)));
    memset(drafter.flat.data, 0, tensor_bytes(&drafter.flat));
    kit_ok(
        arena_open(&work, b.kit.dev, "work", drafter_bytes(&drafter, S, 32, 24, true)));
    kit_fails(batch_pass(&b.batch, &drafter, &b.in, 0, (struct tensor){0}, &work, &m),
              E_FORMAT, "shard: row 5, record 70, token 4: hidden state is not");
    arena_close(&work);
    drafter_drop(&drafter);
    tear_down(&b);
}
END_TEST

KIT_MAIN("batch", lays_out_blocks, draws_by_epoch_and_source, brings_fp8_over,
         takes_rows_without_anchors, names_bad_tokens, names_bad_states)
