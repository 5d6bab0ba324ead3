/* SPDX-License-Identifier: MIT */
/* test_fetch_engine.c - the parts of the transfer that need no server: pieces and their
 * replies, the queue's order, retries, buffers, what outlives a run. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tools/fetch/partial.h"
#include "../tools/fetch/piece.h"
#include "../tools/fetch/pool.h"
#include "../tools/fetch/queue.h"
#include "../tools/fetch/retry.h"
#include "../tools/fetch/url.h"
#include "../tools/fetch/want.h"
#include "err.h"
#include "file.h"
#include "kit.h"
#include "mem.h"

/* ---- pieces ---- */

START_TEST(pieces_cover_an_object)
{
    struct object o = {.key = "k", .size = 25};
    ck_assert_int_eq(piece_count(&o, 25), 1);
    ck_assert_int_eq(piece_of(&o, 25, 0).kind, PIECE_WHOLE);
    ck_assert_int_eq(piece_count(&o, 10), 3);
    for (int i = 0; i < 3; i++) {
        struct piece p = piece_of(&o, 10, i);
        ck_assert(p.kind == PIECE_RANGE && p.begin == 10 * i);
        ck_assert_int_eq(p.end, i < 2 ? 10 * i + 10 : 25);
    }
    char text[64];
    struct piece last = piece_of(&o, 10, 2);
    piece_range(text, &last);
    ck_assert_str_eq(text, "bytes=20-24");
    o.unranged = true;
    ck_assert_int_eq(piece_count(&o, 10), 1);
    o = (struct object){.key = "k", .size = -1};
    ck_assert(piece_count(&o, 10) == 1 && piece_of(&o, 10, 0).end == -1);
    o.size = 0;
    ck_assert(piece_count(&o, 10) == 1 && piece_of(&o, 10, 0).kind == PIECE_WHOLE);
}
END_TEST

START_TEST(a_reply_must_be_the_piece)
{
    struct object o = {.key = "k", .size = 100, .etag = "\"e\""};
    const struct piece range = piece_of(&o, 40, 1), whole = piece_of(&o, 100, 0);
    static const struct {
        bool range;
        int status;
        int64_t length, begin, end, total;
        const char *etag;
        int code;
    } c[] = {
        {true, 206, 40, 40, 80, 100, "\"e\"", 0},
        {true, 206, -1, 40, 80, 100, "\"e\"", 0},
        {true, 206, -1, 40, 80, -1, "\"e\"", 0},
        {true, 200, 40, 40, 80, 100, "\"e\"", E_REMOTE},
        {true, 206, 40, -1, -1, -1, "\"e\"", E_REMOTE},
        {true, 206, 40, 41, 81, 100, "\"e\"", E_REMOTE},
        {true, 206, 39, 40, 79, 100, "\"e\"", E_REMOTE},
        {true, 206, 41, 40, 80, 100, "\"e\"", E_REMOTE},
        {true, 206, 40, 40, 80, 101, "\"e\"", E_REMOTE},
        {true, 206, 40, 40, 80, 100, "\"f\"", E_AGAIN},
        {true, 206, 40, 40, 80, 100, "", E_REMOTE},
        {false, 200, 100, -1, -1, -1, "\"e\"", 0},
        {false, 200, -1, -1, -1, -1, "\"e\"", 0},
        {false, 206, 100, 0, 100, 100, "\"e\"", E_REMOTE},
        {false, 200, 99, -1, -1, -1, "\"e\"", E_REMOTE},
        {false, 200, 100, -1, -1, -1, "\"f\"", E_AGAIN},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct head h;
        head_start(&h);
        h.status = c[i].status;
        h.length = c[i].length;
        h.begin = c[i].begin;
        h.end = c[i].end;
        h.total = c[i].total;
        snprintf(h.etag, sizeof h.etag, "%s", c[i].etag);
        ck_assert_int_eq(piece_check(c[i].range ? &range : &whole, &h), c[i].code);
        h.broken = true;
        ck_assert_int_eq(piece_check(c[i].range ? &range : &whole, &h), E_REMOTE);
    }
    struct head h;
    head_start(&h);
    h.status = 200;
    h.length = 99;
    o.etag = NULL; // nothing but the size tells
    ck_assert_int_eq(piece_check(&whole, &h), E_AGAIN);
    o.blob = "e2e107ac61ac259b87c544f6e7a4eb03422c6c21"; // the hub: it cannot change
    ck_assert_int_eq(piece_check(&whole, &h), E_REMOTE);
}
END_TEST

