/* SPDX-License-Identifier: MIT */
/* block.c - runs a grid: block after block, warp after warp, lane after lane. */
#include "block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct emu_block emu_block;
struct emu_here emu_here;

static struct {
    void (*body)(void *ctx);
    void *ctx;
    uint64_t random;
    enum { ASCENDING, DESCENDING, DRAWN, ORDERS } turn; /* of this launch */
} run;

static struct emu_block *const b = &emu_block;

static unsigned draw(unsigned below)
{
    run.random = run.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((run.random >> 33) % below);
}

/* ---- switching ---- */

static void go(struct emu_thread *t)
{
    b->now = t;
    emu_here.thread = t->id;
    emu_here.lane = t->lane;
}

/* leave goes on with the next lane of this warp, or, where none may run, with the
 * scheduler. */
static void leave(void **save)
{
    struct emu_warp *w = b->now->warp;
    uint32_t after = w->ready & ~((2u << b->now->place) - 1);
    uint32_t next = after ? after : w->ready;
    if (!next) {
        emu_switch(save, b->scheduler);
        return;
    }
    struct emu_thread *t = w->at[__builtin_ctz(next)];
    if (t == b->now)
        return;
    go(t);
    emu_switch(save, t->sp);
}

static void give_way(void)
{
    struct emu_thread *t = b->now;
    leave(&t->sp);
    go(t);
}

void emu_pause(const char *why)
{
    struct emu_thread *t = b->now;
    t->waits = why;
    t->warp->ready &= ~(1u << t->place);
    t->warp->blocked |= 1u << t->place;
    give_way();
    t->waits = NULL;
}

/* ---- meetings of a warp ---- */

struct emu_slot *emu_meet(const char *what, uint32_t lanes, const void *bring,
                          size_t bytes, void (*join)(struct emu_slot *slot))
{
    struct emu_thread *t = b->now;
    struct emu_warp *w = t->warp;
    struct emu_slot *slot = w->slot[w->round & 1];
    if (lanes & ~w->alive)
        emu_fail("%s of lanes %08x, but there are only %08x", what, lanes, w->alive);
    if (!(lanes >> t->lane & 1))
        emu_fail("%s of lanes %08x without lane %d itself", what, lanes, t->lane);
    if (w->arrived && (w->meeting != what || w->wanted != lanes))
        emu_fail("%s of lanes %08x, others are at %s of %08x", what, lanes, w->meeting,
                 w->wanted);
    memcpy(slot[t->lane].bytes, bring, bytes);
    w->meeting = what;
    w->wanted = lanes;
    w->arrived |= 1u << t->lane;
    w->ready &= ~(1u << t->place);
    if (w->arrived != lanes) {
        t->waits = what;
        give_way();
        t->waits = NULL;
        return slot;
    }
    if (join)
        join(slot);
    w->arrived = 0;
    w->round++;
    for (int i = 0; i < EMU_LANES && lanes != w->alive; i++)
        if (w->at[i] && lanes >> w->at[i]->lane & 1)
            w->ready |= 1u << i;
    if (lanes == w->alive)
        w->ready = w->places;
    if (run.turn == DRAWN && draw(8) == 0) {
        emu_switch(&t->sp, b->scheduler); // other warps come between
        go(t);
    } else if (w->at[__builtin_ctz(w->ready)] != t) {
        give_way(); // in order: the first goes first
    }
    return slot;
}

/* ---- barriers of a block ---- */

static void barrier_check(int id)
{
    int count = id == 0 ? b->alive : b->barrier[id].count;
    if (b->barrier[id].arrived == 0 || b->barrier[id].arrived < count)
        return;
    b->barrier[id].arrived = 0;
    b->barrier[id].round++;
    b->events++;
}

void emu_barrier(int id, int count, bool wait)
{
    if (id < 0 || id >= EMU_BARRIERS || count % EMU_LANES)
        emu_fail("barrier %d of %d threads", id, count);
    if (id && b->barrier[id].arrived && b->barrier[id].count != count)
        emu_fail("barrier %d: %d threads, others say %d", id, count,
                 b->barrier[id].count);
    const uint64_t round = b->barrier[id].round;
    b->barrier[id].count = count;
    b->barrier[id].arrived++;
    barrier_check(id);
    while (wait && b->barrier[id].round == round)
        emu_pause(id ? "named barrier" : "__syncthreads");
}

/* ---- a block ---- */

