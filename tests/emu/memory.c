/* SPDX-License-Identifier: MIT */
/* memory.c - the memory of the card and of a block.
 *
 * An allocation ends where a page begins that nobody may touch, and another such page
 * lies before it; what was not written reads as NaN, or as -1.  Shared memory is the
 * launch's dynamic bytes, and the static variables, which the linker has gathered in
 * one section. */
#include "block.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_runtime.h"

enum { PAGE = 4096, ALIGN = 16, MOST = 1024, POISON = 0xff };
static const size_t total = (size_t)80 << 30;

static struct {
    char *data, *map;
    size_t bytes, mapped;
} taken[MOST];

static size_t used;

static char *guarded(size_t bytes, char **map, size_t *mapped)
{
    size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    size_t pages = (whole + PAGE - 1) / PAGE * PAGE;
    char *p =
        mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + PAGE, pages, PROT_READ | PROT_WRITE))
        return NULL;
    memset(p + PAGE, POISON, pages);
    *map = p;
    *mapped = pages + 2 * PAGE;
    return p + PAGE + pages - whole;
}

/* touched says which thread of which kernel has left its memory. */
static void touched(int signal, siginfo_t *at, void *context)
{
    (void)signal;
    (void)context;
    emu_fail("memory at %p is nobody's", at->si_addr);
}

/* watch: the handler has a stack of its own, for a fibre may have none left. */
static void watch(void)
{
    static char stack[64 << 10];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_sigaction = touched,
                            .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    int i = 0;
    watch();
    while (i < MOST && taken[i].data)
        i++;
    if (i == MOST || bytes > total - used)
        return cudaErrorMemoryAllocation;
    taken[i].data = guarded(bytes, &taken[i].map, &taken[i].mapped);
    if (!taken[i].data)
        return cudaErrorMemoryAllocation;
    taken[i].bytes = bytes;
    used += bytes;
    *p = taken[i].data;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    int i = 0;
    if (!p)
        return cudaSuccess;
    while (i < MOST && taken[i].data != p)
        i++;
    if (i == MOST)
        return cudaErrorInvalidValue;
    munmap(taken[i].map, taken[i].mapped);
    used -= taken[i].bytes;
    taken[i].data = NULL;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *all)
{
    *available = total - used;
    *all = total;
    return cudaSuccess;
}

/* ---- shared ---- */

extern char __start_emu_smem[], __stop_emu_smem[];

static char *dynamic, *map;
static size_t mapped, held;

void emu_smem_reset(size_t bytes)
{
    if (bytes != held || !dynamic) {
        if (map)
            munmap(map, mapped);
        dynamic = guarded((bytes + 1023) / 1024 * 1024, &map, &mapped);
        if (!dynamic)
            abort();
        held = bytes;
    } else {
        memset(dynamic, POISON, bytes);
    }
    memset(__start_emu_smem, POISON, (size_t)(__stop_emu_smem - __start_emu_smem));
}

void *emu_dynamic(void)
{
    return dynamic;
}

void *emu_smem(uint32_t at, int bytes)
{
    if (at % (unsigned)bytes)
        emu_fail("shared memory at %#x, %d bytes: misaligned", at, bytes);
    if (at < EMU_SMEM_BASE || at - EMU_SMEM_BASE + (unsigned)bytes > held)
        emu_fail("shared memory at %#x, %d bytes: there are %zu from %#x on", at, bytes,
                 held, EMU_SMEM_BASE);
    return dynamic + (at - EMU_SMEM_BASE);
}
