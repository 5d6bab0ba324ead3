/* SPDX-License-Identifier: MIT */
/* test_pack.c - bins against a plain search, density, cuts, and that packed rows hold
 * every token once: random data sets against what packing promises. */
#include <stdio.h>
#include <string.h>

#include "../tools/pack/binpack.h"
#include "../tools/pack/flow.h"
#include "err.h"
#include "file.h"
#include "kit.h"
#include "kit_docs.h"
#include "mem.h"
#include "rng.h"

/* ---- binpack ---- */

enum { MOST = 300 };

/* Best fit decreasing by the book: O(n^2), bins remembered by when they last changed.
 */
static int32_t by_the_book(int32_t *bin, int32_t *space, const int32_t *length,
                           int32_t n, int32_t capacity)
{
    int32_t bins = 0, changed[MOST], now = 0;
    for (int32_t size = capacity; size > 0; size--) {
        for (int32_t i = 0; i < n; i++) {
            int32_t best = -1;
            if (length[i] != size)
                continue;
            for (int32_t b = 0; b < bins; b++)
                if (space[b] >= size &&
                    (best < 0 || space[b] < space[best] ||
                     (space[b] == space[best] && changed[b] > changed[best])))
                    best = b;
            if (best < 0) {
                best = bins++;
                space[best] = capacity;
            }
            bin[i] = best;
            space[best] -= size;
            changed[best] = now++;
        }
    }
    return bins;
}

START_TEST(best_fit_by_the_book)
{
    struct rng r = rng_new(5);
    for (int round = 0; round < 2000; round++) {
        int32_t bin[MOST], space[MOST], bins, want_bin[MOST], want_space[MOST];
        int32_t length[MOST], n = (int32_t)rng_below(&r, MOST + 1);
        int32_t capacity = 1 + (int32_t)rng_below(&r, round % 2 ? 40 : 9000);
        int32_t most = 1 + (int32_t)rng_below(&r, (uint64_t)capacity);
        for (int32_t i = 0; i < n; i++)
            length[i] = 1 + (int32_t)rng_below(&r, (uint64_t)most);
        kit_ok(binpack(bin, space, &bins, length, n, capacity));
        int32_t want = by_the_book(want_bin, want_space, length, n, capacity);
        if (bins != want || memcmp(bin, want_bin, (size_t)n * sizeof *bin) != 0 ||
            memcmp(space, want_space, (size_t)bins * sizeof *space) != 0)
            ck_abort_msg("%d items, capacity %d: %d bins, by the book %d", n, capacity,
                         bins, want);
    }
}
END_TEST

/* Rows of 8192 tokens from windows of the default size; what is longer is split. */
static double density_of(double mean, int windows)
{
    enum { ROW = 8192, WINDOW = 16384 };
    static int32_t length[WINDOW], bin[WINDOW], space[WINDOW];
    struct rng r = rng_new(6);
    int64_t tokens = 0, rows = 0;
    int32_t left = 0, bins;
    for (int w = 0; w < windows; w++) {
        for (int32_t n = 0; n < WINDOW; n++, left -= ROW) {
            if (left <= 0)
                left = kit_docs_length(&r, mean);
            length[n] = left < ROW ? left : ROW;
            tokens += length[n];
        }
        kit_ok(binpack(bin, space, &bins, length, WINDOW, ROW));
        rows += bins;
    }
    return (double)tokens / (double)(rows * ROW);
}

START_TEST(density_of_a_window)
{
    double chat = density_of(1000, 8), longer = density_of(4000, 8);
    printf("density: mean 1000 %.4f %%, mean 4000 %.4f %%\n", 100 * chat, 100 * longer);
    ck_assert_double_ge(chat, 0.999);
    ck_assert_double_ge(longer, 0.999);
}
END_TEST

START_TEST(worth)
{
    static uint8_t mask[3000];
    struct rng r = rng_new(7);
    for (int round = 0; round < 3000; round++) {
        int64_t n = 1 + (int64_t)rng_below(&r, 1 + (uint64_t)round);
        int64_t skip = (int64_t)rng_below(&r, (uint64_t)n + 1), ones = 0, both = 0;
        int zeros = (int)rng_below(&r, 4);
        for (int64_t t = 0; t < n; t++)
            mask[t] = (int)rng_below(&r, 6) >= zeros;
        for (int64_t t = skip; t < n; t++) {
            ones += mask[t];
            both += t + 1 < n && mask[t] && mask[t + 1];
        }
        struct ledger_worth w = ledger_weigh(mask, n, skip);
        ck_assert_int_eq(w.supervised, ones);
        ck_assert_int_eq(w.anchors, both);
    }
}
END_TEST

