/* SPDX-License-Identifier: MIT */
/* lines.h - what eval writes as JSON lines: ids, training text, rounds.
 *
 * None of them holds a time or a path, so two runs give the same bytes. */
#ifndef LINES_H
#define LINES_H

#include <stdint.h>

#include "buf.h"
#include "decode.h"
#include "prompt.h"

/* {"record":0,"ids":[...]}: the continuation alone. */
void lines_ids(struct buf *to, int64_t record, const int32_t *ids, int64_t n);

/* {"input_ids":[...],"loss_mask":[...]}: prompt (0) and continuation (1), as draft-pack
 * reads them. */
void lines_text(struct buf *to, const struct prompt *q, const struct decoded *d);

/* {"file":0,"record":0,"anchor":17,"accepted":[...]}: proposals kept round by round;
 * the first anchor is token `anchor` of the record. */
void lines_rounds(struct buf *to, int64_t file, int64_t record, int64_t anchor,
                  const int32_t *accepted, int64_t rounds);

#endif
