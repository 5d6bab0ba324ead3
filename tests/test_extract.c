/* SPDX-License-Identifier: MIT */
/* test_extract.c - taps, states of packed rows, and what is refused.
 *
 * The row below holds three documents and padding; each document's states must be those
 * that the target gives for it alone, bit for bit, however the row is computed. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "kit.h"
#include "kit_model.h"
#include "log.h"
#include "mem.h"
#include "num.h"
#include "tools/extract/capture.h"
#include "tools/extract/feed.h"
#include "tools/extract/pump.h"
#include "tools/extract/taps.h"

enum { S = 96, H = 64, K = 2, V = 512, DOCS = 3 };

static const char *const model = "tests/golden/target-qwen3/model";
static const int64_t begin[DOCS] = {0, 1, 34}, end[DOCS] = {1, 34, 90};

/* ---- taps ---- */

START_TEST(taps_are_read)
{
    struct taps t;

    kit_ok(taps_parse(&t, "1,3,4", 6));
    ck_assert_int_eq(t.n, 3);
    ck_assert_int_eq(t.layer[0], 1);
    ck_assert_int_eq(t.layer[2], 4);
    ck_assert_str_eq(t.text, "1,3,4");
    kit_ok(taps_parse(&t, "", 36));
    ck_assert_str_eq(t.text, "1,9,17,25,33");
}
END_TEST

START_TEST(bad_taps_are_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *why;
    } bad[] = {{"1,1", E_CONFIG, "1 after 1"},   {"3,2", E_CONFIG, "2 after 3"},
               {"1,6", E_CONFIG, "of a target"}, {"1,5", E_CONFIG, "last"},
               {"1,", E_USAGE, "missing"},       {",1", E_USAGE, "not a layer"},
               {"1;2", E_USAGE, "not a layer"},  {"-1", E_USAGE, "not a layer"},
               {"1K", E_USAGE, "not a layer"},   {"99999999", E_USAGE, "not a layer"}};
    struct taps t;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(taps_parse(&t, bad[i].text, 6), bad[i].code, bad[i].why);
    kit_fails(taps_parse(&t, NULL, 6), E_CONFIG, "--taps is needed");
    kit_fails(taps_parse(&t, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 99), E_CONFIG,
              "more than");
}
END_TEST

/* ---- states ---- */

struct world {
    struct dev *dev;
    struct target *target;
    struct taps taps;
    struct hidden_row row;
};

/* A row of three documents (one of a single token), padding behind them. */
static void fill_row(struct hidden_row *r)
{
    r->index = 12;
    r->docs = DOCS;
    for (int s = 0; s < S; s++) {
        r->ids[s] = (s * 37 + 11) % V;
        r->mask[s] = s % 2;
        r->doc[s] = -1;
    }
    for (int i = 0; i < DOCS; i++)
        for (int64_t s = begin[i]; s < end[i]; s++)
            r->doc[s] = i;
}

static struct hidden_form form_of(bool fp8, bool last)
{
    return (struct hidden_form){
        .length = S, .width = H, .taps = K, .fp8 = fp8, .last = last};
}

static void world_open(struct world *w, const char *dir, const struct hidden_form *f)
{
    *w = (struct world){0};
    kit_ok(dev_open(&w->dev, "cpu", NULL));
    kit_ok(taps_parse(&w->taps, "0,2", 4));
    kit_ok(target_open(&w->target, w->dev, dir, f->last ? -1 : 2, false));
    kit_ok(hidden_row_new(&w->row, f, w->dev));
    fill_row(&w->row);
}

static void world_close(struct world *w)
{
    hidden_row_free(&w->row);
    target_close(w->target);
    dev_close(w->dev);
}

/* open_within makes room for one row at a time in `memory` bytes. */
static int open_within(struct capture *c, struct world *w, const struct hidden_form *f,
                       size_t memory)
{
    struct fit fit;
    struct fit_ask a = {
        .target = w->target, .dev = w->dev, .form = *f, .rows = 1, .passes = memory};
    TRY(fit_make(&fit, &a));
    return capture_open(c, w->target, w->dev, &w->taps, f, &fit);
}