/* Keys 0 .. n - 1 in any order: each is new once; that of all zeros too. */
START_TEST(what_was_seen)
{
    enum { KEYS = 20000 };
    struct seen s = {0};
    for (uint64_t i = 0; i < KEYS; i++) {
        struct seen_key key = {{i % 3 ? i : i << 40, i + 1}};
        ck_assert_int_eq(seen_add(&s, key), 1);
        ck_assert_int_eq(seen_add(&s, key), 0);
    }
    ck_assert_int_eq(s.n, KEYS);
    for (uint64_t i = 0; i < KEYS; i++)
        ck_assert_int_eq(seen_add(&s, (struct seen_key){{i % 3 ? i : i << 40, i + 1}}),
                         0);
    seen_drop(&s);
    /* ids, mask and length each count */
    int32_t ids[] = {1, 2, 3, 4}, others[] = {1, 2, 3, 5};
    uint8_t mask[] = {0, 1, 1, 0}, ones[] = {1, 1, 1, 0};
    struct seen_key key[] = {seen_key_of(ids, mask, 4), seen_key_of(others, mask, 4),
                             seen_key_of(ids, ones, 4), seen_key_of(ids, mask, 3),
                             seen_key_of(ids, mask, 4)};
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(seen_add(&s, key[i]), i < 4);
    seen_drop(&s);
}
END_TEST

START_TEST(cuts)
{
    static const struct {
        enum cut_how how;
        int64_t tokens;
        const char *pieces; // at+n-unsupervised
    } cases[] = {
        {CUT_SPLIT, 7, "0+7-0 "},          {CUT_SPLIT, 10, "0+10-0 "},
        {CUT_SPLIT, 11, "0+10-0 10+1-1 "}, {CUT_SPLIT, 25, "0+10-0 10+10-4 20+5-4 "},
        {CUT_CUT, 10, "0+10-0 "},          {CUT_CUT, 25, "0+10-0 "},
        {CUT_DROP, 10, "0+10-0 "},         {CUT_DROP, 11, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100] = "";
        struct cut c = {.how = cases[i].how, .length = 10, .block = 4};
        cut_begin(&c, cases[i].tokens);
        while (cut_next(&c))
            snprintf(text + strlen(text), 50, "%lld+%lld-%lld ", (long long)c.at,
                     (long long)c.n, (long long)c.unsupervised);
        ck_assert_str_eq(text, cases[i].pieces);
    }
    enum cut_how how;
    kit_ok(cut_parse(&how, "drop"));
    ck_assert_int_eq(how, CUT_DROP);
    kit_fails(cut_parse(&how, "shred"), E_USAGE, "shred");
}
END_TEST

/* ---- the whole flow ---- */

enum { DOCS = 120, LONGEST = 200 };

/* A data set: documents of ids that tell document and position apart. */
struct data {
    int n;
    int32_t length[DOCS], id[DOCS][LONGEST];
    uint8_t mask[DOCS][LONGEST];
};

static void make_data(struct data *d, struct rng *r)
{
    d->n = 1 + (int)rng_below(r, DOCS);
    int most = 1 + (int)rng_below(r, LONGEST);
    for (int i = 0; i < d->n; i++) {
        d->length[i] = 1 + (int32_t)rng_below(r, (uint64_t)most);
        int share = (int)rng_below(r, 4);
        for (int t = 0; t < d->length[i]; t++) {
            d->id[i][t] = i * LONGEST + t;
            d->mask[i][t] = (int)rng_below(r, 3) < share;
        }
    }
}

static void write_data(const struct data *d, const char *path)
{
    struct buf b = {0};
    for (int i = 0; i < d->n; i++) {
        buf_adds(&b, "{\"input_ids\":");
        for (int t = 0; t < d->length[i]; t++)
            buf_addf(&b, "%c%d", t ? ',' : '[', d->id[i][t]);
        buf_adds(&b, "],\"loss_mask\":");
        for (int t = 0; t < d->length[i]; t++)
            buf_addf(&b, "%c%d", t ? ',' : '[', d->mask[i][t]);
        buf_adds(&b, "]}\n");
    }
    kit_write(path, b.p, b.len);
    buf_drop(&b);
}

