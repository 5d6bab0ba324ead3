/* SPDX-License-Identifier: MIT */
/* test_fit.c - how rows are computed in the memory of cards that are not here. */
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "extract/fit.h"
#include "extract/taps.h"
#include "kit.h"
#include "kit_large.h"

static const size_t gib = (size_t)1 << 30;

/* A published target, looked at for a card. */
struct published {
    struct dev card;
    struct target *target;
    struct fit_ask ask;
    struct fit fit;
};

static void open_published(struct published *p)
{
    const char *dir = kit_large(KIT_QWEN36_27B, 0);
    struct target_config c;
    struct taps taps;
    *p = (struct published){0};
    kit_ok(dev_outline(&p->card, "cuda"));
    kit_ok(config_target(&c, dir));
    kit_ok(taps_parse(&taps, "", c.layers));
    kit_ok(target_outline(&p->target, &p->card, dir, taps.layer[taps.n - 1],
                          TARGET_HEADLESS));
    p->ask = (struct fit_ask){
        .target = p->target,
        .dev = &p->card,
        .form = {.length = 8192, .width = c.hidden, .taps = taps.n},
        .rows = FIT_ROWS,
    };
}

/* room is what a card of that size has left for weights and passes. */
static size_t room(double gigabytes)
{
    return (size_t)(gigabytes * 1e9) - (608 << 20) - gib / 2; // a context takes some
}

static size_t line_of(const struct bill *b, const char *name)
{
    for (int i = 0; i < b->lines; i++)
        if (strcmp(b->line[i].name, name) == 0)
            return b->line[i].bytes;
    return 0;
}

static void show(const struct fit *f)
{
    struct buf text = {0};
    fit_print(&text, f);
    printf("%s", buf_text(&text));
    buf_drop(&text);
}

/* fits plans, and checks what every plan must hold. */
static const struct fit *fits(struct published *p)
{
    struct fit *f = &p->fit;
    size_t sum = 0, own = 608 << 20;
    kit_ok(fit_make(f, &p->ask));
    for (int i = 0; i < f->device.lines; i++)
        sum += f->device.line[i].bytes;
    ck_assert_uint_eq(sum, f->device.total);
    ck_assert_uint_eq(f->held + line_of(&f->device, "loading"), f->device.total);
    if (p->ask.device)
        ck_assert_uint_le(f->device.total - own, p->ask.device);
    if (p->ask.weights)
        ck_assert_uint_le(line_of(&f->device, "target"), p->ask.weights);
    if (p->ask.passes)
        ck_assert_uint_le(f->held - own - line_of(&f->device, "target"), p->ask.passes);
    size_t row = hidden_row_bytes(&p->ask.form);
    ck_assert_uint_eq(f->host.total, row * (size_t)(f->rows + f->group - 1));
    ck_assert(f->leaves == (f->group == 1 && f->sets > 1));
    return f;
}

static void where_it_fits_it_is_whole(struct published p)
{
    const struct fit *f = fits(&p); // a card of any size
    show(f);
    ck_assert(!f->streams && f->leaves && f->rows == 3 && f->group == 1);
    ck_assert_int_eq(f->piece, 8192);
    ck_assert_uint_eq(f->host.total, (size_t)3 * 8192 * 5 * 5120 * 2);
    p.ask.device = room(96);
    ck_assert(!fits(&p)->streams);
    p.ask.device = room(54);
    ck_assert(!fits(&p)->streams && p.fit.leaves);
    for (size_t d = p.ask.device; !p.fit.streams; d -= gib / 16, fits(&p))
        p.ask.device = d;
    p.ask.device += gib / 16; // the least that it is whole in: rows are in pieces
    ck_assert(!fits(&p)->streams);
    ck_assert_int_ge(p.fit.piece, 1024);
    ck_assert_int_lt(p.fit.piece, 8192);
}

/* On cards of 48 GB and less the 27B target streams unasked, sixteen rows at a time if
 * its states have room. */
