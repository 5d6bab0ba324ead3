/* SPDX-License-Identifier: MIT */
/* block.h - the block that runs: its warps and threads, shared by the files of
 * tests/emu.
 *
 * Lanes are known by number, as kernels know them, and by place: their turn in the
 * order of this launch.  Sets of lanes to run are bits by place. */
#ifndef EMU_BLOCK_H
#define EMU_BLOCK_H

#include "emu.h"

enum {
    EMU_THREADS = 1024,
    EMU_WARPS = EMU_THREADS / EMU_LANES,
    EMU_STACK = 128 << 10,
    EMU_BARRIERS = 16
};

struct emu_thread {
    void *sp; /* of its stack, when it does not run */
    void *stack;
    struct emu_size id;
    struct emu_warp *warp;
    int lane, place;
    int copies;        /* asynchronous ones under way, in emu_copies */
    const char *waits; /* what for; NULL when not */
};

struct emu_warp {
    uint32_t ready, blocked; /* by place: may run; wait for an event */
    uint32_t places;         /* by place: not ended */
    uint32_t alive, arrived; /* by lane: not ended; at the meeting */
    uint32_t wanted;         /* by lane: who has to come */
    const char *meeting;
    int round; /* meetings so far: slots alternate */
    uint64_t seen;
    struct emu_slot slot[2][EMU_LANES];
    struct emu_thread *at[EMU_LANES]; /* by place */
};

struct emu_block {
    const void *kernel;
    struct emu_warp warp[EMU_WARPS];
    struct emu_thread thread[EMU_THREADS];
    int warps, threads, alive;
    struct emu_thread *now;
    void *scheduler; /* its stack pointer */
    uint64_t events; /* what may have ended somebody's wait */
    struct {
        int arrived, count;
        uint64_t round;
    } barrier[EMU_BARRIERS];
    size_t dynamic;
    bool late; /* copies */
};

extern struct emu_block emu_block;

/* emu_pause gives way until something has happened: a caller asks again then. */
void emu_pause(const char *why);

/* copies.c: emu_copies_land makes all copies under way happen; false when there were
 * none.  emu_copies_drop forgets them. */
bool emu_copies_land(void);
void emu_copies_drop(void);

/* memory.c: shared memory before a block. */
void emu_smem_reset(size_t dynamic);

/* fibre.c: the context `from` stops here and `to` goes on; a new stack begins in
 * `begin`. */
void emu_switch(void **from, void *to);
void *emu_stack_new(void *stack, size_t bytes, void (*begin)(void));

#endif
