/* SPDX-License-Identifier: MIT */
/* copies.c - asynchronous copies to shared memory, and barriers that count them.
 *
 * In every second launch a copy happens at once, in the others as late as it may: when
 * its thread waits for it, or when nothing else can go on.  An mbarrier is 8 bytes of
 * shared memory: a mark, its phase, how many have to arrive and how many still do. */
#include "block.h"

#include <stdlib.h>
#include <string.h>

/* A copy; with no bytes, an arrival at `bar` behind the copies before it. */
struct copy {
    struct emu_thread *thread;
    const void *from;
    uint32_t to;
    int bytes;
    bool zero;
    int group; /* of its thread */
};

static struct {
    struct copy *copy;
    int n, room;
    int group[EMU_THREADS];
} under_way;

static struct emu_block *const b = &emu_block;

static void arrive(uint32_t bar);

static void land(const struct copy *c)
{
    if (c->bytes == 0)
        arrive(c->to);
    else if (c->zero)
        memset(emu_smem(c->to, c->bytes), 0, (size_t)c->bytes);
    else
        memcpy(emu_smem(c->to, c->bytes), c->from, (size_t)c->bytes);
}

static void add(struct copy c)
{
    if (!b->late) {
        land(&c);
        return;
    }
    if (under_way.n == under_way.room) {
        under_way.room = 2 * under_way.room + 1024;
        under_way.copy =
            realloc(under_way.copy, (size_t)under_way.room * sizeof *under_way.copy);
        if (!under_way.copy)
            abort();
    }
    under_way.copy[under_way.n++] = c;
}

static int *group_of(const struct emu_thread *t)
{
    return &under_way.group[t - b->thread];
}

void emu_copy(uint32_t to, const void *from, int bytes, bool zero)
{
    if ((uintptr_t)from % (unsigned)bytes)
        emu_fail("copy of %d bytes from %p: misaligned", bytes, from);
    emu_smem(to, bytes);
    add((struct copy){b->now, from, to, bytes, zero, *group_of(b->now)});
}

void emu_copy_commit(void)
{
    ++*group_of(b->now);
}

/* land_some makes the copies of one thread before a group happen, or those of all. */
static bool land_some(const struct emu_thread *t, int before)
{
    int kept = 0, n = under_way.n;
    for (int i = 0; i < n; i++) {
        struct copy c = under_way.copy[i];
        if (!t || (c.thread == t && c.group < before))
            land(&c);
        else
            under_way.copy[kept++] = c;
    }
    under_way.n = kept;
    return kept < n;
}

void emu_copy_wait(int left)
{
    land_some(b->now, *group_of(b->now) - left);
}

bool emu_copies_land(void)
{
    return land_some(NULL, 0);
}

void emu_copies_drop(void)
{
    under_way.n = 0;
    memset(under_way.group, 0, sizeof under_way.group);
}

/* ---- mbarriers ---- */

struct bar {
    uint8_t mark, phase;
    uint16_t count, left;
    uint16_t unused;
};

enum { MARK = 0xb5 };

static struct bar *bar_at(uint32_t at)
{
    struct bar *bar = emu_smem(at, sizeof *bar);
    if (bar->mark != MARK)
        emu_fail("barrier at %#x is not initialized", at);
    return bar;
}

void emu_bar_init(uint32_t at, int count)
{
    struct bar *bar = emu_smem(at, sizeof *bar);
    *bar = (struct bar){MARK, 0, (uint16_t)count, (uint16_t)count, 0};
}

static void arrive(uint32_t at)
{
    struct bar *bar = bar_at(at);
    if (--bar->left)
        return;
    bar->left = bar->count;
    bar->phase ^= 1;
    b->events++;
}

void emu_bar_arrive(uint32_t at)
{
    arrive(at);
}

void emu_bar_arrive_copied(uint32_t at)
{
    bar_at(at);
    add((struct copy){b->now, NULL, at, 0, false, *group_of(b->now)});
}

void emu_bar_wait(uint32_t at, uint32_t parity)
{
    while (bar_at(at)->phase == (parity & 1))
        emu_pause("mbarrier");
}
