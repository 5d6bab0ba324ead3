/* SPDX-License-Identifier: MIT */
/* test_pace.c - requests at a time and bytes a second, against servers made of numbers.
 */
#include "../tools/fetch/pace.h"
#include "kit.h"

/* Replies of no bytes at `rate` a second, for a while. */
static double serve(struct pace *p, double now, double seconds, double rate)
{
    for (double end = now + seconds; now < end; now += 1 / rate) {
        ck_assert(pace_may(p, p->limit - 1, now));
        ck_assert(!pace_may(p, p->limit, now));
        pace_got(p, 0, now);
    }
    return now;
}

START_TEST(the_pace_grows_while_that_pays)
{
    struct pace p;
    double now = 0;
    pace_start(&p, 100, 0, now);
    int first = p.limit;
    for (int i = 0; i < 20 && p.limit < 100; i++) // each request takes its time
        now = serve(&p, now, 0.3, 50 * p.limit);
    ck_assert_int_eq(p.limit, 100);
    pace_start(&p, 100, 0, now);
    now = serve(&p, now, 3, 1000); // more requests bring nothing
    ck_assert_int_le(p.limit, first + first / 2);
    pace_slow(&p, now + 1);
    int slow = p.limit;
    ck_assert_int_le(slow, first * 3 / 4);
    pace_slow(&p, now + 1.1); // the same trouble
    ck_assert_int_eq(p.limit, slow);
    for (int i = 0; i < 20; i++)
        pace_slow(&p, now + 3 + 2 * i);
    ck_assert_int_eq(p.limit, 1);
}
END_TEST

/* ---- the pace, with a server that serves `knee` requests at once, and refuses some of
 * what is beyond `most` ---- */

struct server {
    int knee, most;
    double replies, refused; // not yet given out
};

/* Seconds of full load: replies a second.  A reply takes 50 ms. */
static double load(struct pace *p, struct server *s, double *now, double seconds)
{
    const double tick = 0.005, latency = 0.05;
    int replies = 0;
    for (double end = *now + seconds; *now < end; *now += tick) {
        int flying = 0;
        while (pace_may(p, flying, *now))
            flying++;
        int served = flying < s->knee ? flying : s->knee;
        s->replies += served * tick / latency;
        if (flying > s->most)
            s->refused += (flying - s->most) * tick / latency;
        for (; s->refused >= 1; s->refused--)
            pace_slow(p, *now);
        for (; s->replies >= 1; s->replies--, replies++)
            pace_got(p, 1 << 20, *now);
    }
    return replies / seconds;
}

START_TEST(the_pace_finds_what_a_server_can_do)
{
    static const int knees[] = {4, 16, 50, 100, 128};
    for (size_t i = 0; i < sizeof knees / sizeof *knees; i++) {
        struct server s = {.knee = knees[i], .most = 1000};
        struct pace p;
        double now = 0, most = knees[i] / 0.05;
        pace_start(&p, 128, 0, now);
        load(&p, &s, &now, 10);
        for (int k = 0; k < 10; k++) { // it stays there
            ck_assert_double_ge(load(&p, &s, &now, 3), 0.9 * most);
            ck_assert_int_le(p.limit, knees[i] < 16 ? 24 : knees[i] * 9 / 4);
        }
    }
}
END_TEST

START_TEST(the_pace_yields_and_comes_back)
{
    struct server s = {.knee = 100, .most = 1000};
    struct pace p;
    double now = 0;
    pace_start(&p, 128, 0, now);
    load(&p, &s, &now, 10);
    ck_assert_int_ge(p.limit, 90);
    s.most = 20; // of a hundred and more, most are refused now
    load(&p, &s, &now, 5);
    ck_assert_int_le(p.limit, 30);
    for (int k = 0; k < 20; k++) { // it asks for more, but seldom
        s.refused = 0;
        load(&p, &s, &now, 3);
        ck_assert_int_ge(p.limit, 5);
        ck_assert_int_le(p.limit, 45);
    }
    s.most = 1000;
    load(&p, &s, &now, 60);
    ck_assert_double_ge(load(&p, &s, &now, 5), 0.9 * 100 / 0.05);
}
END_TEST

START_TEST(a_rate_is_kept)
{
    struct pace p;
    double now = 0;
    int64_t sent = 0;
    pace_start(&p, 100, 1000, now);
    for (; now < 10; now += 0.001)
        if (pace_may(&p, 0, now)) {
            pace_begin(&p, 300, now);
            sent += 300;
        }
    ck_assert(sent >= 9700 && sent <= 10600);
    ck_assert(pace_wait(&p, now) <= 0.3);
}
END_TEST

KIT_MAIN("pace", the_pace_grows_while_that_pays, the_pace_finds_what_a_server_can_do,
         the_pace_yields_and_comes_back, a_rate_is_kept)
