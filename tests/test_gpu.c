/* SPDX-License-Identifier: MIT */
/* test_gpu.c - every op on the GPU against the CPU, on the same inputs.
 *
 *   test_gpu             all cases, in bf16 and in the f32 mode of tests
 *   OP=attn_span ...     one op alone
 *   test_gpu --kernels   the table of kernels with dynamic shared memory; needs no GPU
 *
 * Without CUDA the kernels run on the CPU (tests/emu), of the cases the small ones;
 * with THOROUGH in the environment, all.
 *
 * Inputs are drawn for the GPU, rounded to its types, and given to both.  What is
 * compared is sqrt(sum (got - want)^2 / sum want^2) of every tensor written.  A second
 * run must give the same bits.  The program needs nothing beside it but the driver and
 * cuBLASLt, so that it can be copied to another machine and run there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "err.h"
#include "kit.h"
#include "kit_op.h"
#include "mem.h"
#include "par.h"
#include "rng.h"

/* Beside cases.h: what the fused attention must not mind.  Head widths 64, 128 and 256,
 * groups of 1, 3, 5, 8, 16 heads, blocks of 4 to 32, rows without keys, tiles that end
 * in the middle of a token, and rows so few that their keys are taken in pieces. */
/* clang-format off */
static const struct op_case more[] = {
    {"attn_span", "T=1 n=16 m=8 D=128 S=1000", 0, 0},
    {"attn_span", "T=130 n=5 m=1 D=64 S=130 z=3 e=1", 0, 0},
    {"attn_span", "T=77 n=8 m=8 D=128 S=300 l=33", 0, 0},
    {"attn_span", "T=300 n=8 m=2 D=128 S=300 z=4", 0, 0},
    {"attn_span", "T=1 n=6 m=1 D=256 S=40", 0, 0},
    {"attn_span", "T=300 n=12 m=2 D=256 S=300 z=4", 0, 0},
    {"attn_span", "T=97 n=3 m=3 D=256 S=500 e=1 l=70", 0, 0},
    {"attn_span", "T=16 n=32 m=8 D=128 S=4096", 0, 0},
    {"attn_span", "T=16 n=24 m=4 D=256 S=3000", 0, 0},
    {"attn_span", "T=3 n=4 m=4 D=64 S=2111 l=900 e=1", 0, 0},
    {"attn_span", "T=150 n=2 m=1 D=64 S=1500 z=9", 0, 0},
    {"attn_block", "Q=16 n=32 m=8 D=128 S=3000 B=16", 0, 0},
    {"attn_block", "Q=32 n=6 m=2 D=64 S=2500 B=16 c=1 v=5 l=700 z=2", 0, 0},
    {"attn_block", "Q=48 n=3 m=1 D=64 S=200 B=4 v=3 c=1", 0, 0},
    {"attn_block_bwd", "Q=4 n=4 m=1 D=128 S=0 B=4", 0, 0},
    {"attn_block_bwd", "Q=64 n=4 m=4 D=128 S=150 B=4 z=2 v=3", 0, 0},
    {"attn_block_bwd", "Q=96 n=6 m=2 D=64 S=333 B=32 z=2 r=1", 0, 0},
    {"attn_block_bwd", "Q=65 n=5 m=1 D=128 S=400 B=5 c=1 l=90", 0, 0},
    {"attn_block_bwd", "Q=128 n=8 m=1 D=64 S=300 B=16 c=1 v=9 l=40 z=3", 0, 0},
    {"attn_block_bwd", "Q=160 n=16 m=1 D=128 S=129 B=32", 0, 0},
    {"attn_block_bwd", "Q=1024 n=8 m=2 D=128 S=2048 B=16 z=5", 0, SPEED},
    {"attn_block_bwd", "Q=512 n=8 m=2 D=128 S=2048 B=16 c=1 v=512 l=512", 0, SPEED},
    {"delta", "T=3000 S=3100 m=16 n=48 D=128 E=128 z=2 j=9", 0, SPEED}, // two launches
};
/* clang-format on */

enum { MORE = sizeof more / sizeof more[0] };

