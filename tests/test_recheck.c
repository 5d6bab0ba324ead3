/* SPDX-License-Identifier: MIT */
/* test_recheck.c - hidden shards verified against their target, and the band of sizes
 * that a run's rows keep to.
 *
 * Runs are written here: as the target gives them, with the error of rounding, and with
 * the mistakes that such a check is for. */
#include <math.h>
#include <string.h>

#include "extract/band.h"
#include "extract/capture.h"
#include "extract/recheck.h"

#include "err.h"
#include "kit.h"
#include "mem.h"
#include "num.h"
#include "rng.h"

enum { S = 48, H = 64, V = 512, ROWS = 6, TAPS = 2 };

static const char *const model = "tests/golden/target-qwen3/model";

/* ---- runs ---- */

enum fault { NONE, NOISE, SWAPPED_TAPS, NEXT_ROW, OTHER_TARGET, NOT_FINITE };

static void fill_text(struct hidden_row *r, int64_t index)
{
    r->index = index;
    r->docs = 2;
    memset(r->source, 0, 2 * sizeof *r->source);
    for (int64_t s = 0; s < S; s++) {
        r->ids[s] = (int32_t)((s * 37 + index * 11 + 3) % V);
        r->mask[s] = 1;
        r->doc[s] = s < 20 ? 0 : s < S - 3 ? 1 : -1;
    }
}

static void scale_bf16(uint16_t *x, int64_t n, double by)
{
    struct rng rng = rng_new(9);
    for (int64_t i = 0; i < n; i++)
        x[i] = num_f32_bf16(num_bf16_f32(x[i]) *
                            (float)(1 + by * (2 * rng_real(&rng) - 1)));
}

/* spoil plants a fault into row 3. */
static void spoil(struct hidden_row *r, struct capture *c, enum fault fault)
{
    uint16_t *aux = r->aux, tap[H];
    if (fault == NOISE)
        scale_bf16(aux, S * TAPS * H, 0.01);
    if (fault == NOT_FINITE)
        aux[5 * TAPS * H + H + 7] = 0x7f80;
    for (int64_t s = 0; s < S && fault == SWAPPED_TAPS; s++) {
        uint16_t *token = aux + s * TAPS * H;
        memcpy(tap, token, sizeof tap);
        memcpy(token, token + H, sizeof tap);
        memcpy(token + H, tap, sizeof tap);
    }
    if (fault == NEXT_ROW) { /* the states of another text */
        fill_text(r, 4);
        kit_ok(capture_rows(c, &r, 1));
        kit_ok(capture_check(c, r));
        fill_text(r, 3);
    }
}

/* write_run makes a run of bf16 states with `last` and returns its folder. */
static const char *write_run(enum fault fault)
{
    const char *dir = kit_tmp_dir();
    struct hidden_form f = {.length = S, .width = H, .taps = TAPS, .last = true};
    struct dev *d;
    struct target *t;
    struct taps taps;
    struct capture c;
    struct hidden_row row;
    struct shard_writer *w;
    char digest[HASH_TEXT];
    int64_t have;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_ok(target_open(&t, d, model, -1, false));
    hash_text(digest, target_digest(t));
    if (fault == OTHER_TARGET)
        digest[0] = digest[0] == '0' ? '1' : '0';
    const char *meta[] = {"target", digest, "taps", "0,2", "aux", "bf16"};
    struct shard_options o = {.name = "hidden",
                              .stage = "extract",
                              .parts = 1,
                              .meta = meta,
                              .metas = 3,
                              .rows_per_shard = 4};
    hidden_columns(&o, &f);
    kit_ok(taps_parse(&taps, "0,2", 4));
    struct fit fit;
    kit_ok(
        fit_make(&fit, &(struct fit_ask){.target = t, .dev = d, .form = f, .rows = 1}));
    kit_ok(capture_open(&c, t, d, &taps, &f, &fit));
    kit_ok(hidden_row_new(&row, &f, d));
    kit_ok(shard_create(&w, dir, &o, &have));
    for (int64_t i = 0; i < ROWS; i++) {
        fill_text(&row, i);
        kit_ok(capture_rows(&c, &(struct hidden_row *){&row}, 1));
        kit_ok(capture_check(&c, &row));
        if (i == 3)
            spoil(&row, &c, fault);
        kit_ok(hidden_row_write(w, &row, &f));
    }
    kit_ok(shard_finish(w));
    hidden_row_free(&row);
    capture_close(&c);
    target_close(t);
    dev_close(d);
    return dir;
}

