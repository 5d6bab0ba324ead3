/* SPDX-License-Identifier: MIT */
/* bpe.h - ids back to bytes, by the table in a tokenizer.json of a byte-level BPE.
 *
 * Decoding needs no merges: each id stands for fixed bytes. */
#ifndef BPE_H
#define BPE_H

#include <stddef.h>
#include <stdint.h>

struct bpe;

/* bpe_open reads the table.  Any other kind of tokenizer is E_FORMAT naming the kind.
 */
int bpe_open(struct bpe **out, const char *path);
void bpe_close(struct bpe *b);

/* bpe_piece gives an id's bytes, which need not be UTF-8 on their own; NULL when the
 * table has no such id. */
const char *bpe_piece(const struct bpe *b, int32_t id, size_t *n);

#endif
