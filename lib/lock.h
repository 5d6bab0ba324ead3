/* SPDX-License-Identifier: MIT */
/* lock.h - one process at a time in a folder, or in one part of what goes there.
 *
 * The lock is held on a file in the folder and ends with the process, however that
 * ends.  The file stays: to remove it would open a gap in which two hold "the" lock. */
#ifndef LOCK_H
#define LOCK_H

struct lock {
    int whole, part; /* descriptors + 1, so that a zero struct holds nothing */
};

/* lock_take locks DIR/NAME against every other process; of several parts each locks
 * DIR/NAME-I-of-N and shares DIR/NAME with the others, so that a run in parts and a
 * whole one exclude each other too.  E_AGAIN, naming the file, when another process (or
 * another lock of this one) has it.  Where the folder cannot be written or its file
 * system has no locks, there is none to take, and that is no failure: who then writes
 * fails by itself, who only looks does not. */
int lock_take(struct lock *l, const char *dir, const char *name, int part, int parts);

void lock_give(struct lock *l); /* a zero struct is fine */

#endif