static void where_it_does_not_it_streams(struct published p)
{
    static const double card[] = {48, 32, 24, 16, 12, 8};
    for (size_t i = 0; i < sizeof card / sizeof *card; i++) {
        p.ask.device = room(card[i]);
        const struct fit *f = fits(&p);
        printf("a card of %g GB: %d rows\n", card[i], f->group);
        ck_assert(f->streams && f->piece == 8192);
        ck_assert_int_eq(f->group == FIT_GROUP, card[i] > 12);
    }
    p.ask.device = room(24);
    show(fits(&p));
}

/* Less and less, and in the end a refusal that no option changes. */
static void too_small_is_refused(struct published p)
{
    p.ask.device = room(12);
    while (fit_make(&p.fit, &p.ask) == 0) {
        fits(&p);
        p.ask.device -= p.ask.device / 64;
    }
    kit_fails(fit_make(&p.fit, &p.ask), E_CONFIG,
              "memory: embedding and two layers of the target take ");
    ck_assert_ptr_nonnull(strstr(err_text(), "no --weights or --memory would do"));
    printf("%s\n", err_text());
    for (p.ask.weights = gib; p.ask.weights < 24 * gib; p.ask.weights += gib)
        for (p.ask.passes = gib / 4; p.ask.passes < 24 * gib; p.ask.passes *= 2)
            ck_assert_int_eq(fit_make(&p.fit, &p.ask), E_CONFIG);
}

static void options_are_kept_and_named(struct published p)
{
    p.ask.weights = target_sizes(p.target).parts;
    ck_assert(fits(&p)->streams);
    p.ask.weights--;
    kit_fails(fit_make(&p.fit, &p.ask), E_CONFIG, "--weights 3.80 GiB: embedding and");
    p.ask.weights = 0;
    p.ask.passes = (size_t)2 << 30;
    ck_assert(fits(&p)->leaves);
    p.ask.passes = (size_t)1 << 30; // in pieces, whole nevertheless
    const struct fit *f = fits(&p);
    ck_assert(!f->streams && f->piece < 8192 && f->sets == 1 && !f->leaves);
    ck_assert_uint_gt(line_of(&f->device, "cache"), 0);
    p.ask.passes = 1 << 20;
    kit_fails(fit_make(&p.fit, &p.ask), E_CONFIG,
              "--memory 1.00 MiB: a row of 8192 tokens takes");
}

/* Rows wait in the host's memory, page-locked: never more than it has for them. */
static void the_host_bounds_rows(struct published p)
{
    size_t row = hidden_row_bytes(&p.ask.form);
    p.ask.weights = target_sizes(p.target).parts;
    p.ask.passes = 0;
    for (size_t n = 30; n >= 1; n--) {
        size_t *const limit[] = {&p.ask.host, &p.ask.spare};
        *limit[n % 2] = n * row + row / 2;
        *limit[(n + 1) % 2] = 0;
        const struct fit *f = fits(&p);
        size_t most = FIT_ROWS + FIT_GROUP - 1;
        ck_assert_uint_eq(f->host.total, (n < most ? n : most) * row);
    }
    p.ask.host = row - 1;
    kit_fails(fit_make(&p.fit, &p.ask), E_CONFIG,
              "--host: the states of a row of 8192 tokens take 400.00 MiB");
    p.ask.host = 0;
    p.ask.spare = row - 1;
    kit_fails(fit_make(&p.fit, &p.ask), E_CONFIG,
              "memory: the states of a row of 8192 tokens take 400.00 MiB of the "
              "host's memory, 400.00 MiB are there for them");
    p.ask.form.fp8 = true; // half of it, and scales
    ck_assert_int_eq(fits(&p)->rows, 1);
}

/* Looking at 27 billion parameters takes a moment: once for all. */
START_TEST(published_on_cards)
{
    struct published p;
    open_published(&p);
    where_it_fits_it_is_whole(p);
    where_it_does_not_it_streams(p);
    too_small_is_refused(p);
    options_are_kept_and_named(p);
    the_host_bounds_rows(p);
    target_close(p.target);
}
END_TEST

KIT_MAIN("fit", published_on_cards)
