/* SPDX-License-Identifier: MIT */
/* mds_index.h - index.json, which says which shards a folder of MosaicML's has. */
#ifndef MDS_INDEX_H
#define MDS_INDEX_H

#include <stdint.h>

/* mds_index gives the shards in order: 1, or 0 when `dir` has no such index.json.  A
 * shard that lies there both plain and compressed is named once.  E_MISSING when one is
 * not there, E_FORMAT when it is not as long as it should be.  *names is freed by
 * file_list_free. */
int mds_index(char ***names, int64_t *n, const char *dir);

#endif