/* How a data set is packed. */
struct way {
    int64_t length, window, block, min_supervised;
    enum cut_how how;
    double valid;
    uint64_t seed;
    int threads;
};

static void open_side(struct flow_side *s, struct ledger_side *l, const char *dir,
                      const struct way *w, const char *split)
{
    struct emit_of of = {split, "", "0", w->length, 0, 1};
    s->ledger = l;
    window_open(&s->window, &s->emit, w->length, w->window, w->seed, *split == 'v');
    kit_ok(emit_open(&s->emit, dir, &of));
}

static void pack(const char *path, const char *dir, const struct way *w,
                 struct ledger *l)
{
    struct log log;
    struct par *p = NULL;
    struct input input;
    struct rejects rejects = {0};
    struct flow f = {.input = &input,
                     .rules = {.vocab = DOCS * LONGEST, .parts = 1},
                     .cut = {.how = w->how, .length = w->length, .block = w->block},
                     .min_supervised = w->min_supervised,
                     .valid = w->valid,
                     .seed = w->seed,
                     .ledger = l,
                     .rejects = &rejects,
                     .log = &log};
    log_start(&log, NULL, "", false);
    kit_ok(par_open(&p, w->threads));
    kit_ok(input_list(&input, (char *const[]){(char *)path, NULL},
                      &(struct input_choice){0}));
    kit_ok(input_hash(&input, p));
    open_side(&f.train_side, &l->train, kit_path("%s/t", dir), w, "train");
    open_side(&f.valid_side, &l->valid, kit_path("%s/v", dir), w, "valid");
    kit_ok(flow_run(&f, p));
    kit_ok(emit_finish(&f.train_side.emit, "0", "[]"));
    kit_ok(emit_finish(&f.valid_side.emit, "0", "[]"));
    window_close(&f.train_side.window);
    window_close(&f.valid_side.window);
    input_drop(&input);
    par_close(p);
}

/* What has been found of a data set in rows. */
struct found {
    uint8_t seen[DOCS][LONGEST]; // side + 1
    int64_t rows, tokens, pieces;
};

/* One document of a row: tokens [at, at + n), entry of source. */
static void check_piece(struct found *f, const struct data *d, const struct way *w,
                        const int64_t *source, const int32_t *ids, const uint8_t *mask,
                        int64_t n, int side)
{
    int64_t doc = source[1], first = source[2], supervised = 0;
    ck_assert(source[0] == 0 && doc >= 0 && doc < d->n && first >= 0 &&
              first + n <= d->length[doc] && n <= w->length);
    ck_assert(first == 0 || (w->how == CUT_SPLIT && first % w->length == 0));
    for (int64_t t = 0; t < n; t++) {
        bool blind = first > 0 && t < w->block;
        if (ids[t] != d->id[doc][first + t] || f->seen[doc][first + t] ||
            mask[t] != (blind ? 0 : d->mask[doc][first + t]))
            ck_abort_msg("document %lld, token %lld", (long long)doc,
                         (long long)(first + t));
        f->seen[doc][first + t] = (uint8_t)(side + 1);
        supervised += mask[t];
    }
    ck_assert_int_ge(supervised, w->min_supervised);
    f->tokens += n;
    f->pieces++;
}

static void check_row(struct found *f, const struct data *d, const struct way *w,
                      const struct shard_view *v, int64_t row, int side)
{
    const struct st_tensor *t;
    const int32_t *ids = shard_column(v, "input_ids", &t);
    const uint8_t *mask = shard_column(v, "loss_mask", &t);
    const int32_t *doc = shard_column(v, "doc_ids", &t);
    const int64_t *source = shard_column(v, "source", &t);
    ids += row * w->length;
    mask += row * w->length;
    doc += row * w->length;
    int64_t at = 0, end;
    for (; at < w->length && doc[at] >= 0; at = end) {
        for (end = at + 1; end < w->length && doc[end] == doc[at];)
            end++;
        ck_assert_int_lt(doc[at], t->dim[0]);
        check_piece(f, d, w, source + 3 * doc[at], ids + at, mask + at, end - at, side);
    }
    ck_assert_int_gt(at, 0); // no empty rows
    for (; at < w->length; at++)
        if (ids[at] != 0 || mask[at] != 0 || doc[at] != -1)
            ck_abort_msg("padding at %lld", (long long)at);
}