/* ---- the queue ---- */

enum { MANY = 3, ONE = 60 };

/* MANY objects of 20 pieces, then ONE objects of one piece each. */
static void fill(struct objects *list, bool wanted[])
{
    for (int i = 0; i < MANY + ONE; i++) {
        struct object *o = object_add(list, kit_path("%03d", i), "");
        o->size = i < MANY ? 200 << 10 : 10 << 10;
        wanted[i] = i != MANY; // one that is not
    }
}

static void take(struct queue *q, struct work *w)
{
    ck_assert_int_eq(queue_take(q, 0, w), 1);
}

START_TEST(the_queue_hands_out_each_piece_once_and_mixes)
{
    struct objects list = {0};
    bool wanted[MANY + ONE], seen[MANY + ONE][20] = {{false}};
    struct queue q;
    struct work w;
    int pieces = 0, ones = 0, middle = 0, heads = 0;
    fill(&list, wanted);
    kit_ok(queue_start(&q, &list, wanted, 10 << 10));
    while (queue_take(&q, 0, &w) == 1) {
        if (w.index < 0) {
            ck_assert_int_eq(w.piece.kind, PIECE_HEAD);
            queue_open(&q, w.task);
            heads++;
            continue;
        }
        ck_assert(wanted[w.task->number] && !seen[w.task->number][w.index]);
        seen[w.task->number][w.index] = true;
        pieces++;
        ones += w.task->pieces == 1;
        if (pieces == (MANY * 20 + ONE - 1) / 2)
            middle = ones;
    }
    ck_assert_int_eq(heads, MANY);
    ck_assert_int_eq(pieces, MANY * 20 + ONE - 1);
    ck_assert_int_gt(middle, ONE / 3); // neither lane waits for the other
    ck_assert_int_lt(middle, ONE * 2 / 3);
    while (q.tasks)
        queue_forget(&q, q.tasks);
    queue_drop(&q);
    object_drop(&list);
}
END_TEST

START_TEST(the_queue_skips_what_is_there_or_has_failed)
{
    struct objects list = {0};
    bool wanted[MANY + ONE];
    static const uint8_t have[20] = {1, 1, 0, 1};
    struct queue q;
    struct work w;
    fill(&list, wanted);
    kit_ok(queue_start(&q, &list, wanted, 10 << 10));
    do
        take(&q, &w);
    while (w.index >= 0);
    w.task->have = have;
    queue_open(&q, w.task);
    struct task *task = w.task;
    for (int n = 0; n < 2;) {
        take(&q, &w);
        if (w.task == task)
            ck_assert_int_eq(w.index, n++ == 0 ? 2 : 4);
    }
    task->code = E_IO;
    while (queue_take(&q, 0, &w) == 1)
        ck_assert(w.task != task);
    while (q.tasks)
        queue_forget(&q, q.tasks);
    queue_drop(&q);
    object_drop(&list);
}
END_TEST

/* A task that ends while its lane holds it: its link is another list's from then on,
 * and what stands behind it in the lane must still go out. */
