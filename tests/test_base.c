/* SPDX-License-Identifier: MIT */
/* test_base.c - errors, memory, buffers. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "kit.h"
#include "mem.h"

START_TEST(messages)
{
    ck_assert_int_eq(err_set(E_FORMAT, "%s: bad\n%c", "a\033b", 127), E_FORMAT);
    ck_assert_str_eq(err_text(), "a?b: bad??");
    ck_assert_int_eq(err_wrap(E_FORMAT, "record %d", 7), E_FORMAT);
    ck_assert_str_eq(err_text(), "record 7: a?b: bad??");
    /* The arguments may be the slot itself. */
    err_set(E_IO, "again: %s", err_text());
    ck_assert_str_eq(err_text(), "again: record 7: a?b: bad??");
    err_copy(E_IO, "100 %s");
    ck_assert_str_eq(err_text(), "100 %s");
}
END_TEST

START_TEST(messages_are_cut)
{
    char big[3 * ERR_TEXT_MAX];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    err_set(E_IO, "%s", big);
    ck_assert_uint_eq(strlen(err_text()), ERR_TEXT_MAX - 1);
    err_wrap(E_IO, "in front");
    ck_assert_uint_eq(strlen(err_text()), ERR_TEXT_MAX - 1);
    ck_assert_int_eq(strncmp(err_text(), "in front: xxx", 13), 0);
}
END_TEST

START_TEST(codes_of_errno)
{
    kit_fails(err_errno(ENOENT, "cannot open %s", "x"), E_MISSING,
              "cannot open x: No such file");
    kit_fails(err_errno(EACCES, "a"), E_ACCESS, "a: Permission denied");
    kit_fails(err_errno(EPERM, "a"), E_ACCESS, "a: ");
    kit_fails(err_errno(EROFS, "a"), E_ACCESS, "a: ");
    kit_fails(err_errno(ENOMEM, "a"), E_MEMORY, "a: ");
    kit_fails(err_errno(ENOSPC, "a"), E_IO, "a: No space left");
}
END_TEST

static void *other_thread(void *arg)
{
    err_set(E_IO, "theirs");
    return arg;
}

START_TEST(slot_per_thread)
{
    pthread_t t;
    err_set(E_IO, "ours");
    ck_assert_int_eq(pthread_create(&t, NULL, other_thread, NULL), 0);
    pthread_join(t, NULL);
    ck_assert_str_eq(err_text(), "ours");
}
END_TEST

static int tried(int rc)
{
    TRY(rc);
    return 1;
}

static int tried_goto(int wanted)
{
    int rc;
    TRY_GOTO(rc, wanted, out);
    rc = 1;
out:
    return rc;
}

START_TEST(try_passes_failures_only)
{
    ck_assert_int_eq(tried(0), 1);
    ck_assert_int_eq(tried(5), 1);
    ck_assert_int_eq(tried(E_IO), E_IO);
    ck_assert_int_eq(tried_goto(3), 1);
    ck_assert_int_eq(tried_goto(E_IO), E_IO);
}
END_TEST

START_TEST(bug_exits_with_70)
{
    fclose(stderr);
    bug("shape %d", 3);
}
END_TEST

START_TEST(memory)
{
    unsigned char *p = mem_alloc(3);
    ck_assert_uint_eq((uintptr_t)p % 64, 0);
    memcpy(p, "abc", 3);
    p = mem_grow(p, 3, 4096);
    ck_assert_uint_eq((uintptr_t)p % 64, 0);
    ck_assert_int_eq(memcmp(p, "abc", 3), 0);
    p = mem_grow(p, 4096, 2);
    ck_assert_int_eq(memcmp(p, "ab", 2), 0);
    mem_free(p);
    p = mem_grow(NULL, 0, 8);
    ck_assert_ptr_nonnull(p);
    mem_free(p);
    p = mem_alloc(0);
    ck_assert_ptr_nonnull(p);
    mem_free(p);
    p = mem_zero(7, 9);
    for (int i = 0; i < 63; i++)
        ck_assert_int_eq(p[i], 0);
    mem_free(p);
    mem_free(NULL);
    char *s = mem_text("text");
    ck_assert_str_eq(s, "text");
    mem_free(s);
}
END_TEST

