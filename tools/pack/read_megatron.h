/* SPDX-License-Identifier: MIT */
/* read_megatron.h - Megatron-LM's pairs of X.idx and X.bin.
 *
 * X.bin is tokens and nothing else; X.idx (little-endian, arrays not aligned) says
 * which are documents:
 *
 *     "MMIDIDX\0\0", version u64 1, type u8, sequences S u64, entries D u64,
 *     lengths i32[S], byte offsets i64[S], documents i64[D], perhaps modes i8[S]
 *
 * Document d is sequences documents[d] to documents[d + 1] - 1 (D is one more than
 * there are documents), and record d of X.bin; all its tokens are supervised.  We read
 * X.bin from front to back: offsets must lie one behind another, as all writers have
 * them.  Neither file may be compressed. */
#ifndef READ_MEGATRON_H
#define READ_MEGATRON_H

#include "reader.h"

/* The functions of struct reader.  Both files of a pair are input; X.idx gives no
 * documents of its own. */
bool megatron_is(const char *bytes, size_t n);
bool megatron_beside(const char *path);
int megatron_open(void **state, struct inflow *in, const struct read_rules *rules);
void megatron_close(void *state);
int megatron_block(struct block *b, void *state, struct inflow *in);

/* megatron_other is the path of the other half of the pair that a file is one of (owned
 * by the caller), or NULL: by name and, of X.bin, by the content of X.idx. */
char *megatron_other(const char *path);

#endif