START_TEST(the_queue_lets_go_of_what_has_ended)
{
    struct objects list = {0};
    bool wanted[MANY + ONE];
    struct queue q;
    struct work w;
    struct task *open[2];
    fill(&list, wanted);
    kit_ok(queue_start(&q, &list, wanted, 10 << 10));
    for (int n = 0; n < 2;) {
        take(&q, &w);
        if (w.index < 0)
            open[n++] = w.task;
    }
    queue_open(&q, open[0]);
    queue_open(&q, open[1]);
    open[0]->code = E_IO;
    queue_shut(&q, open[0]);
    open[0]->link = NULL;
    queue_forget(&q, open[0]);
    int pieces = 0;
    while (queue_take(&q, 0, &w) == 1)
        pieces += w.task == open[1];
    ck_assert_int_eq(pieces, open[1]->pieces);
    queue_shut(&q, open[1]);
    while (q.tasks)
        queue_forget(&q, q.tasks);
    queue_drop(&q);
    object_drop(&list);
}
END_TEST

START_TEST(the_queue_gives_retries_when_they_are_due)
{
    struct objects list = {0};
    bool wanted[MANY + ONE] = {false};
    struct queue q;
    struct work w = {0};
    fill(&list, (bool[MANY + ONE]){false});
    kit_ok(queue_start(&q, &list, wanted, 10 << 10));
    ck_assert_int_eq(queue_take(&q, 100, &w), 0);
    for (int i = 0; i < 50; i++) {
        w.due = (i * 37) % 50;
        kit_ok(queue_again(&q, &w));
    }
    for (int i = 0; i < 50; i++) {
        ck_assert_double_eq(queue_due(&q), i);
        ck_assert_int_eq(queue_take(&q, i - 0.5, &w), 0);
        ck_assert_int_eq(queue_take(&q, i, &w), 1);
        ck_assert_double_eq(w.due, i);
    }
    ck_assert(queue_due(&q) > 1e300);
    queue_drop(&q);
    object_drop(&list);
}
END_TEST

/* ---- retries ---- */

START_TEST(verdicts)
{
    static const struct {
        enum http_end end;
        int status;
        const char *code;
        int rc;
        enum verdict v;
    } c[] = {
        {HTTP_WHOLE, 200, "", 0, VERDICT_NEVER},
        {HTTP_WHOLE, 206, "", 0, VERDICT_NEVER},
        {HTTP_WHOLE, 503, "SlowDown", E_REMOTE, VERDICT_SLOW},
        {HTTP_WHOLE, 429, "", E_REMOTE, VERDICT_SLOW},
        {HTTP_WHOLE, 500, "InternalError", E_REMOTE, VERDICT_LATER},
        {HTTP_WHOLE, 502, "", E_REMOTE, VERDICT_LATER},
        {HTTP_WHOLE, 400, "RequestTimeout", E_CONFIG, VERDICT_LATER},
        {HTTP_WHOLE, 400, "InvalidArgument", E_CONFIG, VERDICT_NEVER},
        {HTTP_WHOLE, 403, "AccessDenied", E_ACCESS, VERDICT_NEVER},
        {HTTP_WHOLE, 404, "NoSuchKey", E_MISSING, VERDICT_NEVER},
        {HTTP_WHOLE, 412, "PreconditionFailed", E_AGAIN, VERDICT_NEVER},
        {HTTP_BROKEN, 200, "", E_REMOTE, VERDICT_LATER},
        {HTTP_STALLED, 0, "", E_REMOTE, VERDICT_LATER},
        {HTTP_UNREACHED, 0, "", E_REMOTE, VERDICT_LATER},
        {HTTP_UNTRUSTED, 0, "", E_CONFIG, VERDICT_NEVER},
        {HTTP_NO_URL, 0, "", E_CONFIG, VERDICT_NEVER},
        {HTTP_NO_TLS, 0, "", E_CONFIG, VERDICT_NEVER},
        {HTTP_WHOLE, 204, "", E_CONFIG, VERDICT_NEVER},
        {HTTP_WHOLE, 206, "", 0, VERDICT_NEVER},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct http_call call = {
            .method = "GET", .end = c[i].end, .head.status = c[i].status};
        enum verdict v;
        ck_assert_int_eq(retry_judge(&v, &call, "name", c[i].code, ""), c[i].rc);
        ck_assert_int_eq(v, c[i].v);
    }
    struct http_call idle = {.end = HTTP_BROKEN, .reused = true};
    enum verdict v;
    ck_assert_int_eq(retry_judge(&v, &idle, "name", "", ""), E_REMOTE);
    ck_assert_int_eq(v, VERDICT_NOW); // closed while it was idle
    struct http_call deleted = {
        .method = "DELETE", .end = HTTP_WHOLE, .head.status = 204};
    kit_ok(retry_judge(&v, &deleted, "name", "", ""));
    struct http_call moved = {.end = HTTP_WHOLE, .head.status = 302};
    retry_judge(&v, &moved, "name", "", "");
    ck_assert_int_eq(v, VERDICT_NEVER);
    snprintf(moved.head.location, sizeof moved.head.location, "/x");
    retry_judge(&v, &moved, "name", "", "");
    ck_assert_int_eq(v, VERDICT_MOVED);
}
END_TEST

