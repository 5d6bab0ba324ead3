/* SPDX-License-Identifier: MIT */
/* shard_resume.h - what a folder already holds of the run that is to be written.
 *
 * Private to the writer. */
#ifndef SHARD_RESUME_H
#define SHARD_RESUME_H

#include "shard.h"
#include "shard_head.h"

struct shard_resume {
    int64_t rows_per_shard;
    bool whole;      /* with its end file: nothing to do */
    int64_t shards;  /* full ones, from 0 without a gap */
    int64_t rows;    /* in them */
    struct buf sums; /* their header_xxh3, as shard_head_sum adds them */
    /* The last of them, mapped and verified; zero when there is none. */
    struct shard_head last;
    struct file_map map;
    struct shard_view view;
    char *path;
};

/* shard_resume_scan looks at folder `dir`.  `id` names the run; its index and rows are
 * not looked at.  An end file whose shards are no longer all there is removed. */
int shard_resume_scan(struct shard_resume *r, const char *dir,
                      const struct shard_options *o, const struct shard_id *id,
                      int64_t rows_per_shard);
void shard_resume_drop_view(struct shard_resume *r);
void shard_resume_drop(struct shard_resume *r);

#endif
