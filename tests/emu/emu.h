/* SPDX-License-Identifier: MIT */
/* emu.h - CUDA on a CPU, for tests: what runs a kernel's blocks and threads.
 *
 * A block's threads are fibres of one host thread.  A fibre runs until it has to wait:
 * for the other lanes of its warp (a meeting: shuffle, vote, mma ...) or at a barrier.
 * Which runs next is drawn anew for every launch, ascending, descending or at random,
 * and so is whether asynchronous copies happen at once or as late as they may: what
 * needs an order and does not ask for it gives other bits, or NaN, for memory of a
 * block is filled with it before the block begins.
 *
 * What hardware leaves undefined ends the program with a message: shared memory out of
 * bounds or misaligned, lanes that miss a meeting, threads that wait for ever. */
#ifndef EMU_H
#define EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EMU_LANES = 32, EMU_SMEM_BASE = 1024 };

struct emu_size {
    unsigned x, y, z;
};

/* The thread that runs, as kernels ask for it. */
struct emu_here {
    struct emu_size thread, block, block_size, grid_size;
    int lane; /* in its warp */
};
extern struct emu_here emu_here;

/* What a lane brings to a meeting, and takes from it. */
struct emu_slot {
    unsigned char bytes[64] __attribute__((aligned(16)));
};

/* emu_launch runs body(ctx) once for every thread of the grid. */
void emu_launch(const void *kernel, struct emu_size grid, struct emu_size block,
                size_t dynamic, void (*body)(void *ctx), void *ctx);

/* emu_meet waits for all lanes of the warp.  Each brings `bytes`; the last one calls
 * `join`, if any, on the slots of all 32, which are then whole and stay until this
 * lane's next meeting. */
struct emu_slot *emu_meet(const char *what, uint32_t lanes, const void *bring,
                          size_t bytes, void (*join)(struct emu_slot *slot));

/* Named barriers; id 0 with no count is __syncthreads. */
void emu_barrier(int id, int count, bool wait);

/* Shared memory by 32-bit address. */
void *emu_dynamic(void);
void *emu_smem(uint32_t at, int bytes);

/* cp.async: `zero` clears instead.  emu_copy_wait waits for all but the newest `left`
 * groups of this thread. */
void emu_copy(uint32_t to, const void *from, int bytes, bool zero);
void emu_copy_commit(void);
void emu_copy_wait(int left);

/* mbarriers. */
void emu_bar_init(uint32_t bar, int count);
void emu_bar_arrive(uint32_t bar);
void emu_bar_arrive_copied(uint32_t bar);
void emu_bar_wait(uint32_t bar, uint32_t parity);

/* emu_fail prints what a thread of which kernel has done, and aborts. */
void emu_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