START_TEST(pauses_are_spread_and_bounded)
{
    uint64_t random = 1;
    for (int tries = 1; tries < 30; tries++) {
        double most = tries < 8 ? 0.1 * (1 << tries) : 20, least = most, largest = 0;
        for (int i = 0; i < 200; i++) {
            double pause = retry_delay(tries, -1, &random);
            ck_assert(pause >= 0 && pause <= most);
            least = pause < least ? pause : least;
            largest = pause > largest ? pause : largest;
        }
        ck_assert(least < most / 10 && largest > most * 0.9);
    }
    ck_assert(retry_delay(1, 5, &random) >= 5);
    ck_assert_double_eq(retry_delay(1, 100000, &random), 60);
}
END_TEST

START_TEST(buffers_stay_within_the_budget)
{
    struct pool p;
    pool_open(&p, 1 << 20);
    void *a = pool_take(&p, 512 << 10), *b = pool_take(&p, 300 << 10);
    ck_assert(a && b && !pool_take(&p, 1));
    pool_give(&p, a, 512 << 10);
    void *c[32];
    for (int i = 0; i < 32; i++) // the free one makes way
        ck_assert_ptr_nonnull(c[i] = pool_take(&p, 16 << 10));
    ck_assert_ptr_null(pool_take(&p, 1));
    for (int i = 0; i < 32; i++)
        pool_give(&p, c[i], 16 << 10);
    ck_assert_ptr_eq(pool_take(&p, 10), c[31]); // the warmest
    pool_give(&p, c[31], 10);
    pool_give(&p, b, 300 << 10);
    ck_assert_int_le(p.held, 1 << 20);
    pool_close(&p);
}
END_TEST

/* ---- what outlives a run ---- */

static const struct object large = {
    .key = "a/large", .size = 1000, .etag = "\"e\"", .mtime_ns = 5};

static void open_place(struct place *p, const char *dest)
{
    kit_ok(place_open(p, dest, 0, 1));
}

static void write_piece(struct partial *p, int64_t i, char fill)
{
    char bytes[300];
    memset(bytes, fill, sizeof bytes);
    size_t n = i == 3 ? 100 : 300;
    kit_ok(file_pwrite(p->fd, bytes, n, i * 300, "piece"));
    kit_ok(partial_note(p, i, crc_add(CRC64NVME, 0, bytes, n)));
}

/* Opens in a new run and gives the pieces that are there, as digits. */
static const char *resume(const char *dest, const struct object *o)
{
    static char have[8];
    struct place place;
    struct partial p;
    open_place(&place, dest);
    kit_ok(partial_open(&p, &place, o, 500));
    memset(have, 0, sizeof have);
    for (int64_t i = 0; i < p.pieces; i++)
        have[i] = p.there[i] ? '1' : '0';
    partial_close(&p);
    place_close(&place);
    return have;
}