static int capture(struct world *w, const struct hidden_form *f, size_t memory)
{
    struct capture c;
    int rc = open_within(&c, w, f, memory);
    if (rc < 0)
        return rc;
    rc = capture_rows(&c, &(struct hidden_row *){&w->row}, 1);
    if (rc == 0)
        rc = capture_check(&c, &w->row);
    capture_close(&c);
    return rc;
}

/* alone runs one document by itself: aux [n, K*H] and last [n, H]. */
static void alone(struct world *w, int doc, struct tensor aux, struct tensor last)
{
    int32_t pos[S], lo[S] = {0}, hi[S];
    struct arena work;
    int64_t n = end[doc] - begin[doc];
    struct target_pass p = {.rows = n,
                            .ids = w->row.ids + begin[doc],
                            .pos = pos,
                            .lo = lo,
                            .hi = hi,
                            .tap = w->taps.layer,
                            .taps = K,
                            .aux = tensor_rows(aux, 0, n),
                            .last = tensor_rows(last, 0, n)};

    for (int32_t i = 0; i < n; i++) {
        pos[i] = i;
        hi[i] = i + 1;
    }
    kit_arena(&work, w->dev, target_bytes(w->target, n, 0));
    kit_ok(target_forward(w->target, &p, &work));
    arena_close(&work);
}

static void same_as_alone(struct world *w)
{
    struct tensor aux = kit_tensor_new(DT_BF16, T2(S, K * H));
    struct tensor last = kit_tensor_new(DT_BF16, T2(S, H));
    static const uint16_t zero[S * K * H];

    for (int i = 0; i < DOCS; i++) {
        size_t n = (size_t)(end[i] - begin[i]);
        alone(w, i, aux, last);
        kit_same("aux", (uint16_t *)w->row.aux + begin[i] * K * H, aux.data,
                 n * K * H * 2);
        kit_same("last", (uint16_t *)w->row.last + begin[i] * H, last.data, n * H * 2);
    }
    size_t padding = S - (size_t)end[DOCS - 1];
    kit_same("padding", (uint16_t *)w->row.aux + end[DOCS - 1] * K * H, zero,
             padding * K * H * 2);
    kit_same("padding", (uint16_t *)w->row.last + end[DOCS - 1] * H, zero,
             padding * H * 2);
    kit_tensor_free(&aux);
    kit_tensor_free(&last);
}

START_TEST(packed_equals_alone)
{
    struct world w;
    struct hidden_form f = form_of(false, true);

    world_open(&w, model, &f);
    kit_ok(capture(&w, &f, 0));
    same_as_alone(&w);
    world_close(&w);
}
END_TEST

static void check_pieces(const char *target)
{
    struct world w;
    struct hidden_form f = form_of(false, true);
    struct capture c;
    int64_t piece = S;

    world_open(&w, target, &f);
    for (size_t memory = 1 << 20; memory > 1 << 17; memory -= memory / 8) {
        int rc = open_within(&c, &w, &f, memory);
        if (rc < 0)
            break;
        piece = c.fit.piece;
        ck_assert_uint_le(c.work.size + c.out.size +
                              (c.cache.capacity ? c.cache.arena.size : 0),
                          memory);
        memset(w.row.aux, 0x55, (size_t)S * K * H * 2);
        memset(w.row.last, 0x55, (size_t)S * H * 2);
        for (int again = 0; again < 2; again++)
            kit_ok(capture_rows(&c, &(struct hidden_row *){&w.row}, 1));
        kit_ok(capture_check(&c, &w.row));
        capture_close(&c);
        same_as_alone(&w);
    }
    ck_assert_int_lt(piece, S);
    kit_fails(capture(&w, &f, 1000), E_CONFIG, "a row of 96 tokens takes");
    world_close(&w);
}

/* Keys and values, or states, go from piece to piece; documents begin inside them. */
START_TEST(pieces_equal_whole)
{
    check_pieces("tests/golden/target-qwen2/model");
    check_pieces("tests/golden/target-qwen3_5/model");
}
END_TEST