static int recheck(enum fault fault, int64_t rows)
{
    char *path[] = {mem_text(write_run(fault)), NULL};
    struct log log;
    struct recheck_plan p = {.path = path,
                             .paths = 1,
                             .rig = {.target = model, .device = "cpu", .threads = 3},
                             .rows = rows};
    log_start(&log, NULL, "test", false);
    int rc = recheck_rows(&p, &log);
    mem_free(path[0]);
    return rc;
}

START_TEST(what_the_target_gives_passes)
{
    kit_ok(recheck(NONE, ROWS));
    kit_ok(recheck(NONE, 1));
    kit_ok(recheck(NOISE, ROWS)); /* half a percent: rounding */
}
END_TEST

START_TEST(what_it_does_not_give_is_named)
{
    kit_fails(recheck(SWAPPED_TAPS, ROWS), E_FORMAT, "row 3: tap 0 is off by");
    kit_fails(recheck(NEXT_ROW, ROWS), E_FORMAT, "(1 such rows)");
    kit_fails(recheck(NOT_FINITE, ROWS), E_FORMAT, "row 3: tap 2 is off by inf");
    kit_fails(recheck(OTHER_TARGET, ROWS), E_CONFIG, "made by target");
}
END_TEST

/* ---- the band ---- */

/* A row of states of one size but for its first token, as attention sinks are. */
static void fill_states(struct hidden_row *r, const struct hidden_form *f, float size,
                        float sink)
{
    for (int64_t i = 0; i < f->length * f->taps * f->width; i++) {
        int64_t s = i / (f->taps * f->width);
        float x = (i % 2 ? size : -size) * (s == 0 ? sink : 1);
        r->doc[s] = s < f->length - 2 ? 0 : -1;
        if (f->fp8) {
            r->scale[i / f->width] = fabsf(x) / 448;
            ((uint8_t *)r->aux)[i] = num_f32_e4m3(i % 2 ? 448 : -448);
        } else {
            ((uint16_t *)r->aux)[i] = num_f32_bf16(x);
        }
    }
}

static void check_band(bool fp8, int64_t length)
{
    struct hidden_form f = {.length = length, .width = 24, .taps = TAPS, .fp8 = fp8};
    struct taps taps = {.layer = {3, 7}, .n = TAPS};
    struct band b = {.factor = 4};
    struct hidden_row r;
    kit_ok(hidden_row_new(&r, &f, NULL));
    fill_states(&r, &f, 2, 1);
    ck_assert_double_eq_tol(band_size(&r, &f, 1), 2, 1e-6);
    r.index = 0;
    kit_ok(band_add(&b, &r, &f, &taps));
    fill_states(&r, &f, 2, 1000); /* one token of a thousand times the size */
    ck_assert_double_lt(band_size(&r, &f, 0), 3);
    kit_ok(band_add(&b, &r, &f, &taps));
    fill_states(&r, &f, 7, 1);
    kit_ok(band_add(&b, &r, &f, &taps));
    ck_assert_double_gt(band_mean(&b, 0), 2.9);
    ck_assert_double_lt(band_mean(&b, 0), 3.4);
    r.index = 12;
    fill_states(&r, &f, 16, 1);
    kit_fails(band_add(&b, &r, &f, &taps), E_FORMAT,
              "row 12: tap 3: states of size 16 in a run of");
    fill_states(&r, &f, 0.5F, 1);
    kit_fails(band_add(&b, &r, &f, &taps), E_FORMAT,
              "row 12: tap 3: states of size 0.5");
    ck_assert_int_eq(b.rows, 3);
    b.factor = 0;
    kit_ok(band_add(&b, &r, &f, &taps));
    ck_assert_double_eq_tol(b.low[1], 0.5, 1e-6);
    ck_assert_double_eq_tol(b.high[1], 7, 1e-6);
    for (int64_t s = 0; s < length; s++)
        r.doc[s] = -1;
    kit_ok(band_add(&b, &r, &f, &taps)); /* padding alone counts for nothing */
    ck_assert_int_eq(b.rows, 4);
    hidden_row_free(&r);
}

START_TEST(sizes_keep_to_a_band)
{
    check_band(false, 100);
    check_band(true, 100);
    check_band(false, 1100); /* every third token is measured */
}
END_TEST

KIT_MAIN("recheck", what_the_target_gives_passes, what_it_does_not_give_is_named,
         sizes_keep_to_a_band)
