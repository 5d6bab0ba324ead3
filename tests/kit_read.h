/* SPDX-License-Identifier: MIT */
/* kit_read.h - files through pack's readers, as flow.c does it, without threads. */
#ifndef KIT_READ_H
#define KIT_READ_H

#include "../tools/pack/reader.h"

/* kit_read_file appends the documents of one file, of a named format or of "auto"; a
 * code when the file is refused. */
int kit_read_file(struct documents *out, const char *path, const char *format,
                  const struct read_rules *rules);

/* kit_read_input does so for all files that an operand of draft-pack stands for. */
int kit_read_input(struct documents *out, const char *operand,
                   const struct read_rules *rules);

#endif
