/* SPDX-License-Identifier: MIT */
/* test_dev.c - tensors, devices and arenas: names, shapes, memory to the byte. */
#include "kit.h"

#include <string.h>

#include "dev.h"
#include "err.h"

/* Refused before malloc sees it, which under the address sanitizer would abort. */
#define TOO_MUCH (SIZE_MAX - 9)

static struct dev *open_cpu(void)
{
    struct dev *d;
    kit_ok(dev_open(&d, "cpu", NULL));
    return d;
}

/* ---- tensors ---- */

START_TEST(shapes)
{
    float x[24];
    struct tensor t = tensor_of(x, DT_F32, T3(4, 3, 2));
    ck_assert_int_eq(tensor_count(&t), 24);
    ck_assert_uint_eq(tensor_bytes(&t), sizeof x);
    struct tensor rows = tensor_rows(t, 1, 2);
    ck_assert_ptr_eq(rows.data, x + 6);
    ck_assert_int_eq(rows.dim[0], 2);
    ck_assert_int_eq(tensor_count(&rows), 12);
    ck_assert_int_eq(tensor_rows(t, 4, 0).dim[0], 0);
    struct tensor flat = tensor_view(t, T2(6, 4));
    ck_assert_ptr_eq(flat.data, x);
    ck_assert(flat.rank == 2 && flat.dim[0] == 6 && flat.dim[1] == 4);
    struct tensor scalar = tensor_of(x, DT_F32, 0, NULL);
    ck_assert_int_eq(tensor_count(&scalar), 1);
}
END_TEST

START_TEST(types)
{
    static const struct {
        enum dtype type;
        size_t size;
        const char *name;
    } want[] = {{DT_U8, 1, "u8"},     {DT_I32, 4, "i32"}, {DT_E4M3, 1, "e4m3"},
                {DT_BF16, 2, "bf16"}, {DT_F32, 4, "f32"}, {DT_F64, 8, "f64"}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        ck_assert_uint_eq(dtype_size(want[i].type), want[i].size);
        ck_assert_str_eq(dtype_name(want[i].type), want[i].name);
    }
}
END_TEST

/* Wrong shapes are bugs of ours: each call ends the process with 70. */
START_TEST(wrong_shapes)
{
    float x[6];
    struct tensor t = tensor_of(x, DT_F32, T2(3, 2)), p = t;
    p.layout = T_PANELS;
    switch (_i) {
    case 0:
        tensor_rows(t, 2, 2);
        break;
    case 1:
        tensor_rows(t, -1, 2);
        break;
    case 2:
        tensor_rows(p, 0, 1);
        break;
    case 3:
        tensor_view(t, T1(5));
        break;
    case 4:
        tensor_of(x, DT_F32, T1(-1));
        break;
    default:
        tensor_of(x, DT_F32, 5, t.dim);
    }
}
END_TEST

/* ---- devices ---- */

START_TEST(names)
{
    static const char *const wrong[] = {
        "", "cpu:0", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1234"};
    struct dev *d = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        kit_fails(dev_open(&d, wrong[i], NULL), E_CONFIG, "known are cpu, cuda");
    ck_assert_ptr_null(d);
    kit_ok(dev_open(&d, "cpu", NULL));
    ck_assert_int_eq(d->act, DT_F32);
    dev_close(d);
    dev_close(NULL);
}
END_TEST

START_TEST(memory)
{
    struct dev *d = open_cpu();
    void *small, *large, *none, *huge;
    char got[3] = "";
    kit_ok(dev_alloc(d, &small, 3));
    kit_ok(dev_alloc(d, &large, 5 << 20));
    kit_ok(dev_alloc(d, &none, 0));
    ck_assert_ptr_nonnull(none);
    ck_assert_uint_eq((uintptr_t)small % 256, 0);
    ck_assert_uint_eq((uintptr_t)large % 256, 0);
    ck_assert_uint_eq(d->held, 3 + (5 << 20));
    kit_ok(dev_put(d, small, "ab", 3));
    kit_ok(dev_get(d, got, small, 3));
    ck_assert_str_eq(got, "ab");
    kit_fails(dev_alloc(d, &huge, TOO_MUCH), E_MEMORY, "bytes asked for");
    dev_free(d, small, 3);
    dev_free(d, large, 5 << 20);
    dev_free(d, none, 0);
    dev_free(d, NULL, 7);
    ck_assert_uint_eq(d->held, 0);
    kit_ok(dev_sync(d));
    dev_close(d);
}
END_TEST

START_TEST(first_failure_sticks)
{
    struct dev *d = open_cpu();
    char a[2] = "x", b[2] = "y";
    dev_fail(d, E_FORMAT, "row %d", 7);
    dev_fail(d, E_DEVICE, "later");
    kit_fails(dev_sync(d), E_FORMAT, "row 7");
    kit_fails(dev_put(d, a, b, 2), E_FORMAT, "row 7");
    kit_fails(dev_get(d, a, b, 2), E_FORMAT, "row 7");
    ck_assert_str_eq(a, "x");
    kit_fails(dev_sync(d), E_FORMAT, "row 7");
    dev_close(d);
}
END_TEST

/* ---- arenas ---- */

START_TEST(arenas)
{
    struct dev *d = open_cpu();
    struct arena a;
    size_t one = arena_bytes(DT_BF16, T2(3, 50)), two = arena_bytes(DT_F32, T1(64));
    ck_assert_uint_eq(one, 512);
    ck_assert_uint_eq(two, 256);
    ck_assert_uint_eq(arena_bytes(DT_F32, T2(0, 9)), 0);
    kit_ok(arena_open(&a, d, "step", one + two));
    struct tensor x = arena_tensor(&a, DT_BF16, T2(3, 50));
    struct tensor y = arena_tensor(&a, DT_F32, T1(64));
    ck_assert_ptr_eq(y.data, (char *)x.data + 512);
    ck_assert_uint_eq(a.used, a.size);
    arena_reset(&a, one);
    ck_assert_ptr_eq(arena_tensor(&a, DT_F32, T1(1)).data, y.data);
    arena_reset(&a, 0);
    ck_assert(a.used == 0 && a.high == one + two);
    ck_assert_uint_eq(d->held, one + two);
    arena_close(&a);
    arena_close(&a);
    ck_assert_uint_eq(d->held, 0);
    kit_fails(arena_open(&a, d, "weights", TOO_MUCH), E_MEMORY, "memory for weights");
    arena_close(&a);
    dev_close(d);
}
END_TEST

START_TEST(arena_overrun)
{
    struct dev *d = open_cpu();
    struct arena a;
    kit_ok(arena_open(&a, d, "step", 512));
    arena_tensor(&a, DT_F32, T1(64));
    if (_i == 0)
        arena_tensor(&a, DT_F32, T1(65));
    arena_reset(&a, 257);
}
END_TEST

int main(void)
{
    const TTest *const plain[] = {shapes, types, names, memory, first_failure_sticks,
                                  arenas, NULL};
    Suite *s = kit_suite("dev", plain);
    TCase *bugs = tcase_create("bugs");
    tcase_add_loop_exit_test(bugs, wrong_shapes, 70, 0, 6);
    tcase_add_loop_exit_test(bugs, arena_overrun, 70, 0, 2);
    suite_add_tcase(s, bugs);
    return kit_run(s);
}