START_TEST(fp8_is_near)
{
    struct world w, q;
    struct hidden_form f = form_of(false, false), f8 = form_of(true, false);
    double worst = 0;

    world_open(&w, model, &f);
    world_open(&q, model, &f8);
    kit_ok(capture(&w, &f, 0));
    kit_ok(capture(&q, &f8, 0));
    for (int64_t i = 0; i < end[DOCS - 1] * K * H; i++) {
        float x = num_bf16_f32(((uint16_t *)w.row.aux)[i]), s = q.row.scale[i / H];
        float y = num_e4m3_f32(((uint8_t *)q.row.aux)[i]) * s;
        /* Three bits behind the first: half a step is 2^-4 of the value; below 2^-6,
         * where steps no longer shrink, 2^-10. */
        double bound = fmax(fabs((double)x) / 16, (double)s / 1024) * (1 + 1e-6);
        ck_assert_msg(fabs((double)(x - y)) <= bound, "element %lld: %g, stored %g",
                      (long long)i, (double)x, (double)y);
        worst = fmax(worst, fabs((double)(x - y)) / bound);
    }
    ck_assert(worst > 0.9); // the bound is no looser than it must be
    for (int64_t i = end[DOCS - 1] * K; i < S * K; i++)
        ck_assert(q.row.scale[i] == 0);
    world_close(&w);
    world_close(&q);
}
END_TEST

START_TEST(bad_ids_are_refused)
{
    struct world w;
    struct hidden_form f = form_of(false, false);

    world_open(&w, model, &f);
    w.row.ids[40] = V;
    kit_fails(capture(&w, &f, 0), E_FORMAT, "row 12: token 40: id 512");
    w.row.ids[40] = -1;
    kit_fails(capture(&w, &f, 0), E_FORMAT, "row 12: token 40: id -1");
    w.row.ids[40] = V - 1;
    w.row.ids[S - 1] = -7; // padding is not looked at
    kit_ok(capture(&w, &f, 0));
    world_close(&w);
}
END_TEST

/* ---- the pump ---- */

enum { ROWS = 11 };

struct ends {
    int given, taken;
    bool slow;     /* the sink takes several times as long as the target */
    double before; /* when the last row was given, and the time from row to row while */
    _Atomic double
        apart; /* none can have waited; the sink reads it on its own thread */
    uint64_t sum[ROWS];
};

static int give(void *ctx, struct hidden_row *out)
{
    struct ends *e = ctx;
    if (e->given == ROWS)
        return 0;
    double now = log_now();
    if (e->given > 0 && e->given < FIT_ROWS)
        e->apart = fmax(e->apart, now - e->before);
    e->before = now;
    fill_row(out);
    out->index = e->given++;
    for (int s = 0; s < S; s++)
        out->ids[s] = (out->ids[s] + (int)out->index * 5) % V;
    return 1;
}

static int take(void *ctx, const struct hidden_row *row)
{
    struct ends *e = ctx;
    ck_assert_int_eq(row->index, e->taken);
    e->sum[e->taken++] = hash_bytes(row->aux, (size_t)S * K * H * 2);
    if (e->slow && e->taken < ROWS - FIT_ROWS)
        usleep(20000 + (useconds_t)(8e6 * e->apart));
    return 0;
}

/* pump moves ROWS rows through a target within `memory`, on three threads. */
static double pump(struct ends *e, size_t memory, int group)
{
    const struct pump_ends ends = {give, take, e};
    const struct hidden_form f = form_of(false, false);
    struct par *par;
    struct dev *d;
    struct target *t;
    struct taps taps;
    struct fit fit;
    struct pump pump;
    kit_ok(par_open(&par, 3));
    kit_ok(dev_open(&d, "cpu", par));
    kit_ok(taps_parse(&taps, "0,2", 4));
    kit_ok(target_open_within(&t, d, model, 2, memory));
    struct fit_ask a = {
        .target = t, .dev = d, .form = f, .rows = FIT_ROWS, .weights = memory};
    kit_ok(fit_make(&fit, &a));
    kit_ok(pump_open(&pump, t, d, &taps, &f, &fit));
    ck_assert_int_eq(fit.group, group);
    ck_assert_uint_eq(d->held, fit.held);
    kit_ok(pump_run(&pump, &ends));
    ck_assert_int_eq(e->taken, ROWS);
    double waiting = pump_waiting(&pump);
    pump_close(&pump);
    target_close(t);
    dev_close(d);
    par_close(par);
    return waiting;
}

/* Rows come out in order and alike, whole or in groups; a sink that takes most of the
 * time is what the target waited for. */