static const char *left_by_a_kill(void)
{
    const char *dest = kit_tmp_dir();
    struct place place;
    struct partial p;
    open_place(&place, dest);
    kit_ok(partial_open(&p, &place, &large, 300));
    ck_assert(p.pieces == 4 && p.have == 0);
    write_piece(&p, 3, 'd');
    write_piece(&p, 1, 'b');
    partial_close(&p);
    place_close(&place);
    return dest;
}

static char *path_of_file(const char *dest, bool journal)
{
    char **names;
    int64_t n;
    char *path = NULL, *dir = file_path(dest, ".draft-fetch/tmp");
    kit_ok(file_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++)
        if ((strstr(names[i], ".have") != NULL) == journal)
            path = file_path(dir, names[i]);
    file_list_free(names, n);
    mem_free(dir);
    return path;
}

START_TEST(pieces_are_taken_over)
{
    ck_assert_str_eq(resume(left_by_a_kill(), &large), "0101"); // in their own size
    struct object other = large;
    other.etag = "\"f\"";
    ck_assert_str_eq(resume(left_by_a_kill(), &other), "00");
    other = large;
    other.size = 1001;
    ck_assert_str_eq(resume(left_by_a_kill(), &other), "000");
    other = large;
    other.etag = NULL;
    ck_assert_str_eq(resume(left_by_a_kill(), &other), "00");
}
END_TEST

START_TEST(damaged_pieces_are_not)
{
    const char *dest = left_by_a_kill();
    char *data = path_of_file(dest, false), *journal = path_of_file(dest, true);
    int fd = open(data, O_WRONLY);
    kit_ok(file_pwrite(fd, "x", 1, 400, "damage"));
    close(fd);
    ck_assert_str_eq(resume(dest, &large), "0001");
    kit_ok(truncate(data, 950));
    ck_assert_str_eq(resume(dest, &large), "00");
    mem_free(data);
    mem_free(journal);
    dest = left_by_a_kill();
    journal = path_of_file(dest, true);
    size_t n;
    char *text = kit_read(journal, &n);
    kit_write(journal, text, n - 5); // the last line was cut
    ck_assert_str_eq(resume(dest, &large), "0001");
    kit_write_text(journal, "{}\n1 0000000000000000\n");
    ck_assert_str_eq(resume(dest, &large), "00");
    mem_free(text);
    mem_free(journal);
}
END_TEST

START_TEST(what_nobody_wants_is_swept)
{
    const char *dest = left_by_a_kill();
    struct objects list = {0};
    struct place place;
    object_add(&list, "a/large", "")->size = 1000;
    open_place(&place, dest);
    kit_ok(partial_sweep(&place, &list, (bool[]){true}, 300));
    char *data = path_of_file(dest, false);
    ck_assert_ptr_nonnull(data);
    kit_ok(partial_sweep(&place, &list, (bool[]){false}, 300));
    ck_assert_ptr_null(path_of_file(dest, true));
    place_close(&place);
    ck_assert(!file_exists(kit_path("%s/.draft-fetch/tmp", dest)));
    mem_free(data);
    object_drop(&list);
}
END_TEST

/* ---- sums and URLs ---- */

static struct want want(const char *sha256, const char *crc64, const char *crc32c,
                        const char *type, int code)
{
    struct head h;
    struct want w;
    const struct object o = {.key = "k", .sha256 = sha256};
    head_start(&h);
    snprintf(h.crc64nvme, sizeof h.crc64nvme, "%s", crc64);
    snprintf(h.crc32c, sizeof h.crc32c, "%s", crc32c);
    snprintf(h.checksum_type, sizeof h.checksum_type, "%s", type);
    ck_assert_int_eq(want_of(&w, &o, &h, 0), code);
    return w;
}

