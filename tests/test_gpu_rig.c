/* SPDX-License-Identifier: MIT */
/* test_gpu_rig.c - rows through targets on the GPU as draft-extract moves them: whole,
 * by layers for a group of rows, by layers one row at a time, as bf16 and fp8.  States
 * are the same, bit for bit, near those of the CPU, and take the memory that was
 * planned. In a build without CUDA the kernels run on the CPU (tests/emu). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "extract/rig.h"
#include "kit.h"
#include "mem.h"
#include "num.h"

enum { S = 72, ROWS = 5, V = 512, H = 64, K = 2 };

/* How near the CPU's states must be, as in test_gpu_model.c: narrow DeltaNet heads
 * enlarge what rounding there is. */
static const struct {
    const char *model;
    double near;
} targets[] = {{"tests/golden/target-qwen3/model", 2e-2},
               {"tests/golden/target-qwen3_5/model", 6e-2}};

struct run {
    int given, taken;
    int64_t width;
    bool fp8;
    size_t bytes;
    char *states; /* [ROWS][bytes] */
};

/* Two documents and padding. */
static int give(void *ctx, struct hidden_row *r)
{
    struct run *x = ctx;
    if (x->given == ROWS)
        return 0;
    r->index = x->given++;
    for (int s = 0; s < S; s++) {
        r->ids[s] = (s * 37 + (int)r->index * 11 + 5) % V;
        r->doc[s] = s < 7 ? 0 : s < S - 3 ? 1 : -1;
    }
    return 1;
}

static int take(void *ctx, const struct hidden_row *r)
{
    struct run *x = ctx;
    ck_assert_int_eq(r->index, x->taken);
    memcpy(x->states + (size_t)x->taken++ * x->bytes, r->aux, x->bytes);
    return 0;
}

/* extract moves the rows; returns how many were computed at once. */
static int extract(struct run *x, const char *model, const char *device, bool fp8,
                   size_t weights, size_t host)
{
    const struct rig_options o = {
        .target = model, .device = device, .weights = weights, .host = host};
    const struct pump_ends ends = {give, take, x};
    struct rig r = {0};
    struct log log;
    log_start(&log, NULL, "test", false);
    *x = (struct run){.fp8 = fp8, .bytes = (size_t)S * K * H * (fp8 ? 1 : 2)};
    x->states = mem_zero(ROWS, x->bytes);
    kit_ok(rig_check(&r, &o, "0,2", false));
    r.form.length = S;
    r.form.fp8 = fp8;
    kit_ok(rig_open(&r, &log));
    ck_assert_uint_eq(r.dev->held, r.fit.held);
    kit_ok(rig_run(&r, &ends)); // holds it to the plan, too
    int group = r.fit.group;
    ck_assert(r.fit.streams == (weights != 0));
    ck_assert(target_streams(r.target) == r.fit.streams);
    rig_close(&r);
    ck_assert_int_eq(x->taken, ROWS);
    return group;
}

static size_t parts_of(const char *model)
{
    struct dev card;
    struct target *t;
    kit_ok(dev_outline(&card, "cuda"));
    kit_ok(target_outline(&t, &card, model, 2, TARGET_HEADLESS));
    size_t parts = target_sizes(t).parts;
    target_close(t);
    return parts;
}

static void near_cpu(const struct run *gpu, const char *model, double near)
{
    struct run cpu;
    double off = 0, all = 0;
    extract(&cpu, model, "cpu", false, 0, 0);
    const uint16_t *a = (const uint16_t *)(const void *)gpu->states;
    const uint16_t *b = (const uint16_t *)(const void *)cpu.states;
    for (size_t i = 0; i < ROWS * cpu.bytes / 2; i++) {
        double x = (double)num_bf16_f32(a[i]), y = (double)num_bf16_f32(b[i]);
        off += (x - y) * (x - y);
        all += y * y;
    }
    printf("%s: off by %.1e of the norm\n", model, sqrt(off / all));
    ck_assert_double_lt(sqrt(off / all), near);
    mem_free(cpu.states);
}

static void check(int which, bool fp8)
{
    const char *model = targets[which].model;
    size_t row = (size_t)S * K * (fp8 ? H + 4 : 2 * H), parts = parts_of(model);
    struct run whole, group, one;
    ck_assert_int_eq(extract(&whole, model, "cuda", fp8, 0, 0), 1);
    ck_assert_int_eq(extract(&group, model, "cuda", fp8, parts, 0), FIT_GROUP);
    ck_assert_int_eq(extract(&one, model, "cuda", fp8, parts, row), 1);
    kit_same("groups", group.states, whole.states, ROWS * whole.bytes);
    kit_same("one by one", one.states, whole.states, ROWS * whole.bytes);
    if (!fp8)
        near_cpu(&whole, model, targets[which].near);
    mem_free(whole.states);
    mem_free(group.states);
    mem_free(one.states);
}

START_TEST(bf16)
{
    for (int i = 0; i < 2; i++)
        check(i, false);
}
END_TEST

START_TEST(fp8)
{
    check(1, true);
}
END_TEST

int main(void)
{
    struct dev *gpu;
    if (dev_open(&gpu, "cuda", NULL) < 0) {
        printf("skip: %s\n", err_text());
        return 0;
    }
    dev_close(gpu);
    setenv("CK_FORK", "no", 1); // a CUDA context does not survive a fork
    return kit_run(kit_suite("gpu_rig", (const TTest *const[]){bf16, fp8, NULL}));
}
