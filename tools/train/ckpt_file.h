/* SPDX-License-Identifier: MIT */
/* ckpt_file.h - one file of a checkpoint: f32 device memory to and from safetensors.
 *
 * The metadata's data_xxh3 is the checksum of all data in file order; since it is known
 * last, the header is written twice, the same size. */
#ifndef CKPT_FILE_H
#define CKPT_FILE_H

#include <stdint.h>

#include "dev.h"
#include "safetensors.h"

/* A tensor to write: f32 memory of a device, stored as F32 or rounded to BF16. */
struct ckpt_part {
    const char *name;
    enum st_type type;
    struct tensor from;
};

/* ckpt_file_write puts a file in place; meta is key, value ... without data_xxh3. */
int ckpt_file_write(const char *path, struct dev *d, const struct ckpt_part *part,
                    int64_t parts, const char *const *meta, int64_t metas);

/* ckpt_file_open opens and verifies; E_FORMAT when the checksum is absent or differs.
 */
int ckpt_file_open(struct st_file *f, const char *path);

/* ckpt_file_read brings an F32 tensor of the same shape into device memory. */
int ckpt_file_read(const struct st_file *f, struct dev *d, const char *name,
                   struct tensor to);

#endif