START_TEST(the_strongest_sum_is_wanted)
{
    const struct object o = {.key = "k"};
    struct want w = want(NULL, "rosUhgp5mIg=", "4waSgw==", "FULL_OBJECT", 0);
    ck_assert(w.kind == WANT_CRC && w.crc == CRC64NVME);
    kit_ok(want_crc(&w, &o, 0xae8b14860a799888)); // of "123456789"
    kit_fails(want_crc(&w, &o, 0), E_FORMAT,
              "CRC-64/NVME is 0000000000000000, not ae8b");
    w = want(NULL, "", "4waSgw==", "", 0);
    ck_assert(w.kind == WANT_CRC && w.crc == CRC32C && w.value == 0xe3069283);
    ck_assert_int_eq(want(NULL, "", "4waSgw==", "COMPOSITE", 0).kind, WANT_NOTHING);
    ck_assert_int_eq(want(NULL, "", "4waSgw==-3", "", 0).kind, WANT_NOTHING);
    ck_assert_int_eq(want(NULL, "", "", "", 0).kind, WANT_NOTHING);
    want(NULL, "rosUhgp5mI==", "", "", E_REMOTE);
    want(NULL, "rosUhgp5mIh=", "", "", E_REMOTE); // bits behind the last byte
    want(NULL, "4waSgw==", "", "", E_REMOTE);
    char hex[65] = "";
    memset(hex, 'a', 64);
    w = want(hex, "rosUhgp5mIg=", "", "", 0);
    ck_assert(w.kind == WANT_DIGEST && w.digest == DIGEST_SHA256 && w.sum[31] == 0xaa);
}
END_TEST

/* Sums of "123456789" in steps of one and of four bytes. */
static int add_digits(const struct want *w, const struct object *o, size_t step)
{
    static const char digits[] = "123456789";
    struct want_run *r = want_begin(w, 9);
    ck_assert_ptr_nonnull(r);
    for (size_t at = 0; at < 9; at += step)
        want_add(r, digits + at, 9 - at < step ? 9 - at : step);
    return want_end(r, o);
}