#ifndef EMULATED
#define EMULATED 0
#endif
#ifndef KERNELS
#error "the hash of scripts/tested.sh is missing: see the Makefile"
#endif

static struct par *par;
static struct dev *gpu, *cpu;

static double limit_of(const struct call *k, const struct call_arg *a)
{
    if (k->d->act == DT_F32 && a->t.type != DT_BF16)
        return 1e-5;
    if (strcmp(k->c->op, "attn_block_bwd") == 0)
        return 8e-3;
    return a->count < 8 ? 1.0 / 256 : 3e-3; // of few elements, one rounding
}

/* backward_on gives the CPU's backward pass the GPU's o and lse, rounded as they are:
 * they are its inputs.  The order of arguments is op.h's. */
static void backward_on(struct call *c, struct call *g)
{
    struct tensor t[CALL_ARGS];
    for (int i = 0; i < c->n; i++) {
        t[i] = c->arg[i].t;
        if (c->arg[i].role == '*') {
            double *v = call_get(g, &g->arg[i]);
            call_put(c, &c->arg[i], v);
            mem_free(v);
        }
    }
    struct attn_grads grads = {t[0], t[1], t[2], t[3], t[4]};
    op_attn_block_bwd(c->d, grads, t[5], t[6], t[7], t[8], t[9], t[10], t[11], t[12],
                      t[13], t[14], call_block(c));
    kit_ok(dev_sync(c->d));
}

/* error_of is the normalised error; infinite where one is not a number. */
static double error_of(const double *got, const double *want, int64_t n)
{
    double sum = 0, scale = 0;
    for (int64_t i = 0; i < n; i++) {
        if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])))
            continue; // also -inf, and what neither wrote
        double d = got[i] - want[i];
        if (!isfinite(d))
            return INFINITY;
        sum += d * d;
    }
    for (int64_t i = 0; i < n; i++)
        scale += isfinite(want[i]) ? want[i] * want[i] : 0;
    return sum == 0 ? 0 : sqrt(sum / scale);
}

/* give puts the GPU's inputs into the same call on the CPU. */
static void give(struct call *to, const struct call *from)
{
    for (int i = 0; i < to->n; i++)
        if (to->arg[i].t.rank)
            call_put(to, &to->arg[i], from->arg[i].host);
}

/* agree compares one tensor, and again after a second run. */
static bool agree(struct call *g, struct call *c, int i, double *const *first)
{
    struct call_arg *a = &g->arg[i];
    double *want = call_get(c, &c->arg[i]), *again = call_get(g, a);
    double limit = a->t.type == DT_I32 ? 0 : limit_of(g, a);
    double error = error_of(first[i], want, a->count);
    bool same = memcmp(first[i], again, (size_t)a->count * sizeof *again) == 0;
    bool good = error <= limit && same;
    printf("%s %-14s %-44s %-6s %.1e of %.0e%s\n", good ? "  " : "NO", g->c->op,
           g->c->dims, a->name, error, limit, same ? "" : ", other bits again");
    mem_free(want);
    mem_free(again);
    return good;
}

static int compare(const struct op_case *c)
{
    struct call g, k;
    double *first[CALL_ARGS] = {0};
    char dims[256];
    struct op_case as = *c;
    int bad = 0;
    if (strncmp(c->op, "attn_", 5) == 0 && !strstr(c->dims, "g=")) {
        snprintf(dims, sizeof dims, "%s g=f32", c->dims); // lse is kept in f32
        as.dims = dims;
    }
    call_open(&g, gpu, &as);
    call_open(&k, cpu, &as);
    give(&k, &g);
    call_run(&k);
    call_run(&g);
    if (strcmp(c->op, "attn_block_bwd") == 0)
        backward_on(&k, &g);
    for (int i = 0; i < g.n; i++)
        if (g.arg[i].t.rank)
            first[i] = call_get(&g, &g.arg[i]);
    call_reset(&g);
    call_run(&g);
    for (int i = 0; i < g.n; i++)
        if (g.arg[i].t.rank && g.arg[i].role != ':')
            bad += !agree(&g, &k, i, first);
    for (int i = 0; i < g.n; i++)
        mem_free(first[i]);
    call_close(&g);
    call_close(&k);
    return bad;
}