static void ended(void)
{
    struct emu_thread *t = b->now;
    struct emu_warp *w = t->warp;
    void *none;
    if (w->arrived && w->wanted >> t->lane & 1)
        emu_fail("ends, but others wait at %s of lanes %08x", w->meeting, w->wanted);
    w->alive &= ~(1u << t->lane);
    w->ready &= ~(1u << t->place);
    w->places &= ~(1u << t->place);
    b->alive--;
    barrier_check(0);
    leave(&none);
}

static void begin(void)
{
    run.body(run.ctx);
    ended();
    abort();
}

/* order fills a permutation of n: ascending, descending, or drawn. */
static void order(int *p, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = run.turn == DESCENDING ? n - 1 - i : i;
    for (int i = n - 1; i > 0 && run.turn == DRAWN; i--) {
        int j = (int)draw((unsigned)i + 1), was = p[i];
        p[i] = p[j];
        p[j] = was;
    }
}

static void *stack_of(struct emu_thread *t)
{
    if (t->stack)
        return t->stack;
    char *p = mmap(NULL, EMU_STACK + 4096, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p + 4096, EMU_STACK, PROT_READ | PROT_WRITE))
        abort();
    return t->stack = p + 4096;
}

static void prepare_warp(struct emu_warp *w, int first)
{
    int place[EMU_LANES], n = b->threads - first;
    struct emu_size size = emu_here.block_size;
    n = n < EMU_LANES ? n : EMU_LANES;
    memset(w, 0, offsetof(struct emu_warp, slot));
    memset(w->at, 0, sizeof w->at);
    order(place, n);
    for (int i = 0; i < n; i++) {
        struct emu_thread *t = &b->thread[first + i];
        unsigned id = (unsigned)(first + i);
        t->id =
            (struct emu_size){id % size.x, id / size.x % size.y, id / size.x / size.y};
        t->warp = w;
        t->lane = i;
        t->place = place[i];
        t->copies = 0;
        t->waits = NULL;
        t->sp = emu_stack_new(stack_of(t), EMU_STACK, begin);
        w->at[place[i]] = t;
    }
    w->alive = w->ready = w->places = n == EMU_LANES ? ~0u : (1u << n) - 1;
}

static void stuck(void)
{
    for (int i = 0; i < b->threads; i++) {
        struct emu_thread *t = &b->thread[i];
        if (t->waits && (i == 0 || t[-1].waits != t->waits))
            fprintf(stderr, "  from thread %d on: %s\n", i, t->waits);
    }
    emu_fail("all threads wait");
}

static void run_block(size_t dynamic)
{
    int turn[EMU_WARPS];
    b->warps = (b->threads + EMU_LANES - 1) / EMU_LANES;
    b->alive = b->threads;
    memset(b->barrier, 0, sizeof b->barrier);
    emu_smem_reset(dynamic);
    emu_copies_drop();
    for (int i = 0; i < b->warps; i++)
        prepare_warp(&b->warp[i], i * EMU_LANES);
    while (b->alive) {
        bool moved = false;
        order(turn, b->warps);
        for (int i = 0; i < b->warps; i++) {
            struct emu_warp *w = &b->warp[turn[i]];
            if (w->seen != b->events) {
                w->ready |= w->blocked;
                w->blocked = 0;
                w->seen = b->events;
            }
            if (!w->ready)
                continue;
            moved = true;
            go(w->at[__builtin_ctz(w->ready)]);
            emu_switch(&b->scheduler, b->now->sp);
        }
        if (!moved && !emu_copies_land() && b->alive)
            stuck();
    }
}

void emu_launch(const void *kernel, struct emu_size grid, struct emu_size block,
                size_t dynamic, void (*body)(void *ctx), void *ctx)
{
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    run.body = body;
    run.ctx = ctx;
    b->kernel = kernel;
    b->threads = (int)(block.x * block.y * block.z);
    b->dynamic = dynamic;
    b->late = draw(2);
    run.turn = draw(ORDERS);
    emu_here.block_size = block;
    emu_here.grid_size = grid;
    for (uint64_t n = 0; n < blocks; n++) {
        uint64_t i = run.turn == DESCENDING ? blocks - 1 - n : n;
        emu_here.block =
            (struct emu_size){(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
                              (unsigned)(i / grid.x / grid.y)};
        run_block(dynamic);
    }
    b->now = NULL;
}

extern const char __executable_start[];

void emu_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (b->now)
        fprintf(stderr, "kernel at %#zx, block %u %u %u, thread %u %u %u: ",
                (size_t)((const char *)b->kernel - __executable_start),
                emu_here.block.x, emu_here.block.y, emu_here.block.z, emu_here.thread.x,
                emu_here.thread.y, emu_here.thread.z);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    abort();
}