START_TEST(memory_room)
{
    int64_t cap = 0, moves = 0;
    int *at = NULL;
    for (int n = 0; n < 1000; n++) {
        int *to = mem_room(at, n, &cap, sizeof *at);
        ck_assert(to && cap > n);
        moves += to != at;
        at = to;
        at[n] = n;
    }
    ck_assert_int_eq(moves, 5);
    for (int n = 0; n < 1000; n++)
        ck_assert_int_eq(at[n], n);
    cap = 1000;
    ck_assert_ptr_null(mem_room(at, 1000, &cap, SIZE_MAX / 1000));
    kit_fails(E_MEMORY, E_MEMORY, "2000 items of");
    ck_assert_int_eq(cap, 1000);
    ck_assert_int_eq(at[999], 999);
    mem_free(at);
}
END_TEST

START_TEST(memory_fails)
{
    ck_assert_ptr_null(mem_alloc(SIZE_MAX));
    kit_fails(E_MEMORY, E_MEMORY, "18446744073709551615");
    ck_assert_ptr_null(mem_zero(SIZE_MAX / 2, 3));
    kit_fails(E_MEMORY, E_MEMORY, "items of 3 bytes");
    char *p = mem_text("kept");
    ck_assert_ptr_null(mem_grow(p, 5, SIZE_MAX));
    ck_assert_str_eq(p, "kept");
    mem_free(p);
}
END_TEST

START_TEST(buffers)
{
    struct buf b = {0};
    ck_assert_str_eq(buf_text(&b), "");
    buf_adds(&b, "one");
    buf_addc(&b, ' ');
    buf_addf(&b, "%d %s", 2, "three");
    buf_fill(&b, '.', 3);
    buf_add(&b, "\0x", 2);
    ck_assert_uint_eq(b.len, 16);
    ck_assert_int_eq(memcmp(b.p, "one 2 three...\0x", 17), 0);
    memcpy(buf_room(&b, 4), "tail", 4);
    b.len += 4;
    buf_addc(&b, '!');
    ck_assert_str_eq(b.p + 15, "xtail!");
    kit_ok(buf_check(&b));
    buf_clear(&b);
    ck_assert_str_eq(buf_text(&b), "");
    buf_drop(&b);
    ck_assert_ptr_null(b.p);
}
END_TEST

START_TEST(buffers_grow)
{
    struct buf b = {0};
    for (int i = 0; i < 100000; i++) {
        buf_addf(&b, "%d,", i % 10);
        if (b.len >= b.cap || b.p[b.len] != 0)
            ck_abort_msg("no NUL behind %zu bytes", b.len);
    }
    for (int i = 0; i < 100000; i++)
        if (b.p[2 * i] != '0' + i % 10)
            ck_abort_msg("wrong digit %d", i);
    buf_drop(&b);
}
END_TEST

START_TEST(buffers_fail_and_stay_failed)
{
    struct buf b = {0};
    buf_adds(&b, "kept");
    ck_assert_ptr_null(buf_room(&b, SIZE_MAX - 2));
    buf_adds(&b, " more");
    ck_assert_str_eq(buf_text(&b), "kept");
    kit_fails(buf_check(&b), E_MEMORY, "no memory");
    buf_drop(&b);
    ck_assert(!b.failed);
}
END_TEST

int main(void)
{
    Suite *s = kit_suite("base", (const TTest *const[]){
                                     messages, messages_are_cut, codes_of_errno,
                                     slot_per_thread, try_passes_failures_only, memory,
                                     memory_room, memory_fails, buffers, buffers_grow,
                                     buffers_fail_and_stay_failed, NULL});
    TCase *exits = tcase_create("exits");
    tcase_add_exit_test(exits, bug_exits_with_70, 70);
    suite_add_tcase(s, exits);
    return kit_run(s);
}
