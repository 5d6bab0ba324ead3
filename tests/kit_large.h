/* SPDX-License-Identifier: MIT */
/* kit_large.h - checkpoints as large as published ones, whose data are holes. */
#ifndef KIT_LARGE_H
#define KIT_LARGE_H

#include <stdint.h>

enum kit_large { KIT_QWEN3_8B, KIT_QWEN36_27B };

/* kit_large makes one in a new folder: two files, a.safetensors and b.safetensors, and
 * an index.  The last layer's down_proj has `lacks` columns fewer than config.json
 * says. The text lives until the next kit_tmp_dir. */
const char *kit_large(enum kit_large which, int64_t lacks);

#endif