static void check_side(struct found *f, const struct data *d, const struct way *w,
                       const struct ledger_side *l, const char *dir, int side)
{
    struct shard_reader *r;
    struct shard_view v;
    char *path[] = {(char *)dir};
    int64_t tokens = f->tokens, pieces = f->pieces, rows = 0;
    int rc;
    kit_ok(shard_open(&r, path, 1));
    while ((rc = shard_next(r, &v)) > 0)
        for (int64_t i = 0; i < v.rows; i++, rows++)
            check_row(f, d, w, &v, i, side);
    kit_ok(rc);
    shard_close(r);
    ck_assert_int_eq(l->rows, rows);
    ck_assert_int_eq(l->tokens, f->tokens - tokens);
    ck_assert_int_eq(l->pieces, f->pieces - pieces);
    ck_assert_int_eq(l->document_tokens, l->tokens + l->long_tokens + l->poor_tokens);
    ck_assert_int_eq(l->double_documents + l->double_tokens, 0);
}

/* Every token is packed once, or its piece was left out for a reason that the rules
 * give; a document is on one side. */
static void check_all(const struct found *f, const struct data *d, const struct way *w)
{
    for (int i = 0; i < d->n; i++) {
        int64_t length = d->length[i];
        for (int64_t first = 0; first < length; first += w->length) {
            int64_t n = length - first < w->length ? length - first : w->length;
            int64_t supervised = 0;
            for (int64_t t = first > 0 ? w->block : 0; t < n; t++)
                supervised += d->mask[i][first + t];
            bool wanted = supervised >= w->min_supervised;
            if (length > w->length)
                wanted =
                    wanted && (w->how == CUT_SPLIT || (w->how == CUT_CUT && !first));
            for (int64_t t = 0; t < n; t++)
                if ((f->seen[i][first + t] != 0) != wanted ||
                    (wanted && f->seen[i][first + t] != f->seen[i][first]))
                    ck_abort_msg("document %d, token %lld", i, (long long)(first + t));
        }
    }
}

static void same_files(const char *a, const char *b)
{
    char **names;
    int64_t n;
    kit_ok(file_list(a, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        size_t x, y;
        char *one = kit_read(kit_path("%s/%s", a, names[i]), &x);
        char *two = kit_read(kit_path("%s/%s", b, names[i]), &y);
        ck_assert_uint_eq(x, y);
        kit_same(names[i], one, two, x);
        mem_free(one);
        mem_free(two);
    }
    file_list_free(names, n);
}

START_TEST(random_data_sets)
{
    static struct data d;
    static struct found f;
    struct rng r = rng_new(8);
    for (int round = 0; round < 24; round++) {
        struct way w = {.length = 1 + (int64_t)rng_below(&r, 100),
                        .window = 1 + (int64_t)rng_below(&r, 60),
                        .block = (int64_t)rng_below(&r, 20),
                        .min_supervised = (int64_t)rng_below(&r, 4),
                        .how = (enum cut_how)rng_below(&r, 3),
                        .valid = round % 3 * 0.2,
                        .seed = (uint64_t)round,
                        .threads = 1};
        struct ledger l = {0}, again = {0};
        const char *dir = kit_path("%s", kit_tmp_dir()), *path = kit_path("%s/a", dir);
        make_data(&d, &r);
        write_data(&d, path);
        pack(path, kit_path("%s/1", dir), &w, &l);
        memset(&f, 0, sizeof f);
        check_side(&f, &d, &w, &l.train, kit_path("%s/1/t", dir), 0);
        check_side(&f, &d, &w, &l.valid, kit_path("%s/1/v", dir), 1);
        check_all(&f, &d, &w);
        ck_assert_int_eq(l.train.documents + l.valid.documents, d.n);
        w.threads = 3;
        pack(path, kit_path("%s/3", dir), &w, &again);
        kit_same("report", &l, &again, sizeof l);
        same_files(kit_path("%s/1/t", dir), kit_path("%s/3/t", dir));
        same_files(kit_path("%s/1/v", dir), kit_path("%s/3/v", dir));
    }
}
END_TEST

KIT_MAIN("pack", best_fit_by_the_book, density_of_a_window, worth, what_was_seen, cuts,
         random_data_sets)
