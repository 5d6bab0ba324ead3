/* SPDX-License-Identifier: MIT */
/* backend.c - the CPU as a device: host memory, and the table of operations.
 *
 * Work is done when a call returns, so sync has nothing to wait for.  Blocks of a huge
 * page or more are aligned to one and advised to use them: matrix products walk many
 * rows at once and would otherwise miss in the TLB. */
#include "matmul.h"

#include "err.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 256, HUGE_PAGE = 2 << 20 };

/* cpu_open refuses what the compiler was told it may use (-march=x86-64-v3). */
static int cpu_open(struct dev *d, int index)
{
    (void)index;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2"))
        return err_set(E_CONFIG, "this processor lacks AVX2, FMA or BMI2 (x86-64-v3)");
    struct matmul *m = mem_zero(1, sizeof *m);
    if (!m)
        return E_MEMORY;
    m->tiles = __builtin_cpu_supports("avx512f") ? &tile_avx512 : &tile_avx2;
    m->room = mem_alloc(matmul_room(par_threads(d->par)));
    if (!m->room) {
        mem_free(m);
        return E_MEMORY;
    }
    d->state = m;
    return 0;
}

static void cpu_close(struct dev *d)
{
    struct matmul *m = d->state;
    free(d->scratch);
    mem_free(m->room);
    mem_free(m);
}

static void *cpu_alloc(struct dev *d, size_t bytes)
{
    (void)d;
    size_t align = bytes < HUGE_PAGE ? ALIGN : HUGE_PAGE;
    size_t size = (bytes + !bytes + align - 1) / align * align;
    void *p = size < bytes ? NULL : aligned_alloc(align, size);
    if (!p) {
        size_t spare =
            (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
        err_set(E_MEMORY, "%zu bytes asked for, %zu free", bytes, spare);
        return NULL;
    }
    if (align == HUGE_PAGE)
        madvise(p, size, MADV_HUGEPAGE); // a hint: without it only slower
    return p;
}

static void cpu_free(struct dev *d, void *p)
{
    (void)d;
    free(p);
}

static int cpu_put(struct dev *d, void *to, const void *host, size_t bytes)
{
    (void)d;
    memcpy(to, host, bytes);
    return 0;
}

static int cpu_get(struct dev *d, void *host, const void *from, size_t bytes)
{
    (void)d;
    memcpy(host, from, bytes);
    return 0;
}

static int cpu_sync(struct dev *d)
{
    (void)d;
    return 0;
}

void *cpu_scratch(struct dev *d, size_t bytes)
{
    if (bytes <= d->scratch_bytes)
        return d->scratch;
    free(d->scratch);
    d->scratch = cpu_alloc(d, bytes);
    d->scratch_bytes = d->scratch ? bytes : 0;
    if (!d->scratch)
        dev_fail(d, E_MEMORY, "working memory: %s", err_text());
    return d->scratch;
}

const struct backend cpu_backend = {
    .name = "cpu",
    .act = DT_REAL,
    .full = E_MEMORY,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .put = cpu_put,
    .get = cpu_get,
    .sync = cpu_sync,
    .pack_bytes = cpu_pack_bytes,
    .matmul = cpu_matmul,
    .matmul_dx = cpu_matmul_dx,
    .matmul_dw = cpu_matmul_dw,
    .pack = cpu_pack,
    .gather = cpu_gather,
    .scatter = cpu_scatter,
    .convert = cpu_convert,
    .tap = cpu_tap,
    .quant = cpu_quant,
    .dequant = cpu_dequant,
    .add = cpu_add,
    .rmsnorm = cpu_rmsnorm,
    .rmsnorm_bwd = cpu_rmsnorm_bwd,
    .norm_rope = cpu_norm_rope,
    .norm_rope_bwd = cpu_norm_rope_bwd,
    .swiglu = cpu_swiglu,
    .swiglu_bwd = cpu_swiglu_bwd,
    .attn_span = cpu_attn_span,
    .attn_block = cpu_attn_block,
    .attn_block_bwd = cpu_attn_block_bwd,
    .head_loss = cpu_head_loss,
    .argmax = cpu_argmax,
    .sumsq = cpu_sumsq,
    .fill = cpu_fill,
    .scale = cpu_scale,
    .adamw = cpu_adamw,
    .finite = cpu_finite,
    .normal = cpu_normal,
    .gate = cpu_gate,
    .delta_mix = cpu_delta_mix,
    .delta = cpu_delta,
    .norm_gate = cpu_norm_gate,
};