START_TEST(rows_pass)
{
    struct ends quick = {0}, slow = {.slow = true}, parts = {0};
    pump(&quick, 0, 1);
    double waiting = pump(&slow, 0, 1);
    ck_assert_double_gt(waiting, 0.3);
    ck_assert_double_lt(waiting, 1);
    kit_same("rows", slow.sum, quick.sum, sizeof slow.sum);
    pump(&parts, 300 << 10, FIT_GROUP);
    kit_same("rows", parts.sum, quick.sum, sizeof parts.sum);
    for (int i = 1; i < ROWS; i++)
        ck_assert(quick.sum[i] != quick.sum[i - 1]);
}
END_TEST

/* ---- damaged targets ---- */

/* copy_model copies the checkpoint and overwrites the first `n` values of a tensor. */
static const char *copy_model(const char *tensor, uint16_t value, int64_t n)
{
    const char *dir = kit_tmp_dir();
    struct st_model m = {0};
    char **name;
    int64_t names;
    size_t size;

    kit_ok(st_model_open(&m, model));
    const struct st_entry *e = st_model_find(&m, tensor);
    kit_ok(file_list(model, &name, &names));
    for (int64_t i = 0; i < names; i++) {
        char *text = kit_read(kit_path("%s/%s", model, name[i]), &size);
        const char *base = strrchr(e->file->path, '/') + 1;
        uint64_t at = e->file->header.header_bytes + e->tensor->begin;
        for (int64_t j = 0; j < n && strcmp(base, name[i]) == 0; j++)
            memcpy(text + at + (uint64_t)j * 2, &value, 2);
        kit_write(kit_path("%s/%s", dir, name[i]), text, size);
        mem_free(text);
    }
    file_list_free(name, names);
    st_model_close(&m);
    return dir;
}

/* The middle document holds nothing but token 5. */
static void expect_damage(const char *dir, bool fp8, const char *text)
{
    struct world w;
    struct hidden_form f = form_of(fp8, false);

    world_open(&w, dir, &f);
    for (int64_t s = begin[1]; s < end[1]; s++)
        w.row.ids[s] = 5;
    kit_fails(capture(&w, &f, 0), E_FORMAT, text);
    world_close(&w);
}

START_TEST(damage_is_named)
{
    enum { NAN_BF16 = 0x7fc0 };
    const char *down = "model.layers.2.mlp.down_proj.weight";
    const char *dir = copy_model(down, NAN_BF16, 1);

    expect_damage(dir, false, "row 12: tap 2: token 0 is not finite");
    expect_damage(dir, true, "row 12: tap 2: token 0 is not finite");
    /* An embedding of zeros gives states of zeros where nothing else is seen. */
    dir = copy_model("model.embed_tokens.weight", 0, 6 * H);
    const char *zero = "row 12: tap 0: zero throughout the document that ends with "
                       "token 33";
    expect_damage(dir, false, zero);
    expect_damage(dir, true, zero);
}
END_TEST

/* ---- source ---- */

START_TEST(sources_are_renumbered)
{
    int32_t ids[4] = {1, 2, 3, 4}, doc[4] = {5, 5, 2, -1};
    uint8_t mask[4] = {0, 1, 1, 0};
    int64_t source[6][3] = {{0}};
    struct hidden_form f = {.length = 4, .width = 2, .taps = 1};
    struct row from = {.text = {4, ids, mask, doc, source[0], 6}, .index = 3};
    struct hidden_row r;

    source[5][1] = 50;
    source[2][1] = 20;
    kit_ok(hidden_row_new(&r, &f, NULL));
    hidden_row_text(&r, &from);
    ck_assert_int_eq(r.docs, 2);
    ck_assert_int_eq(r.source[0][1], 50);
    ck_assert_int_eq(r.source[1][1], 20);
    const int32_t want[4] = {0, 0, 1, -1};
    kit_same("doc", r.doc, want, sizeof want);
    hidden_row_free(&r);
}
END_TEST

KIT_MAIN("extract", taps_are_read, bad_taps_are_refused, packed_equals_alone,
         pieces_equal_whole, fp8_is_near, bad_ids_are_refused, rows_pass,
         damage_is_named, sources_are_renumbered)