/* wanted: is the case asked for, and worth its time? */
static bool wanted(const struct op_case *c)
{
    return call_wanted(c) && (!EMULATED || !(c->use & SPEED) || getenv("THOROUGH"));
}

/* compare_all takes the ops whose names begin so. */
static void compare_all(enum dtype act, const char *begin)
{
    int bad = 0;
    bool fused = act == DT_BF16 || !EMULATED || getenv("THOROUGH");
    gpu->act = act;
    printf("# %s\n", dtype_name(act));
    for (int i = 0; i < OP_CASES; i++)
        if (wanted(&op_cases[i]) && strstr(op_cases[i].op, begin) == op_cases[i].op)
            bad += compare(&op_cases[i]);
    for (int i = 0; fused && i < MORE; i++)
        if (wanted(&more[i]) && strstr(more[i].op, begin) == more[i].op)
            bad += compare(&more[i]);
    ck_assert_msg(bad == 0, "%d tensors differ", bad);
}

START_TEST(bf16)
{
    compare_all(DT_BF16, "");
}
END_TEST

START_TEST(f32)
{
    compare_all(DT_F32, "");
}
END_TEST

/* Attention has other shapes for cards with less shared memory. */
START_TEST(small_card)
{
    if (EMULATED) {
        setenv("EMU_CARD", "120", 1);
        compare_all(DT_BF16, "attn_");
        unsetenv("EMU_CARD");
    }
}
END_TEST

/* copies go through pieces from some size on: every size comes back as it went, and so
 * does a part behind an odd offset. */
START_TEST(copies)
{
    static const size_t sizes[] = {1,
                                   (4 << 20) - 1,
                                   4 << 20,
                                   16 << 20,
                                   (16 << 20) + 1,
                                   (32 << 20) + 7,
                                   (90 << 20) + 3};
    const size_t most = (90 << 20) + 4096;
    uint8_t *out = mem_alloc(most), *back = mem_alloc(most);
    struct rng r = rng_new(1);
    void *card;
    kit_ok(dev_alloc(gpu, &card, most));
    for (size_t i = 0; i < most; i++)
        out[i] = (uint8_t)(i % 251 + (i >> 20));
    for (int i = 0; i < 7; i++) {
        size_t n = sizes[i], from = rng_below(&r, 4000);
        memset(back, 0, most);
        kit_ok(dev_put(gpu, (char *)card + from, out + from, n));
        kit_ok(dev_get(gpu, back + from, (char *)card + from, n));
        kit_same("bytes", back + from, out + from, n);
        ck_assert(back[from + n] == 0);
    }
    dev_free(gpu, card, most);
    mem_free(out);
    mem_free(back);
}
END_TEST

static int print_kernels(void)
{
    for (const struct cuda_kernel *k = cuda_kernels; k->name; k++)
        printf("%d %d %s\n", k->threads, k->dynamic, k->name);
    return 0;
}

/* What scripts/tested.sh keeps of a run that has passed. */
static void print_identity(void)
{
    char text[DEV_IDENTITY];
    dev_identity(gpu, text);
    if (EMULATED)
        printf("# emulated kernels\n");
    else
        printf("# kernels %s on %s\n", KERNELS, text);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--kernels") == 0)
        return print_kernels();
    if (par_open(&par, 0) < 0 || dev_open(&cpu, "cpu", par) < 0) {
        printf("%s\n", err_text());
        return 1;
    }
    if (dev_open(&gpu, "cuda", par) < 0) {
        printf("skip: %s\n", err_text());
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    print_identity();
    setenv("CK_FORK", "no", 1); // a CUDA context does not survive a fork
    int rc = kit_run(
        kit_suite("gpu", (const TTest *const[]){copies, bf16, f32, small_card, NULL}));
    dev_close(gpu);
    dev_close(cpu);
    par_close(par);
    return rc;
}
