/* SPDX-License-Identifier: MIT */
/* test_par.c - the loop covers every index once, the stream keeps its order, and the
 * failure that comes back is the first by position whatever the timing. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "kit.h"
#include "mem.h"
#include "par.h"

/* A short sleep that depends on the position shakes the order of events. */
static void shake(int64_t at)
{
    struct timespec t = {0, 1000 * (at * 7919 % 300)};
    nanosleep(&t, NULL);
}

struct cover {
    _Atomic int count[10000];
    _Atomic int inside[64]; // by worker
    int64_t grain;
    int threads;
};

static int cover_piece(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct cover *c = ctx;
    if (worker < 0 || worker >= c->threads || begin % c->grain || end <= begin ||
        end - begin > c->grain)
        return err_set(E_IO, "piece %lld..%lld of worker %d", (long long)begin,
                       (long long)end, worker);
    if (atomic_fetch_add(&c->inside[worker], 1) != 0)
        return err_set(E_IO, "two calls as worker %d", worker);
    for (int64_t i = begin; i < end; i++)
        c->count[i]++;
    atomic_fetch_sub(&c->inside[worker], 1);
    return 0;
}

START_TEST(loop_covers_all_once)
{
    static const int64_t sizes[] = {0, 1, 2, 63, 64, 65, 1000, 10000};
    static const int64_t grains[] = {1, 3, 64, 100000};
    static struct cover c;
    for (int threads = 1; threads <= 5; threads++) {
        struct par *p = NULL;
        kit_ok(par_open(&p, threads));
        ck_assert_int_eq(par_threads(p), threads);
        for (int s = 0; s < 8; s++) {
            for (int g = 0; g < 4; g++) {
                memset(&c, 0, sizeof c);
                c.grain = grains[g];
                c.threads = threads;
                kit_ok(par_for(p, sizes[s], grains[g], cover_piece, &c));
                for (int i = 0; i < 10000; i++)
                    if (c.count[i] != (i < sizes[s]))
                        ck_abort_msg("index %d ran %d times", i, c.count[i]);
            }
        }
        par_close(p);
    }
}
END_TEST

START_TEST(no_pool_runs_in_the_caller)
{
    static struct cover c = {.grain = 7, .threads = 1};
    ck_assert_int_eq(par_threads(NULL), 1);
    kit_ok(par_for(NULL, 100, 7, cover_piece, &c));
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(c.count[i], 1);
    par_close(NULL);
}
END_TEST

START_TEST(default_is_every_processor)
{
    struct par *p = NULL;
    kit_ok(par_open(&p, 0));
    ck_assert_int_ge(par_threads(p), 1);
    par_close(p);
}
END_TEST

/* Fails at 300, but not before something behind it has failed, and at all above. */
struct late {
    _Atomic int64_t met;
    _Atomic bool failed_behind;
};

static int fail_late(void *ctx, int64_t begin, int64_t end, int worker)
{
    struct late *l = ctx;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        for (int wait = 0; i == 300 && !l->failed_behind && wait < 100; wait++)
            shake(299);
        if (i > 300)
            l->failed_behind = true;
        if (i >= 300)
            return err_set(i == 300 ? E_FORMAT : E_IO, "at %lld", (long long)i);
        l->met++;
    }
    return 0;
}

START_TEST(first_failure_by_position)
{
    struct par *p = NULL;
    kit_ok(par_open(&p, 4));
    for (int round = 0; round < 60; round++) {
        struct late l = {0, false};
        kit_fails(par_for(p, 100000, 1 + round % 60, fail_late, &l), E_FORMAT,
                  "at 300");
        ck_assert_int_eq(l.met, 300); // all before it, and the handing out stopped
    }
    par_close(p);
}
END_TEST

/* ---- the stream: numbers 0 .. n-1, squared, written in order ---- */

enum { ITEMS = 5 };

struct numbers {
    int64_t n, next_read, next_write;
    int64_t fail_read, fail_work, fail_write; // -1: never
    _Atomic int reading, writing, in_flight;
};

struct number {
    int64_t value, square;
};

static int number_read(void *ctx, void *item)
{
    struct numbers *s = ctx;
    struct number *v = item;
    if (s->reading++ || s->in_flight++ >= ITEMS)
        bug("two reads at once, or too many items");
    v->value = s->next_read++;
    shake(v->value);
    s->reading--;
    if (v->value == s->fail_read)
        return err_set(E_FORMAT, "read %lld", (long long)v->value);
    return v->value < s->n;
}

static int number_work(void *ctx, void *item, int worker)
{
    struct numbers *s = ctx;
    struct number *v = item;
    (void)worker;
    shake(v->value * 3);
    v->square = v->value * v->value;
    if (s->fail_work >= 0 && v->value >= s->fail_work && v->value % 2)
        return err_set(E_IO, "work %lld", (long long)v->value);
    return 0;
}

static int number_write(void *ctx, void *item)
{
    struct numbers *s = ctx;
    const struct number *v = item;
    if (s->writing++)
        bug("two writes at once");
    if (v->value != s->next_write || v->square != v->value * v->value)
        bug("wrote %lld, expected %lld", (long long)v->value, (long long)s->next_write);
    s->next_write++;
    s->writing--;
    s->in_flight--;
    if (v->value == s->fail_write)
        return err_set(E_ACCESS, "write %lld", (long long)v->value);
    return 0;
}

static const struct par_stages stages = {number_read, number_work, number_write};

static int run_stream(struct par *p, struct numbers *s, int items)
{
    struct number item[ITEMS];
    void *at[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        at[i] = &item[i];
    return par_stream(p, &stages, s, at, items);
}

START_TEST(stream_keeps_order)
{
    for (int threads = 1; threads <= 4; threads++) {
        struct par *p = NULL;
        kit_ok(par_open(&p, threads));
        for (int items = 1; items <= ITEMS; items++) {
            for (int64_t n = 0; n <= 63; n = n * 2 + 1) {
                struct numbers s = {n, 0, 0, -1, -1, -1, 0, 0, 0};
                kit_ok(run_stream(p, &s, items));
                ck_assert_int_eq(s.next_write, n);
            }
        }
        par_close(p);
    }
}
END_TEST

START_TEST(stream_first_failure_wins)
{
    for (int threads = 1; threads <= 4; threads++) {
        struct par *p = NULL;
        kit_ok(par_open(&p, threads));
        for (int round = 0; round < 5; round++) {
            struct numbers read = {100, 0, 0, 40, -1, -1, 0, 0, 0};
            kit_fails(run_stream(p, &read, ITEMS), E_FORMAT, "read 40");
            ck_assert_int_eq(read.next_write, 40);
            struct numbers work = {100, 0, 0, 63, 60, -1, 0, 0, 0};
            kit_fails(run_stream(p, &work, ITEMS), E_IO, "work 61");
            ck_assert_int_eq(work.next_write, 61);
            struct numbers write = {100, 0, 0, -1, 62, 60, 0, 0, 0};
            kit_fails(run_stream(p, &write, ITEMS), E_ACCESS, "write 60");
            ck_assert_int_eq(write.next_write, 61);
        }
        par_close(p);
    }
}
END_TEST

KIT_MAIN("par", loop_covers_all_once, no_pool_runs_in_the_caller,
         default_is_every_processor, first_failure_by_position, stream_keeps_order,
         stream_first_failure_wins)