START_TEST(etags_and_blobs)
{
    static const struct {
        const char *etag, *encryption;
        int64_t part, parts;
        const char *missing; // part of, or NULL
    } c[] = {
        {"\"25f9e794323b453885f5181f1b624d0b\"", "", 0, 1, NULL},
        {"\"25F9E794323B453885F5181F1B624D0B\"", "AES256", 0, 1, NULL},
        {"\"5927c5d64d94a5786f90003aa26d0159-1\"", "", 0, 1, NULL},
        {"\"393e928fcf5925fcbd3a06aaf20b2d38-3\"", "", 4, 3, NULL},
        {"\"393e928fcf5925fcbd3a06aaf20b2d38-3\"", "", 0, 3, "in which parts"},
        {"\"393e928fcf5925fcbd3a06aaf20b2d38-3\"", "", -1, 3, "in which parts"},
        {"\"393e928fcf5925fcbd3a06aaf20b2d38-3\"", "", 2, 3, "different sizes"},
        {"\"393e928fcf5925fcbd3a06aaf20b2d38-3\"", "aws:kms", 4, 3, "KMS"},
        {"\"25f9e794323b453885f5181f1b624d0b\"", "aws:kms:dsse", 0, 1, "KMS"},
        {"25f9e794323b453885f5181f1b624d0b", "", 0, 1, NULL}, // as some list them
        {"\"25f9e794323b453885f5181f1b624d0b", "", 0, 0, "no MD5"},
        {"25f9e794323b453885f5181f1b624d0b\"", "", 0, 0, "no MD5"},
        {"\"25f9e794323b453885f5181f1b624d0\"", "", 0, 0, "no MD5"},
        {"\"25f9e794323b453885f5181f1b624d0b-\"", "", 0, 0, "no MD5"},
        {"\"25f9e794323b453885f5181f1b624d0b-999999\"", "", 0, 0, "no MD5"},
        {"W/\"25f9e794323b453885f5181f1b624d0b\"", "", 0, 0, "no MD5"},
        {NULL, "", 0, 0, "no MD5"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const struct object o = {.key = "k", .etag = c[i].etag, .size = 9, .md5 = true};
        struct want w;
        struct head h;
        head_start(&h);
        snprintf(h.encryption, sizeof h.encryption, "%s", c[i].encryption);
        ck_assert_int_eq(want_parts(&o), c[i].parts);
        kit_ok(want_of(&w, &o, &h, c[i].part));
        ck_assert_int_eq(w.kind, c[i].missing ? WANT_NOTHING : WANT_DIGEST);
        if (c[i].missing) {
            ck_assert_ptr_nonnull(strstr(w.missing, c[i].missing));
            continue;
        }
        kit_ok(add_digits(&w, &o, 1));
        kit_ok(add_digits(&w, &o, 9));
        w.sum[15] ^= 1;
        kit_fails(add_digits(&w, &o, 3), E_FORMAT, "its MD5");
    }
    const struct object o = {.key = "k",
                             .blob = "e2e107ac61ac259b87c544f6e7a4eb03422c6c21"};
    struct want w;
    kit_ok(want_of(&w, &o, &(struct head){0}, 0)); // git hash-object of the digits
    kit_ok(add_digits(&w, &o, 2));
    w.blob = false;
    kit_fails(add_digits(&w, &o, 2), E_FORMAT, "its SHA-1");
}
END_TEST

START_TEST(urls)
{
    struct buf b = {0};
    struct url u;
    url_escape(&b, "a b/+#%=:\xc3\xa9~", "/");
    ck_assert_str_eq(b.p, "a%20b/%2B%23%25%3D%3A%C3%A9~");
    kit_ok(url_split(&u, "https://h:8/p/q?a=b#f"));
    ck_assert(u.host_n == 3 && u.path_n == 4 && u.query_n == 3);
    static const char *const bad[] = {"",
                                      "h/p",
                                      "://h",
                                      "https://",
                                      "https:///p",
                                      "https://u:p@h/",
                                      "https://h:/",
                                      "https://h:0",
                                      "https://h:65536/a",
                                      "https://h:8o/",
                                      "https://[::1]:99999/",
                                      "https://h/a b",
                                      "https://h/\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        kit_fails(url_split(&u, bad[i]), E_USAGE, "");
    static const struct {
        const char *base, *location, *to;
    } c[] = {{"https://a/b?c", "/d?e", "https://a/d?e"},
             {"http://a:1/b", "https://c/d", "https://c/d"},
             {"https://a/b", "http://a/b", NULL},
             {"https://a/b", "file:///etc/passwd", NULL},
             {"https://a/b", "d", NULL},
             {"https://a/b", "//c/d", NULL},
             {"https://a/b", "", NULL}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        buf_clear(&b);
        int rc = url_join(&b, c[i].base, c[i].location);
        ck_assert_int_eq(rc, c[i].to ? 0 : E_FORMAT);
        ck_assert(!c[i].to || strcmp(b.p, c[i].to) == 0);
    }
    ck_assert(url_same_host("https://A/b", "HTTPS://a/c"));
    ck_assert(!url_same_host("https://a/b", "http://a/b"));
    ck_assert(!url_same_host("https://a/b", "https://a:8/b"));
    ck_assert(!url_same_host("https://a/b", "https://a.b/b"));
    buf_drop(&b);
}
END_TEST

KIT_MAIN("fetch_engine", pieces_cover_an_object, a_reply_must_be_the_piece,
         the_queue_hands_out_each_piece_once_and_mixes,
         the_queue_skips_what_is_there_or_has_failed,
         the_queue_lets_go_of_what_has_ended, the_queue_gives_retries_when_they_are_due,
         verdicts, pauses_are_spread_and_bounded, buffers_stay_within_the_budget,
         pieces_are_taken_over, damaged_pieces_are_not, what_nobody_wants_is_swept,
         the_strongest_sum_is_wanted, etags_and_blobs, urls)
